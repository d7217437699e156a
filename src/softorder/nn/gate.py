from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from softorder import _axis, _check, estimators
from softorder._auto import Temperature, wanted
from softorder.distributions import KHot
from softorder.distributions._parameters import density_of
from softorder.nn._tempered import Tempered
from softorder.ops.calibration import of_topk
from softorder.relaxations import ThresholdMethod
from softorder.sampling import Design, find

Estimator = str | Callable[..., Tensor]  #: a name of so.estimators, or one of these with options


class KHotGate(Tempered):
    """Lets k of n features through, and learns which: of inputs, channels, experts.

    In training every item has its own random choice x ∈ {0,1}^n, drawn with the inclusion
    probabilities π and multiplied with the features; an estimator carries the gradient to π. In
    eval mode the choice is fixed: the k features with the largest logits.

    With a k, π = `so.soft_topk(logits, k, temperature=τ)` and every choice has k ones. With k=None
    the size is learned, too: π = F(logits/τ), the size is Σ π on average, and λ·gate.size() in the
    loss asks for few features. F is the CDF of the method, the sigmoid if none is given.

    Args:
        features: n, for a gate with logits of its own, one choice for all items; or None for a gate
            that gets logits with every call, from a router or an encoder.
        k: how many are let through; None to learn it.
        dim: the axis of the features; several of them, or None for all, are taken as one.
        estimator: "straight_through", "second_order", "relaxed", "simple", "iterative_poisson", or
            a callable with their signature, such as
            functools.partial(so.estimators.relaxed, temperature=0.5).
        design: how choices are drawn, see `so.sampling.designs()`. The default is as fast as a
            top-k and keeps π to 3e-5 where Σ π(1-π) > 5, to 0.012 for any π; "pivotal" is exact.
            A k that is learned or not whole needs one of these two, or another exact one.
        method: from logits to probabilities, as in `so.distributions.KHot`.
        temperature: τ, by which logits are divided: the smaller, the less random the choices. With
            "auto", or `so.Auto(softness=...)`, it is found from the logits of the first call and
            kept; a gate with logits of its own, which start equal, can be told so later.
        start: the size Σ π at the start, for k=None; n/2 if not given.

    Paper: k-hot sampling, algorithms 1 to 3 and section 4.

    >>> import torch, softorder as so
    >>> _ = torch.manual_seed(0)
    >>> gate = so.nn.KHotGate(5, k=2)
    >>> (gate(torch.ones(3, 5)) != 0).sum(-1)
    tensor([2, 2, 2])
    >>> with torch.no_grad():
    ...     _ = gate.logits.copy_(torch.tensor([0.0, 3.0, 1.0, 2.0, -1.0]))
    >>> gate.eval()(torch.ones(5)), gate.selected()
    (tensor([0., 1., 0., 1., 0.]), tensor([1, 3]))
    """

    numbers = ("k", *Tempered.numbers)
    logits: nn.Parameter | None

    def __init__(
        self,
        features: int | None,
        k: float | None = None,
        *,
        dim: int | tuple[int, ...] | None = -1,
        estimator: Estimator = "straight_through",
        design: str | type[Design] = "pareto_corrected",
        method: str | object | None = None,
        temperature: Temperature = 1.0,
        learnable_temperature: bool = False,
        start: float | None = None,
    ) -> None:
        if wanted(temperature):
            _check.gates.found_temperature(features, k)
        super().__init__("log_soft_topk", density_of(method), temperature, learnable_temperature)
        if features is not None:
            _check.count("features", features, least=1)
        if k is not None:
            _check.positive_k(k)
        _check.gates.start(start, features, k)
        _check.gates.estimator(estimator)
        self.features = features
        self.k = k
        self.dim = dim
        self.estimator = estimator
        self.design = find(design)
        self.method = method
        self.logits = None
        if features is not None:
            self.logits = nn.Parameter(torch.zeros(features))
            law = self.law()
            if k is None:
                share = torch.tensor((features / 2 if start is None else start) / features)
                with torch.no_grad():
                    self.logits.copy_(law.relaxation.logits(share) * self.temperature)

    def law(self, logits: Tensor | None = None) -> KHot:
        """The distribution of the choices."""
        if logits is None:
            logits = _check.gates.own_logits(self.logits)
        temperature = self._found(logits)
        _check.temperature(temperature, logits, -1)
        tau = _axis.per_row(temperature, logits, -1).to(logits).unsqueeze(-1)
        return KHot(self.k, logits=logits / tau, design=self.design, method=self.method)

    def _found(self, logits: Tensor) -> float | Tensor:
        """The temperature, which the logits may have to find."""
        if self.calibrated:
            known: float | Tensor = self.temperature
            return known
        _check.gates.size(self.k)
        method = ThresholdMethod(density_of(self.method))
        return of_topk(self.temperature, logits, self.k, method=method)

    def mask(self, sample_shape: Sequence[int] = (), logits: Tensor | None = None) -> Tensor:
        """Choices (*sample_shape, *logits.shape): random ones in training, else the best one."""
        _check.shape("sample_shape", sample_shape)
        if self.training:
            return self._draw(sample_shape, logits)
        best = _best(self.law(logits))
        return best.expand(*sample_shape, *best.shape)

    def _draw(self, sample_shape: Sequence[int], logits: Tensor | None) -> Tensor:
        estimate = self.estimator
        if isinstance(estimate, str):
            estimate = estimators.find(estimate)
        return estimate(self.law(logits), sample_shape=sample_shape)

    def forward(self, x: Tensor, logits: Tensor | None = None) -> Tensor:
        """x, with what is not chosen set to 0.

        Args:
            x: features along `dim`. Every entry of the first of the other axes is an item with its
                own choice.
            logits: for a gate without its own: (items, n), or (n,) for one choice for all.
        """
        axes = _axis.axes(x, self.dim)
        features = _axis.join(x, axes)
        _check.gates.inputs(features, self.features, logits)
        items = features.shape[:1] if features.dim() > 1 else ()
        if logits is not None and logits.dim() > 1:
            items = torch.Size()
        mask = self.mask(items, logits)
        if features.dim() > 1:
            mask = mask.view(mask.shape[0], *[1] * (features.dim() - 2), mask.shape[-1])
        return _axis.split(features * mask, x, axes)

    def size(self, logits: Tensor | None = None) -> Tensor:
        """Σ π, how many are let through on average: times λ, the price of a learned size."""
        return self.law(logits).probs.sum(-1)

    def selected(self, logits: Tensor | None = None) -> Tensor:
        """The indices that eval mode lets through, ascending; for one row of logits."""
        best = _best(self.law(logits))
        _check.gates.one_row(best)
        return best.nonzero().squeeze(-1)

    def extra_repr(self) -> str:
        shown = [f"estimator={self.estimator!r}", f"design={self.design.name!r}"]
        return ", ".join([self.describe("features", "k", "dim", "method", "temperature"), *shown])


@torch.no_grad()
def _best(law: KHot) -> Tensor:
    """The most probable features, as many as there are on average; of equal ones, the first."""
    probs = law.relaxation.probs(law.logits)
    sizes = probs.sum(-1, keepdim=True, dtype=torch.float64).round()
    order = probs.argsort(dim=-1, descending=True, stable=True)
    places = torch.empty_like(order)
    counts = torch.arange(probs.shape[-1], device=probs.device).expand_as(order)
    places.scatter_(-1, order, counts)
    return (places < sizes).to(probs.dtype)

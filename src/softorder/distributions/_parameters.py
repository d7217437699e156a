"""From what the user gave to the design that is sampled."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.compiler import is_compiling
from torch.distributions.utils import lazy_property

from softorder import _check
from softorder.densities import BUILT_IN, Density, UserDensity
from softorder.ops import soft_topk
from softorder.relaxations import ThresholdMethod
from softorder.sampling import Design
from softorder.sampling._units import extend, log_odds


@dataclass(frozen=True)
class Relaxation:
    """Logits to probabilities: π = F(θ - b) with Σ π = k, or F(θ) where k is None."""

    density: Density
    k: Tensor | None

    def probs(self, logits: Tensor) -> Tensor:
        if self.k is None:
            return self.density.cdf(logits)
        return soft_topk(logits, self.k, method=ThresholdMethod(self.density))

    def logits(self, probs: Tensor) -> Tensor:
        return log_odds(probs, self.density.quantile)


def density_of(method: str | Density | object | None) -> Density:
    """The density of that name, "logistic" for None, or one of the user's."""
    if method is None:
        return BUILT_IN["logistic"]
    if isinstance(method, str):
        _check.choice("method", method, BUILT_IN)
        return BUILT_IN[method]
    if method in BUILT_IN.values():
        return method  # type: ignore[return-value]
    _check.methods.law(method)
    return UserDensity(method)


class Parameters:
    """Rows of logits or of probabilities, and the law that a design makes of them."""

    def __init__(
        self,
        rows: Tensor,
        by_logits: bool,
        design: type[Design],
        relaxation: Relaxation,
        whole: bool,
        natural: bool,
    ) -> None:
        self.rows, self.by_logits = rows, by_logits
        self.design, self.relaxation = design, relaxation
        #: k is known to be whole
        self.whole = whole
        #: the logits are the design's own
        self.own = whole and natural and by_logits and design.takes == "logits"
        #: the last unit of the law is a phantom
        self.phantom = False

    @lazy_property
    def probs(self) -> Tensor:
        """What the design is asked for, if that is probabilities."""
        return self.relaxation.probs(self.rows) if self.by_logits else self.rows

    @lazy_property
    def law(self) -> Design:
        k = self.relaxation.k
        if self.own:
            assert k is not None
            taking_part = (self.rows > -torch.inf).sum(-1)
            return self.design(self.rows, torch.minimum(k.detach().long(), taking_part))
        if not self.design.fixed_size:
            return self.design(self.probs, torch.zeros((), dtype=torch.int64, device="cpu"))
        # Σ π is known better than by summing, unless fewer than k units take part
        total = None if k is None else torch.minimum(k, (self.probs > 0).sum(-1).double())
        extended = extend(self.probs, total, self.whole)
        if extended.phantom and not (self.design.exact or self.design.phantom):
            total = self.probs.sum(-1, dtype=torch.float64) if total is None else total
            _check.whole("k", total, f"for the design {self.design.name!r}, which is not exact")
        self.phantom = extended.phantom
        return self.design.from_probs(extended.probs, extended.size)


def fixed(k: float | Tensor | None) -> bool:
    """Whether k is whole, and not about to be learned: the natural law has no derivative in it.

    While torch.compile records a graph, a tensor is not asked.
    """
    if not isinstance(k, Tensor):
        return k is not None and float(k).is_integer()
    seen = _check.eager() or (not is_compiling() and _check.plain(k))
    return not k.requires_grad and seen and bool((k == k.round()).all())

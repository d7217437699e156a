from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from softorder import _check
from softorder.nn._choices import best, edge
from softorder.nn._tempered import Tempered
from softorder.nn.functional.balance import balanced_prices
from softorder.ops import soft_quantile, soft_topk
from softorder.ops._method import method_of

_BALANCES = ("bias", "exact")
_TOLERANCE = 1e-3  # of the loads: a token is sent whole, which shifts them by more
_ITERATIONS = 30


class Routing(NamedTuple):
    """What `so.nn.TopKRouter` found for T tokens and E experts."""

    weights: Tensor  #: (T, E), of the experts' answers; 0 where a token is not sent
    chosen: Tensor  #: (T, E), boolean: where each token is sent
    probs: Tensor  #: (T, E), the soft top-k π

    def load(self) -> Tensor:
        """(E,): how many tokens each expert has, 1 for its equal share."""
        counts = self.chosen.sum(0).to(self.probs.dtype)
        return counts * len(counts) / counts.sum().clamp(min=1)

    def balance_loss(self) -> Tensor:
        """Σ_e load_e share_e/E, at least 1 where loads and mean probabilities go together.

        share_e is E times the part that e has of all probabilities; only it has a derivative.
        """
        share = self.probs.mean(0)
        share = share * len(share) / share.sum()
        return (self.load() * share).mean()

    def mix(self, x: Tensor, experts: Sequence[nn.Module]) -> Tensor:
        """Σ_e weights_te expert_e(x_t): every expert sees its own tokens and no others.

        x is (..., features) with T tokens; what no expert takes is 0.
        """
        tokens, places = self.weights.shape
        _check.layers.mixed(x, tokens, places, len(experts))
        flat = x.reshape(tokens, -1)
        parts, rows = [], []
        for place, expert in enumerate(experts):
            own = self.chosen[:, place].nonzero().squeeze(-1)
            answer = expert(flat[own])
            parts.append(answer * self.weights[own, place].unsqueeze(-1).to(answer.dtype))
            rows.append(own)
        every = torch.cat(parts)
        result = every.new_zeros(tokens, every.shape[-1]).index_add(0, torch.cat(rows), every)
        return result.view(*x.shape[:-1], -1)


class TopKRouter(Tempered):
    """Sends each token to k of E experts: a soft top-k that is differentiated, a hard one that is
    carried out.

    With scores s = W x and a bias c for each expert,

        π = so.soft_topk(s + c, k)     Σ_e π_te = k     weights = π ⊙ [among the k largest] / k

    so only k experts work for a token, and the derivative of π lets all E scores compete for it,
    for k = 1 as well. A token weighs no more than 1.

    Balance, the same number of tokens for every expert, comes from c, which no gradient sees:

    - "bias": after each batch of training, c_e rises by `rate` where e had too few tokens and falls
      where it had too many. No loss, nothing to weigh against the task.
    - "exact": c are the prices of `so.nn.functional.balanced_topk`, for which the soft loads
      of every batch of training are equal; their derivative is that of the equations. In eval
      mode, where tokens should not depend on each other, c is the running average.
    - None: c = 0. `Routing.balance_loss()` is there for a loss that asks for balance.

    Args:
        features: of a token.
        experts: E.
        k: experts per token, an int; with adaptive=True on average.
        method: as in `so.soft_topk`; a density for "exact" and for adaptive=True.
        temperature: as in `so.soft_topk`, one number for all tokens.
        balance: "bias", "exact" or None.
        rate: by how much "bias" moves c, in units of the scores.
        momentum: the part of a new batch in what eval mode uses, the running average of the prices
            of "exact" or of the threshold of adaptive=True.
        capacity: an expert takes capacity·kT/E tokens at most, those with the largest π; the others
            go without it. None for no limit.
        adaptive: the T tokens of a batch share kT places, as in `so.nn.BatchTopK`: one threshold
            for all, so some have more experts than others, or none. In eval mode tokens do not see
            each other: the running threshold decides, and π is what it is at the running root. They
            lag behind scores that still grow, and let more than k through then.
        learnable_temperature: as in `so.nn.SoftTopK`.

    Papers: Shazeer et al. 2017; the bias is that of Wang et al. 2024 (auxiliary-loss-free).

    >>> import torch, softorder as so
    >>> _ = torch.manual_seed(0)
    >>> router = so.nn.TopKRouter(4, experts=8, k=2, temperature=0.1)
    >>> experts = [torch.nn.Linear(4, 3) for _ in range(8)]
    >>> x = torch.randn(5, 10, 4)
    >>> routing = router(x)
    >>> routing.mix(x, experts).shape, routing.chosen.sum(-1).unique()
    (torch.Size([5, 10, 3]), tensor([2]))
    >>> torch.allclose(routing.probs.sum(-1), torch.tensor(2.0))
    True
    """

    numbers = ("k", "rate", "momentum", "capacity", *Tempered.numbers)
    bias: Tensor
    threshold: Tensor
    root: Tensor
    batches: Tensor

    def __init__(
        self,
        features: int,
        experts: int,
        k: int,
        *,
        method: str | object = "laplace",
        temperature: float | Tensor = 1.0,
        balance: str | None = "bias",
        rate: float = 0.01,
        momentum: float = 0.05,
        capacity: float | None = None,
        adaptive: bool = False,
        learnable_temperature: bool = False,
    ) -> None:
        super().__init__("soft_topk", method, temperature, learnable_temperature)
        _check.count("features", features, least=1)
        _check.count("experts", experts, least=1)
        _check.count("k", k, least=1, most=experts)
        if balance is not None:
            _check.choice("balance", balance, _BALANCES)
        _check.share("rate", rate)
        _check.share("momentum", momentum)
        if capacity is not None:
            _check.positive("capacity", capacity)
        _check.flag("adaptive", adaptive)
        _check.layers.router(balance, adaptive)
        if adaptive:
            method_of("soft_quantile", method)
        self.features = features
        self.experts = experts
        self.k = k
        self.balance = balance
        self.rate = rate
        self.momentum = momentum
        self.capacity = capacity
        self.adaptive = adaptive
        self.linear = nn.Linear(features, experts, bias=False)
        self.register_buffer("bias", torch.zeros(experts))
        self.register_buffer("threshold", torch.zeros(()))
        self.register_buffer("root", torch.zeros(()))
        self.register_buffer("batches", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor) -> Routing:
        """Where the tokens (..., features) go; T is the number of them."""
        _check.layers.last_axis("x", x, self.features)
        scores = self.linear(x).reshape(-1, self.experts)
        if scores.dtype != torch.float64:
            scores = scores.float()  # near the threshold a bfloat16 has nothing to say
        if self.balance == "exact" and self.training and len(scores):
            scores = scores + self._prices(scores)
        else:
            scores = scores + self.bias.to(scores.dtype)
        probs, chosen = self._among_all(scores) if self.adaptive else self._by_token(scores)
        chosen = self._within_capacity(probs.detach(), chosen)
        if self.balance == "bias" and self.training:
            self._move_bias(chosen)
        return Routing(torch.where(chosen, probs, 0.0) / self.k, chosen, probs)

    def _by_token(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """The soft top-k of every token, and the hard one."""
        options: dict[str, Any] = {"method": self.method, "temperature": self.temperature}
        return soft_topk(scores, self.k, **options), best(scores, self.k).bool()

    def _among_all(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """The same of all tokens together, who share k for each."""
        places = self.k * len(scores)
        if not places:
            return scores, scores > 0
        if not self.training and self.calibrated:
            return self._alone(scores)
        options: dict[str, Any] = {"method": self.method, "temperature": self.temperature}
        probs = soft_topk(scores.flatten(), places, **options).view_as(scores)
        if not self.training:  # the temperature is found now
            return self._alone(scores)
        with torch.no_grad():
            options["temperature"] = self.temperature
            root = soft_quantile(scores.flatten(), 1 - self.k / self.experts, **options)
        limits = torch.finfo(self.root.dtype)
        self._average(self.root, root.clamp(limits.min, limits.max))  # -inf if k is E
        self._average(self.threshold, edge(scores, places))
        self.batches.add_(1)
        return probs, best(scores.flatten(), places).view_as(scores).bool()

    def _alone(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """The same of tokens that do not see each other: F((s - b)/τ) with the running root b."""
        found: Any = method_of("soft_quantile", self.method)
        tau: Any = self.temperature
        pi: Tensor = found.density.cdf((scores - self.root.to(scores.dtype)) / tau)
        return pi, (scores > self.threshold) | (self.k == self.experts)

    def _prices(self, scores: Tensor) -> Tensor:
        """c for which the soft loads of this batch are equal; its running average is kept."""
        numbers = self.k, self.method, self.temperature, _TOLERANCE, _ITERATIONS
        prices = -balanced_prices(scores, *numbers)
        prices = prices - prices.detach().mean()
        self._average(self.bias, prices.detach())
        self.batches.add_(1)
        return prices

    @torch.no_grad()
    def _average(self, kept: Tensor, new: Tensor) -> None:
        """The first batch counts in full."""
        new = new.to(kept.dtype)
        kept.copy_(torch.where(self.batches == 0, new, kept.lerp(new, self.momentum)))

    @torch.no_grad()
    def _move_bias(self, chosen: Tensor) -> None:
        counts = chosen.sum(0).to(self.bias.dtype)
        self.bias.add_(self.rate * torch.sign(counts.mean() - counts))

    def _within_capacity(self, probs: Tensor, chosen: Tensor) -> Tensor:
        if self.capacity is None:
            return chosen
        most = math.ceil(self.capacity * self.k * len(probs) / self.experts)
        order = torch.where(chosen, probs, -1.0).argsort(stable=True, dim=0, descending=True)
        counts = torch.arange(len(probs), device=probs.device).unsqueeze(-1).expand_as(order)
        return chosen & (torch.zeros_like(order).scatter(0, order, counts) < most)

    def extra_repr(self) -> str:
        names = "features", "experts", "k", "method", "temperature", "balance", "rate", "momentum"
        return self.describe(*names, "capacity", adaptive=self.adaptive)

"""balanced_topk."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from softorder import _axis, _check
from softorder.ops import soft_topk
from softorder.ops._method import threshold_method
from softorder.relaxations import ThresholdMethod

_HALVINGS = 8  # of a Newton step that goes too far


def balanced_topk(
    scores: Tensor,
    k: float,
    *,
    method: str | object = "laplace",
    temperature: float | Tensor = 1.0,
    tolerance: float = 1e-6,
    max_iterations: int = 100,
) -> Tensor:
    """Every row chooses k columns, and every column is chosen equally often: a soft assignment.

    Solves max_π <scores, π> - τ Σ ψ(π_te) over {π in [0,1], Σ_e π_te = k, Σ_t π_te = kT/E} for T
    rows (tokens) and E columns (experts), with ψ' = F⁻¹ as in `so.soft_topk`. The maximiser is

        π_te = F((scores_te - a_t - c_e)/τ)

    with a threshold a for each row and a price c for each column: the soft top-k of
    scores - c. With d = f(·)/τ the excess of the columns falls in c by the Laplacian

        L = diag(Σ_t d_t) - Σ_t d_t d_tᵀ/(Σ_e d_te)

    so the prices are found by Newton's method, E×E, and differentiated by the same matrix: two
    steps of value 0 from the root. Where a step does not help, each price is solved for alone.

    Args:
        scores: (..., T, E), finite.
        k: places of each row, in (0, E].
        method: a density.
        temperature: a number > 0, or a tensor with one. May require grad.
        tolerance: by how much a column may miss kT/E, as part of it. Rows sum to k.
        max_iterations: where to give up, with a warning.

    Returns:
        π, with the shape and the dtype of scores; derivatives of both orders. O(T E²) time for each
        of some ten iterations, whose end depends on the numbers: torch.compile breaks the graph.

    >>> import torch, softorder as so
    >>> scores = torch.tensor([[3.0, 1.0, 0.0], [3.0, 2.0, 0.0], [3.0, 0.0, 1.0]])
    >>> so.nn.functional.balanced_topk(scores, 1, temperature=0.3).numpy().round(2)
    array([[0.64, 0.2 , 0.16],
           [0.16, 0.8 , 0.04],
           [0.2 , 0.  , 0.8 ]], dtype=float32)
    """
    prices = balanced_prices(scores, k, method, temperature, tolerance, max_iterations)
    options: dict[str, Any] = {"method": method, "temperature": temperature}
    return soft_topk(scores - prices.to(scores.dtype).unsqueeze(-2), k, **options)


def balanced_prices(
    scores: Tensor,
    k: float,
    method: str | object,
    temperature: float | Tensor,
    tolerance: float,
    max_iterations: int,
) -> Tensor:
    """c of `balanced_topk`, (..., E), with its derivatives."""
    _check.layers.table("scores", scores)
    _check.positive_k(k)
    _check.k_among(k, scores.shape[-1], -1)
    _check.temperature(temperature, scores.flatten(), -1)
    _check.tolerance(tolerance)
    _check.count("max_iterations", max_iterations, least=1)
    served = threshold_method("soft_topk", method)
    if scores.numel() == 0:
        return scores.sum(-2)
    x = scores.double()  # a column of a million rows is to be right, too
    problem = _Problem(x, k, _axis.per_row(temperature, x), served)
    prices, miss = problem.still().prices(tolerance, max_iterations)
    if miss > tolerance:
        warnings.warn(
            f"balanced_topk stopped after {max_iterations} iterations with columns that miss their "
            f"share by up to {miss:.1e} of it: more of them help, or a higher temperature",
            stacklevel=3,
        )
    return problem.with_gradient(prices)


class _State(NamedTuple):
    """Where some prices lead."""

    excess: Tensor  # of the columns
    slopes: Tensor  # d
    thresholds: Tensor  # a


@dataclass(frozen=True)
class _Problem:
    scores: Tensor
    k: float
    temperature: Tensor
    method: ThresholdMethod

    def still(self) -> _Problem:
        """The same without derivatives."""
        return _Problem(self.scores.detach(), self.k, self.temperature.detach(), self.method)

    @property
    def share(self) -> float:
        """kT/E."""
        return self.k * self.scores.shape[-2] / self.scores.shape[-1]

    def at(self, prices: Tensor) -> _State:
        law = self.method.density.anchored
        x, u = self._distance(self.scores - prices.unsqueeze(-2), self.k)
        excess = law.cdf(u).sum(-2) - self.share
        tau = self.temperature.to(x.dtype)
        return _State(excess, law.pdf(u) / tau, self._threshold(x, u))

    def _distance(self, x: Tensor, k: float) -> tuple[Tensor, Tensor]:
        return x, self.method.distance(x, _axis.per_row(k, x), self.temperature)

    def _threshold(self, x: Tensor, u: Tensor) -> Tensor:
        """b of u = (x - b)/τ."""
        return (x - self.temperature.to(x.dtype) * (u - self.method.density.anchored.middle))[
            ..., 0
        ]

    @torch.no_grad()
    def prices(self, tolerance: float, max_iterations: int) -> tuple[Tensor, float]:
        """The root, and by how much a column misses its share at most."""
        prices = self.scores.mean(-2)
        state = self.at(prices)
        for _ in range(max_iterations):
            if self._worst(state) <= tolerance:
                break
            prices, state = self._step(prices, state)
        return prices, self._worst(state)

    def _worst(self, state: _State) -> float:
        return state.excess.abs().max().item() / self.share

    def _step(self, prices: Tensor, state: _State) -> tuple[Tensor, _State]:
        """Newton's, halved until the excess falls; if it does not, each price alone."""
        direction = _solve(state.slopes, state.excess)
        for part in (0.5**halving for halving in range(_HALVINGS)):
            tried = prices + part * direction
            reached = self.at(tried)
            if _size(reached) < (1 - 0.25 * part) * _size(state):
                return tried, reached
        return self._alone(state)

    def _alone(self, state: _State) -> tuple[Tensor, _State]:
        """c_e with Σ_t F((scores_te - a_t - c_e)/τ) = kT/E for thresholds a that stay."""
        columns = (self.scores - state.thresholds.unsqueeze(-1)).mT
        found = self._threshold(*self._distance(columns.contiguous(), self.share))
        return found, self.at(found)

    def with_gradient(self, prices: Tensor) -> Tensor:
        """Newton steps of value 0: they have the derivatives of the root."""
        learns = self.scores.requires_grad or self.temperature.requires_grad
        if not (torch.is_grad_enabled() and learns):
            return prices
        slopes = self.at(prices).slopes.detach()
        for _ in range(2):
            excess = self.at(prices).excess
            prices = prices + _solve(slopes, excess - excess.detach())
        return prices


def _size(state: _State) -> float:
    return state.excess.square().sum().item()


def _solve(slopes: Tensor, excess: Tensor) -> Tensor:
    """L⁻¹ excess. L does not see what is added to all prices: that is taken as 0."""
    total = slopes.sum(-1, keepdim=True).clamp(min=torch.finfo(slopes.dtype).tiny)
    laplacian = torch.diag_embed(slopes.sum(-2)) - slopes.mT @ (slopes / total)
    experts = slopes.shape[-1]
    scale = slopes.sum((-1, -2)).clamp(min=torch.finfo(slopes.dtype).tiny) / experts
    ones = torch.ones_like(laplacian) / experts
    ridge = 16 * torch.finfo(slopes.dtype).eps * torch.eye(experts, device=slopes.device)
    whole = laplacian + scale[..., None, None] * (ones + ridge.to(slopes.dtype))
    centred = excess - excess.mean(-1, keepdim=True)
    return torch.linalg.solve(whole, centred.unsqueeze(-1)).squeeze(-1)

"""The law of Pareto sampling in plain torch: some rows after others, so that levels fit a cache."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from softorder.kernels.pareto.levels import Levels, clamped

_AT_ONCE = 1 << 19  # numbers, 4 MB
_USUAL = 32  # levels


def weights(u: Tensor, size: Tensor, fine: bool) -> Tensor:
    parts = [_levels(u[rows], size[rows], fine).weights() for rows in _rows(u)]
    return torch.cat(parts) if parts else torch.empty_like(u)


def log_prob(u: Tensor, size: Tensor, draws: Tensor, fine: bool) -> tuple[Tensor, Tensor]:
    return formula(u, size, draws, weights(u, size, fine))


def formula(u: Tensor, size: Tensor, draws: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """log P(x) from the weights, and <c,x>; differentiable."""
    taken = torch.where(draws > 0, weights, 0.0).sum(-1)
    choice = u.isfinite().any(-1) & (size > 0)
    log_p = logsigmoid(torch.where(draws > 0, u, -u)).sum(-1)
    log_p = log_p + torch.where(choice, taken, 1.0).log()
    return torch.where(draws.sum(-1) == size, log_p, -torch.inf), taken


def vjp(u: Tensor, size: Tensor, shares: Tensor, fine: bool) -> Tensor:
    parts = []
    for rows in _rows(u):
        own, levels = shares[rows], _levels(u[rows], size[rows], fine)
        parts.append(_moved(u[rows], own, levels))
    return torch.cat(parts) if parts else torch.empty_like(u)


def _moved(u: Tensor, shares: Tensor, levels: Levels) -> Tensor:
    """Where p is nearly 1, by means of q."""
    odds, times, weight, q = levels
    pull = weight * (q @ shares.unsqueeze(-1)).squeeze(-1)
    over, under = (torch.stack([pull, pull * times], -2) @ q).unbind(-2)
    own = ((weight * times).unsqueeze(-2) @ q.square()).squeeze(-2)
    own = own * odds * shares
    away = torch.exp(-(clamped(u) - u).abs())
    return away * torch.where(u > 0, over - own, -(odds * under + own))


def _levels(u: Tensor, size: Tensor, fine: bool) -> Levels:
    return Levels.of(u.detach(), size, torch.float64 if fine else torch.float32)


def _rows(u: Tensor) -> list[slice]:
    """Some rows at once."""
    number = max(1, _AT_ONCE // (_USUAL * max(u.shape[-1], 1)))
    return [slice(i, i + number) for i in range(0, len(u), number)]

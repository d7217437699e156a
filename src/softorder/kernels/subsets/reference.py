"""log P(x) of subsets in plain torch, and its gradient."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, pad

from softorder.densities import BUILT_IN
from softorder.kernels import threshold
from softorder.kernels.formulas import distance
from softorder.kernels.subsets.circle import MOST_POINTS as POINTS
from softorder.kernels.subsets.circle import Subsets


def log_prob(logits: Tensor, size: Tensor, draws: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """log P of the draws; and shifts, angles and weights of the circle."""
    theta = logits.detach()
    one = torch.ones((), dtype=torch.float64, device=theta.device)
    b = threshold.solve(theta, size, one, BUILT_IN["logistic"]).b
    u = _shifted(theta, b)
    law = Subsets(u, size, theta.dtype)
    chances = logsigmoid(torch.where(draws > 0, u, -u)).sum(-1)
    log_p = torch.where(_possible(draws, size), chances - law.log_mass, -torch.inf)
    missing = POINTS - law.angle.shape[-1]
    weight = pad(torch.view_as_real(law.weight), (0, 0, 0, missing))
    return log_p, b, pad(law.angle, (0, missing)), weight


def vjp(
    upstream: Tensor,
    logits: Tensor,
    size: Tensor,
    draws: Tensor,
    b: Tensor,
    angle: Tensor,
    weight: Tensor,
) -> Tensor:
    """The gradient of the logits: upstream · (x - E[x]), 0 where a unit is certain."""
    u = _shifted(logits, b)
    mean = Subsets.known(u, angle, torch.view_as_complex(weight)).inclusion.inside
    upstream = torch.where(_possible(draws, size), upstream, 0.0).unsqueeze(-1)
    moved = (upstream * draws).sum(0) - upstream.sum(0) * mean
    return torch.where(u.isinf(), 0.0, moved).to(logits.dtype)


def _shifted(logits: Tensor, b: Tensor) -> Tensor:
    one = torch.ones((), dtype=torch.float64, device=logits.device)
    return distance(logits.double(), b.double(), one)


def _possible(draws: Tensor, size: Tensor) -> Tensor:
    return draws.sum(-1, dtype=torch.float64) == size

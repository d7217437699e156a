"""The recursion over the units that SIMPLE uses: O(n k), in n steps.

log e_j of the first i units from those of i - 1; marginals are the derivative of log e_k; a draw
goes back through the table.
"""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.cases import Case
from benchmarks.providers._provider import Operator, Provider


def _tables(theta: Tensor, k: int) -> list[Tensor]:
    # not -inf: derivatives would be NaN
    start = torch.full((*theta.shape[:-1], k + 1), -1e6, dtype=theta.dtype)
    start[..., 0] = 0.0
    tables = [start]
    for unit in theta.unbind(-1):
        last = tables[-1]
        taken = last[..., :-1] + unit.unsqueeze(-1)
        either = torch.stack([last[..., 1:], taken]).logsumexp(0)
        tables.append(torch.cat([last[..., :1], either], -1))
    return tables


def _draw(theta: Tensor, tables: list[Tensor], k: int) -> Tensor:
    left = torch.full(theta.shape[:-1], k)
    x = torch.zeros_like(theta)
    for i in range(theta.shape[-1] - 1, -1, -1):
        before = tables[i].gather(-1, (left - 1).clamp(min=0).unsqueeze(-1)).squeeze(-1)
        now = tables[i + 1].gather(-1, left.unsqueeze(-1)).squeeze(-1)
        chance = torch.where(left > 0, torch.exp(theta[..., i] + before - now), 0.0)
        taken = torch.rand_like(chance) < chance
        x[..., i] = taken.to(x.dtype)
        left = left - taken.long()
    return x


def _bind(case: Case) -> Operator:
    def operator(scores: Tensor) -> Tensor:
        theta = scores if scores.requires_grad else scores.clone().requires_grad_()
        tables = _tables(theta, case.k)
        total = tables[-1][..., case.k].sum()
        (marginals,) = torch.autograd.grad(total, theta, create_graph=True)
        with torch.no_grad():
            x = _draw(theta, tables, case.k)
        return x + (marginals - marginals.detach())

    return operator


provider = Provider("recursion", "SIMPLE's recursion", _bind)

"""Lap-Top-k by the closed form of the LapSum paper (Section 4, Algorithm 1), in plain torch.

Sort, two scans, find the interval that holds the threshold, solve a quadratic equation there. The
scans are kept as logarithms, relative to the k-th largest score, so that nothing overflows.
"""

from __future__ import annotations

from typing import Any

import torch

from benchmarks.cases import Case
from benchmarks.providers._provider import Operator, Provider


def threshold(scores: torch.Tensor, k: int, temperature: float) -> torch.Tensor:
    """The b of Σ Lap((x_i - b)/τ) = k, one per row, for 0 < k < n."""
    n = scores.shape[-1]
    r = torch.sort(scores, -1, descending=True).values
    origin = r[..., k - 1 : k]
    r = (r - origin) / temperature

    # For b between r[m] and r[m-1], with t = exp(b), U = Σ_{i<m} exp(-r_i), L = Σ_{i>=m} exp(r_i):
    #     Σ Lap(r_i - b) = m - U t / 2 + L / (2 t)
    log_upper = torch.logcumsumexp(-r, -1)  # of U at m = i + 1
    log_lower = torch.logcumsumexp(r.flip(-1), -1).flip(-1)  # of L at m = i
    rank = torch.arange(1, n + 1, dtype=r.dtype, device=r.device)
    at_scores = rank - ((log_upper + r).exp() - (log_lower - r).exp() + 1) / 2  # b = r[i]
    m = torch.searchsorted(at_scores, torch.full_like(origin, k))

    # U t² - 2 (m - k) t - L = 0
    log_upper = log_upper.gather(-1, (m - 1).clamp_min(0)).masked_fill(m == 0, -torch.inf)
    log_lower = log_lower.gather(-1, m.clamp_max(n - 1)).masked_fill(m == n, -torch.inf)
    log_half = (m - k).abs().to(r.dtype).log()
    log_root = torch.logaddexp(2 * log_half, log_upper + log_lower) / 2
    log_sum = torch.logaddexp(log_half, log_root)
    log_t = torch.where(m >= k, log_sum - log_upper, log_lower - log_sum)
    return origin + temperature * log_t


class _LapTopK(torch.autograd.Function):
    """Forward by the closed form, backward by equation (5) of the paper."""

    @staticmethod
    def forward(ctx: Any, scores: torch.Tensor, k: int, temperature: float) -> torch.Tensor:
        u = (scores - threshold(scores, k, temperature)) / temperature
        tail = torch.exp(-u.abs()) / 2
        p = torch.where(u < 0, tail, 1 - tail)
        ctx.save_for_backward(tail / temperature)
        return p

    @staticmethod
    def backward(ctx: Any, *upstream: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        (s,) = ctx.saved_tensors
        (v,) = upstream
        mean = (s * v).sum(-1, keepdim=True) / s.sum(-1, keepdim=True)
        return s * (v - mean), None, None


def _bind(case: Case) -> Operator:
    return lambda scores: _LapTopK.apply(scores, case.k, case.temperature)


provider = Provider("closed-form", "LapSum closed form", _bind)

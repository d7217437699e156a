"""F-sums of the uniform density in plain torch: sums over windows, without any cancellation."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from softorder.kernels.formulas import at_hand
from softorder.kernels.fsum.problem import Problem, Split, ascending, found_below, prefix_sums


def fsum(problem: Problem, derivative: int, moment: int) -> Tensor:
    """Σ_i w_i u^moment F^(derivative)(u), in O((m + n) log m)."""
    x, t, count, half = problem.x, problem.t, problem.sources, 0.5 * problem.tau
    if derivative > 1:
        return torch.zeros_like(t.value)
    done = found_below(x, t.moved(-half), count, right=True)  # u >= 1/2
    begun = found_below(x, t.moved(half), count, right=False)  # u > -1/2
    begun = torch.maximum(begun, done)
    sums, reference = _window_sums(problem, done, begun, max(moment, 1 - derivative))
    s = problem.offsets(reference)
    if derivative == 1:
        return torch.where(begun > done, _moment(sums, s, moment), 0.0)
    inside = torch.where(begun > done, _moment(sums, s, 1) + 0.5 * sums[0], 0.0)
    return inside + prefix_sums(problem.w).gather(-1, done)


def _moment(sums: list[Tensor], s: Tensor, k: int) -> Tensor:
    """Σ w (s - v)^k from the sums of w v^i."""
    terms = [math.comb(k, i) * (-1) ** i * s ** (k - i) * sums[i] for i in range(k + 1)]
    return torch.stack(terms).sum(0)


def _window_sums(
    problem: Problem, begin: Tensor, end: Tensor, moment: int
) -> tuple[list[Tensor], Tensor]:
    """Σ w v^k over sources [begin, end), v = (x_i - x_r)/τ, k = 0..moment; and r, in the window.

    No difference of prefix sums, which would cancel: a window is cut at the roundest place inside
    it, and added up from there to both sides. One turn serves all the windows that are cut at
    places of the same roundness.
    """
    m = problem.x.size
    size = 1 << m.bit_length()
    x = problem.x.map(lambda v: torch.cat([v, v[..., -1:].expand(*v.shape[:-1], size - m)], -1))
    w = torch.nn.functional.pad(problem.w, (0, size - m))
    sums = [torch.zeros(begin.shape, dtype=w.dtype, device=w.device) for _ in range(moment + 1)]
    reference = torch.zeros_like(begin)
    different = begin ^ end
    width = size // 2
    while width > 0:
        here = (different >= width) & (different < 2 * width) & (begin < end)
        if not at_hand(here) or bool(here.any()):
            cut = end & -width
            after = here & (end > cut)
            for k, table in enumerate(_outward_sums(x, w, problem.tau, width, moment)):
                sums[k] += torch.where(here, table.gather(-1, begin.clamp(max=size - 1)), 0.0)
                sums[k] += torch.where(after, table.gather(-1, (end - 1).clamp(min=0)), 0.0)
            reference = torch.where(here, cut - 1, reference)
        width //= 2
    return sums, reference


def _outward_sums(x: Split, w: Tensor, tau: Tensor, width: int, moment: int) -> list[Tensor]:
    """In blocks of two times `width`: Σ w v^k from the middle of the block to every place in it."""
    blocks = x.map(lambda v: v.unflatten(-1, (-1, 2, width)))
    v = blocks.minus(blocks[..., :1, -1:]) / tau[..., None, None]
    weights = w.unflatten(-1, (-1, 2, width))
    tables = []
    for k in range(moment + 1):
        terms = weights * v**k
        left = terms[..., :1, :].flip(-1).cumsum(-1).flip(-1)
        tables.append(torch.cat([left, terms[..., 1:, :].cumsum(-1)], -2).flatten(-3))
    return tables


def invert(problem: Problem, levels: Tensor) -> tuple[Tensor, Tensor]:
    """FSum is linear between the places x_i ± τ/2: find the sources that are done and begun."""
    x, tau, count = problem.x, problem.tau, problem.sources
    ends, begins = (
        ascending(fsum(replace(problem, t=x.moved(side * tau)), 0, 0), count)
        for side in (0.5, -0.5)
    )
    done = torch.searchsorted(ends, levels.contiguous(), right=True)
    begun = torch.maximum(torch.searchsorted(begins, levels.contiguous()), done)
    sums, reference = _window_sums(problem, done, begun, 1)
    inside = begun - done
    crowded = inside > 0
    centre = x.value.gather(-1, torch.where(crowded, reference, (done - 1).clamp(min=0)))
    along = ((levels - done) - 0.5 * inside + sums[1]) / torch.where(crowded, inside, 1)
    next_source = x.value.gather(-1, done.clamp(max=x.size - 1))
    return centre, torch.where(crowded, along * tau, 0.5 * (next_source - centre))

"""Solves Σ_i F((x_i - b)/τ) = k for many rows at once: one safeguarded loop, on any device.

    R(b) = Σ_i F((x_i - b)/τ) - k = (above - k) + lower - upper

decreases in b. `above` counts the scores above b; `lower` and `upper` are the sums of the tails
F(-|u|) on either side of b, so that R keeps its relative accuracy when almost every p is 0 or 1.
A pass over the scores gives these sums and their derivatives, and these give a step. Where it
leaves the bracket it is cut short; where R hardly fell the bracket is halved instead.

The loop has a fixed length and asks the device nothing: rows that are done keep their b. Where the
numbers are at hand, on a CPU, it ends when all rows are done, and rows that are easy do without.

Everything is in units of τ: b = centre + τ t. An answer is centre, rest = τ t and the number of
passes of every row, stacked, in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from softorder.densities import Density
from softorder.kernels.formulas import inverse, scale_of
from softorder.kernels.shards import WHOLE, Whole
from softorder.kernels.threshold import start
from softorder.kernels.threshold.gap import balance, faint, in_gap
from softorder.kernels.threshold.sums import (
    Numbers,
    blocks_of,
    choose,
    measure,
    settled,
    some,
    step,
)

_PASSES = 20
_EASY_PASSES = 5
_FALLS = 0.5  # of |R|/tails before: what is left, at most, where rows are easy
_FAR = 16.0  # in τ: beyond, differences from the centre are no longer exact enough
_SLOW = 0.8  # of |R|/tails before: a step that leaves more was no better than halving
_MOST = 0.9  # of the way to the end of the bracket: where a step goes that would pass it


def solve(x: Tensor, k: Tensor, tau: Tensor, law: Density, at_hand: bool) -> Tensor:
    """The answer for the rows of a matrix; `at_hand` tells whether its numbers may be asked for."""
    if not at_hand:
        return _solve(x, k, tau, torch.zeros_like(tau), law, at_hand)
    if len(x) == 1:
        width = tau.item()
        centre, t, passes, done = _approach(x, k.item(), width, law)
        if done:
            return tau.new_tensor([[centre.item()], [width * t], [passes]])
        return _solve(x, k, tau, passes + 0 * tau, law, at_hand)
    centre, t, passes, done = _approach(x, k, tau, law)
    answer = torch.stack([centre.to(tau.dtype), tau * t, passes])
    find = partial(_solve, law=law, at_hand=at_hand)
    return amend(answer, ~done, at_hand, find, x, k, tau, passes)


def _solve(
    x: Tensor, k: Tensor, tau: Tensor, passes: Tensor, law: Density, at_hand: bool
) -> Tensor:
    rows, bracket, part = start.select(start.rows_of(x, k, tau, law, at_hand))
    return start.grown(finish(rows, bracket, passes + start.SELECTION), part, x.dtype)


def finish(rows: start.Rows, bracket: tuple[Tensor, ...], passes: Tensor) -> Tensor:
    """The answer for any rows, from a bracket as in `start.around`."""
    answer, gap = _iterate(rows, bracket, passes)
    find = partial(balance, law=rows.law, at_hand=rows.at_hand, shards=rows.shards)
    answer = amend(answer, gap, rows.at_hand, find, rows.x, rows.tau, *answer)
    find = partial(start.convention, law=rows.law)
    numbers = rows.k, rows.tau, rows.certain, rows.valid
    return amend(answer, ~rows.rooted, rows.at_hand, find, *numbers)


def amend(
    answer: Tensor, which: Tensor, at_hand: bool, find: Callable[..., Tensor], *rows: Tensor
) -> Tensor:
    """Another answer for some rows: found for these alone, if it can be seen which they are."""
    if not at_hand:
        return torch.where(which, find(*rows), answer)
    if which.any():
        answer[:, which] = find(*(v[which] for v in rows))
    return answer


# ---- the loop -----------------------------------------------------------------------------------


def _iterate(
    rows: start.Rows, bracket: tuple[Tensor, ...], passes: Tensor
) -> tuple[Tensor, Tensor]:
    """The answer of every row, and which rows have b in a gap so wide that the tails vanish."""
    x, tau, law = rows.x, rows.tau, rows.law
    centre, t, left, right = bracket
    scale = inverse(tau, x.dtype)
    live, gap = rows.rooted, torch.zeros_like(rows.rooted)
    limit = torch.full_like(tau, math.inf)
    for _ in range(_PASSES):
        passes = passes + live
        near = (centre + tau * t).to(x.dtype)  # x - near is exact around b
        shift = (centre - near) / tau
        centre, t, left, right = near.to(tau.dtype), t + shift, left + shift, right + shift
        blocks = blocks_of(x, near, scale, _column(t, x.dtype), rows.at_hand)
        sums = measure(blocks, rows.k, law, rows.n, rows.shards)
        size, up, empty = sums.size(), sums.residual > 0, in_gap(sums, law)
        done, falls = settled(sums, law, x.dtype), size < limit
        left, right = torch.where(up, t, left), torch.where(up, right, t)
        goal = t + step(sums, law)
        inside = done | ((goal > left) & (goal < right))
        goal = torch.where(inside, goal, torch.lerp(t, torch.where(up, right, left), _MOST))
        goal = torch.where(done | falls, goal, torch.lerp(left, right, 0.5))
        t = torch.where(live & ~empty, goal, t)
        gap, live = gap | (live & empty), live & ~(done | empty)
        limit = torch.where(falls, _SLOW * size, math.inf)
        if rows.at_hand and not live.any():
            break
    return torch.stack([centre, tau * t, passes]), gap


def _approach(
    x: Tensor, k: Numbers, tau: Numbers, law: Density
) -> tuple[Tensor, Numbers, Numbers, Any]:
    """Centre, t and the passes of every row, and which rows are done: those that are easy."""
    centre, limit, spent = start.guess(x, k, tau, law, solve)
    return centre, *approach(x, k, tau, law, centre, limit, spent)


def approach(
    x: Tensor,
    k: Numbers,
    tau: Numbers,
    law: Density,
    centre: Tensor,
    limit: Numbers,
    spent: int,
    n: Tensor | None = None,
    shards: Whole = WHOLE,
    falls: float = _FALLS,
) -> tuple[Numbers, Numbers, Any]:
    """t and the passes of every row, and which rows are done, from a guess.

    An easy row needs no bracket: it has a good guess, and the size of R falls with every step, to
    the part `falls` of what it was.
    """
    scale = scale_of(tau, x.dtype)
    going, done, t, passes = limit > 0, limit < 0, 0.0 * limit, spent + 0.0 * limit
    for _ in range(_EASY_PASSES):
        if not some(going):
            break
        passes = passes + going
        blocks = blocks_of(x, centre, scale, _column(t, x.dtype), at_hand=True)
        sums = measure(blocks, k, law, n, shards)
        size, small = sums.size(), settled(sums, law, x.dtype)
        going = going & (small | (size < limit)) & (abs(t) < _FAR) & (faint(sums, law) ^ True)
        t = choose(going, t + step(sums, law), t)
        done, going = done | (going & small), going & (small ^ True)
        limit = falls * size
    return t, passes, done


def _column(value: Numbers, dtype: torch.dtype) -> float | Tensor:
    return value if isinstance(value, float) else value.to(dtype).unsqueeze(-1)

"""One pass over the scores: sums over F, and the step that they suggest.

Numbers per row are tensors, but floats where there is a single row and its numbers are at hand: a
short row costs as much as it needs calls of torch. What is written here serves both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from softorder.densities import Density
from softorder.kernels.shards import WHOLE, Whole

Numbers = Any  #: one per row: a tensor, or a float

_BLOCK = 65536  # scores at a time
_SMALL = 32768  # up to here one long sum is faster than several short ones
_ROUNDING = 16  # in units of the last digit of Σ p: R is no better than that
# |R|/tails so small that the step which follows is the last: one of third order; one past scores
# where f has a kink, which leaves no more than the square; any other.
_SHORT = {torch.float32: (1e-2, 5e-4, 1e-4), torch.float64: (1e-5, 2e-7, 1e-8)}
_NEAR = 0.1  # a size of R for which Newton's step is exact, perhaps, if R is linear in pieces


class Sums(NamedTuple):
    """Sums over a row, all doubled: then lower = Σ v - Σ side v and upper = Σ v + Σ side v."""

    extra: Numbers  # how many scores are above b, minus k
    residual: Numbers  # R = extra + lower - upper
    lower: list[Numbers]  # Σ v for v = F(-|u|), f(u), -f'(|u|) over the scores below b
    upper: list[Numbers]  # the same above b
    kinds: int  # how many of these v differ
    tiny: float  # what is less may have lost its digits

    def size(self) -> Numbers:
        """|R| in units of the tails."""
        return abs(self.residual) / (self.lower[0] + self.upper[0] + self.tiny)


def measure(
    blocks: Iterable[Tensor],
    k: Numbers,
    law: Density,
    n: Numbers | None = None,
    shards: Whole = WHOLE,
) -> Sums:
    """One pass over u = (x - b)/τ, in blocks, which are overwritten. Sums are of the kind of k.

    `n` is the length of the rows, if some of it is on other ranks.
    """
    found, length = None, 0
    for u in blocks:
        side, *values = law.sides(u)
        known = [v for v in dict.fromkeys(values) if v is not None]  # Laplace: all are the same
        own = _totals(side, known)
        found = own if found is None else found.double() + own
        length += u.shape[-1]
    assert found is not None
    if isinstance(k, float):
        above, *sums = (total for (total,) in found.tolist())
    else:
        above, *sums = shards.add(found.to(k.dtype)).unbind()
    plain, signed = sums[: len(known)], sums[len(known) :]
    lower = [_positive(p - s) for p, s in zip(plain, signed, strict=True)]
    upper = [_positive(p + s) for p, s in zip(plain, signed, strict=True)]
    if len(known) == 1:
        lower, upper = 3 * lower, 3 * upper
    elif len(known) == 2:  # a user's density need not tell its slope
        lower, upper = [*lower, 0.0 * above], [*upper, 0.0 * above]
    extra = above + ((length if n is None else n) - 2 * k)
    residual, tiny = extra - 2 * signed[0], torch.finfo(u.dtype).tiny
    return Sums(extra, residual, lower, upper, len(known), tiny)


def block_size(x: Tensor) -> int:
    """How many places of all rows are taken at a time, so that copies of them stay in a cache."""
    return max(_BLOCK // max(x.shape[:-1].numel(), 1), 1024)


def blocks_of(
    x: Tensor, centre: Tensor, scale: float | Tensor, t: float | Tensor, at_hand: bool
) -> Iterator[Tensor]:
    """(x - centre)·scale - t; of long rows that are at hand, as much at a time as a cache holds."""
    long = at_hand and x.numel() > 2 * _BLOCK
    for part in x.split(block_size(x), -1) if long else (x,):
        yield (part - centre.unsqueeze(-1)).mul_(scale).sub_(t)


def _totals(side: Tensor, values: list[Tensor]) -> Tensor:
    """Sums of side, of the values, and of the values times side; overwrites them.

    In their own dtype, where torch sums in pairs: a copy in float64 would take most of the time.
    """
    if side.numel() <= _SMALL:
        return torch.stack([side, *values, *(v * side for v in values)]).sum(-1)
    plain = [v.sum(-1) for v in (side, *values)]
    return torch.stack(plain + [v.mul_(side).sum(-1) for v in values])


def settled(sums: Sums, law: Density, dtype: torch.dtype) -> Any:
    """Whether what the next step leaves can be neglected."""
    if law.decay == "none":  # the p that make up R, rounded
        rounding = _ROUNDING * torch.finfo(dtype).eps
        return abs(sums.residual) <= rounding * (sums.lower[0] + sums.upper[1])
    third, kinked, second = _SHORT[dtype]
    smooth = third if sums.kinds == 3 and law.decay == "exponential" else second
    return sums.size() <= (kinked if sums.kinds == 1 else smooth)


def step(sums: Sums, law: Density) -> Numbers:
    """How far to move b, in units of τ: Halley's step for φ(more) - φ(less), from anywhere.

    Both are positive, and R = more - less. φ makes the tails linear in b: it is a logarithm if
    they are exponential, -1/y if they are hyperbolic; without tails see `_power_step`.
    """
    (lower, fall, fall_bend), (upper, rise, rise_bend) = sums.lower, sums.upper
    more = _positive(sums.extra) + lower + sums.tiny
    less = _positive(-sums.extra) + upper + sums.tiny
    if law.decay == "none":
        return _power_step(sums, more, less)
    fall, rise, fall_bend, rise_bend = fall / more, rise / less, fall_bend / more, rise_bend / less
    if law.decay == "exponential":
        gain, weight, twist = _log(more) - _log(less), 1.0, 1.0
    else:  # φ(more) - φ(less) times less
        weight = less / more
        gain, twist = 1 - weight, 2.0
    slope = weight * fall + rise + sums.tiny
    bend = weight * (fall_bend - twist * fall * fall) - (rise_bend - twist * rise * rise)
    newton = gain / slope
    return newton / (1 - _within(0.5 * newton * bend / slope, 0.5))


def _power_step(sums: Sums, more: Numbers, less: Numbers) -> Numbers:
    """Newton's step for φ(y) = y^w/w, where a density without tails has its w from its window.

    As if the scores that follow were spread like those inside: w = 1 if all are at one place, 1/2
    if they are uniform, 0 if they thin out like an exponential. Near the root R is linear.
    """
    (lower, below, lower_square), (upper, above, upper_square) = sums.lower, sums.upper
    below_counts = below > above
    tail, count, square = (
        choose(below_counts, *pair)
        for pair in ((lower, upper), (below, above), (lower_square, upper_square))
    )
    w = 2 * tail * tail / (square * count + sums.tiny) - 1
    w = choose(sums.size() < _NEAR, 1.0 + 0 * w, _within(w, 1.0) + 1e-9)  # never 0
    log = _log(more) - _log(less)
    power = _exp(w * log)
    return (power - 1) / w / (power * below / more + above / less + sums.tiny)


# ---- what floats and tensors do not have in common ----------------------------------------------


def some(flags: Any) -> bool:
    """Whether any of the rows, whose numbers are at hand, has the flag."""
    return flags if isinstance(flags, bool) else bool(flags.any())


def _positive(value: Numbers) -> Numbers:
    return max(value, 0.0) if isinstance(value, float) else value.clamp(min=0)


def _within(value: Numbers, most: float) -> Numbers:
    if isinstance(value, float):
        return max(-most, min(value, most))
    return value.clamp(-most, most)


def choose(which: Any, one: Numbers, other: Numbers) -> Numbers:
    """One or the other, for every row."""
    return torch.where(which, one, other) if isinstance(which, Tensor) else one if which else other


def _log(value: Numbers) -> Numbers:
    return math.log(value) if isinstance(value, float) else value.log()


def _exp(value: Numbers) -> Numbers:
    return math.exp(min(value, 700.0)) if isinstance(value, float) else value.exp()

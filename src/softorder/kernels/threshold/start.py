"""Where the solver starts: a guess from the moments of a row, or a bracket by selection.

And what comes instead of a start where the threshold is not a finite number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from softorder.densities import Density, UserDensity
from softorder.kernels.formulas import far_from
from softorder.kernels.shards import WHOLE, Whole
from softorder.kernels.threshold.sums import Numbers, choose

SELECTION = 2  # passes that a selection counts as

_SAMPLE = 4096  # a row four times as long is first solved on a sample of this size
_SHARP = 16.0  # a row so wide (in τ) has few scores near b: its moments tell too little
# |R| in units of the tails, at most, where a guess is good; far tails hide what is near
GOOD = {"exponential": 1.0, "hyperbola": 0.5, "none": 4.0}
_FAIR = 4.0  # the same for a guess from the nearest scores
_SLACK = 1e-3  # of τ: the ends of a bracket are rounded
_SHRINK = 2.0**-16  # leaves room for sums of a few numbers


class Rows(NamedTuple):
    """The rows of a matrix and their problems."""

    x: Tensor
    k: Tensor
    tau: Tensor
    certain: Tensor  # how many scores are +inf
    valid: Tensor  # how many are not -inf; NaN if one is NaN
    law: Density
    at_hand: bool
    n: Tensor | None = None  # scores on all ranks together, if they are cut
    shards: Whole = WHOLE

    @property
    def rooted(self) -> Tensor:
        """Whether the threshold is a finite number."""
        return (self.k > self.certain) & (self.k < self.valid)


def rows_of(x: Tensor, k: Tensor, tau: Tensor, law: Density, at_hand: bool) -> Rows:
    """The rows, with their infinities counted; finite rows that are at hand have none."""
    certain = torch.zeros_like(tau)
    valid = certain + x.shape[-1]
    if not (at_hand and x.sum().isfinite()):
        certain = certain + (x == math.inf).sum(-1)
        valid = torch.where(x.isnan().any(-1), math.nan, valid - (x == -math.inf).sum(-1))
    return Rows(x, k, tau, certain, valid, law, at_hand)


def convention(k: Tensor, tau: Tensor, certain: Tensor, valid: Tensor, law: Density) -> Tensor:
    """The answer by the contract for rows without a finite threshold."""
    none, all_, nan = k <= 0, k >= valid, valid.isnan()
    centre = torch.where(all_ & ~none, -math.inf, math.inf)
    rest = torch.where(k == certain, -math.inf, -tau * law.quantile(k / certain))
    rest = torch.where(none, math.inf, torch.where(all_, 0.0, rest))
    return torch.stack(
        [torch.where(nan, math.nan, centre), torch.where(nan, 0.0, rest), torch.ones_like(k)]
    )


def guess(
    x: Tensor, k: Numbers, tau: Numbers, law: Density, solve: Callable[..., Tensor]
) -> tuple[Tensor, Numbers, int]:
    """A threshold near the root, in the dtype of x, the size that R may have there, and passes.

    The smoothed row is taken for a sum of two variables, a bell and F. Their quantiles add like
    errors; but far out in an exponential tail of F the bell only adds its cumulant.
    """
    n = x.shape[-1]
    if n >= 4 * _SAMPLE:
        sample = x[:, :: n // _SAMPLE].contiguous()
        numbers = (k * (sample.shape[-1] / n), tau)
        rows = (torch.as_tensor(v, dtype=torch.float64).expand(len(x)) for v in numbers)
        found = solve(sample, *rows, law, True)
        return (found[0] + found[1]).to(x.dtype), GOOD[law.decay] + 0.0 * tau, 1
    mean, deviation, bell, own = _moments(x, k / n, law)
    spread = 1.25 * deviation / tau
    easy = (spread < 0.5 * n - abs(k - 0.5 * n)) & (spread < _SHARP)
    if easy is False and 0 < k < n and spread < math.inf and law.decay != "hyperbola":
        return torch.tensor(_among_few(x, k, tau, law), dtype=x.dtype), _FAIR, 1 + SELECTION
    by = beyond_the_mean(spread, bell, own, law)
    return torch.as_tensor(mean + tau * by, dtype=x.dtype), GOOD[law.decay] * easy, 1


def beyond_the_mean(spread: Numbers, bell: Numbers, own: Numbers, law: Density) -> Numbers:
    """How far b is from the mean of a bell, in units of τ, as its deviation is."""
    wide = spread * bell
    size = (wide * wide + own * own) ** 0.5
    if law.decay == "exponential":
        cumulant = 0.5 * spread * spread
        size = choose(own > cumulant + spread, own + cumulant, size)
    return choose(bell < 0, -size, size) - law.middle


def _among_few(x: Tensor, k: float, tau: float, law: Density) -> float:
    """b of a single row as if only the nearest scores counted."""
    whole, part = int(k), k % 1
    chosen = x.topk(whole + 1, sorted=False).values
    nearest = chosen.topk(min(2, whole + 1), largest=False).values.flatten().tolist()
    if part == 0:
        return 0.5 * sum(nearest) - tau * law.middle
    own = _known_or_not(part, law)[1]
    return nearest[0] + tau * ((own if part < 0.5 else -own) - law.middle)


def _moments(x: Tensor, share: Numbers, law: Density) -> tuple[Numbers, ...]:
    """Mean and deviation of the scores; how far the quantiles of a bell and of F are out."""
    n, total = x.shape[-1], x.sum(-1)
    if isinstance(share, float):
        mean: Numbers = total.item() / n
        deviation = (x - mean).abs_().sum().item() / n
        return mean, deviation, *_known_or_not(share, law)
    mean = total.to(share.dtype) / n
    deviation = (x - (total / n).unsqueeze(-1)).abs_().sum(-1).to(share.dtype) / n
    return mean, deviation, *quantiles(share, law)


def quantiles(share: Tensor, law: Density) -> tuple[Tensor, Tensor]:
    return -torch.special.ndtri(share), (law.quantile(share) - law.middle).abs()


def _compute_quantiles(share: float, law: Density) -> tuple[float, float]:
    bell, own = quantiles(torch.tensor(share, dtype=torch.float64, device="cpu"), law)
    return bell.item(), own.item()


_known_quantiles = lru_cache(maxsize=256)(_compute_quantiles)  # k and n often stay the same


def _known_or_not(share: float, law: Density) -> tuple[float, float]:
    return (_compute_quantiles if isinstance(law, UserDensity) else _known_quantiles)(share, law)


def select(rows: Rows) -> tuple[Rows, tuple[Tensor, ...], Tensor]:
    """What the score that exactly ⌊k⌋ others exceed tells of b; and the rows, some of them shrunk.

    Where b is next to scores near the largest number, or τ is, a row is multiplied by what comes
    last, a power of two, so that nothing overflows; elsewhere that is 1. It is not the row that
    decides: where b is near 0, scores near b may be so small that they would underflow.
    """
    rank = rows.certain + (rows.k - rows.certain).floor()
    low, above = _parted(rows.x, rank, rows.at_hand).to(rows.k.dtype)
    beside = torch.where(rows.k == rows.k.floor(), above, low)
    size = torch.stack([low, beside, rows.tau]).abs().amax(0)
    far = rows.rooted & (size >= far_from(rows.x.dtype))
    part = torch.where(far, _SHRINK, 1.0).to(rows.tau.dtype)
    if not (rows.at_hand and not far.any()):
        x = rows.x * part.to(rows.x.dtype).unsqueeze(-1)
        rows = rows._replace(x=x, tau=rows.tau * part)
        low, above = low * part, above * part
    return rows, around(rows, low, above), part


def grown(answer: Tensor, part: Tensor, dtype: torch.dtype) -> Tensor:
    """The answer for rows that were shrunk; beyond the largest number the rest has what is left."""
    centre, rest, passes = answer
    most = torch.finfo(dtype).max * part
    middle = torch.maximum(torch.minimum(centre + rest, most), -most).to(dtype).to(rest.dtype)
    rest_of_it = torch.maximum(torch.minimum((centre - middle) + rest, most), -most)
    shrunk = (part < 1) & centre.isfinite()
    centre, rest = (
        torch.where(shrunk, v / part, w) for v, w in ((middle, centre), (rest_of_it, rest))
    )
    return torch.stack([centre, rest, passes])


def around(
    rows: Rows, low: Tensor, above: Tensor, slack: Tensor | float = 0.0
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """A score, and b as if only the nearest scores counted, and a bracket: from it, in units of τ.

    The bracket holds whatever the others add: x_(⌊k⌋+1) - ζτ <= b <= x_(⌈k⌉) + ζ'τ. `slack` tells,
    in units of τ, how well these scores are known.
    """
    law, k = rows.law, rows.k - rows.certain
    whole, part = k.floor(), k.frac()
    integer = part == 0
    most = torch.finfo(rows.x.dtype).max / 64  # in a wider gap b has no more than its place
    width = torch.where(integer, ((above - low) / rows.tau).clamp(max=most), 0.0)
    t = 0.5 * width - law.quantile(torch.where(integer, 0.5, part))
    below = (1 - part) / (whole + 1)
    beyond = torch.where(integer, 1.0, part) / (rows.valid - rows.certain - k.ceil() + 1)
    lowest, highest = law.quantile(torch.stack([below, beyond]).clamp_(max=0.5)) * (1 + 1e-9)
    slack = slack + _SLACK
    return low, t, lowest - 2 * law.middle - slack, width - highest + slack


def _parted(x: Tensor, rank: Tensor, at_hand: bool) -> Tensor:
    """The score that exactly `rank` others exceed, and the one before it, of every row, stacked."""
    index = rank.nan_to_num(0.0).long().clamp_(0, x.shape[-1] - 1)
    if at_hand and (index == index[0]).all():
        first = int(index[0])
        chosen = x.topk(first + 1, sorted=False).values
        return chosen.topk(min(2, first + 1), largest=False).values.expand(-1, 2).T
    places = torch.stack([index, (index - 1).clamp_(min=0)], -1)
    return x.sort(-1, descending=True).values.gather(-1, places).T

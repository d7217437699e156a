"""Solves Σ_i F((x_i - b)/τ) = k for many rows at once: passes in torch, row algebra in NumPy.

The passes over the scores run on their device. Each returns a few sums per row; what to do next
is decided from them on the host, in float64: a loop that ends when the rows are done has to ask
the device after every pass anyway. Nothing is sorted unless the model of the sum fails on a row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from softorder.densities import Density

Array = NDArray[Any]

_MOST_TURNS = 64
_SAMPLE = 4096  # a row four times as long is first solved on a sample of this size
_SELECTION = 2  # passes that a selection counts as, beside the classification before it
_LONG = 16384  # from here on kthvalue is faster than a sort
_MODEL_TURNS = 40
_CROWD = 4  # scores so near to b (in τ) are met by a smooth slope, not one by one
_NUMPY = {torch.float32: np.float32, torch.float64: np.float64}
# A step so short (in τ), of second or third order, leaves an error that does not matter.
_SHORT = {torch.float32: {2: 1e-4, 3: 1e-2}, torch.float64: {2: 1e-8, 3: 1e-5}}


class Side(NamedTuple):
    """Sums over the scores on one side of b, for every row."""

    tail: Array  # Σ F(-|u|)
    pdf: Array  # Σ f(u)
    drop: Array | None  # Σ -f'(|u|), if the density tells
    nearest: Array | None  # the smallest |u|, where it is worth knowing


class Sums(NamedTuple):
    """What one pass learns about Σ F(u).

    Below and above b are summed apart, as tails, so that the residual keeps its relative accuracy
    when almost every p is 0 or 1.
    """

    above: Array  # how many scores are above b
    lower: Side
    upper: Side

    def residual(self, k: Array) -> Array:
        return (self.above - k) + (self.lower.tail - self.upper.tail)

    def excess(self, k: Array) -> Array:
        """log of what is above k over what is below: 0 at the root, and nearly linear in b."""
        extra = self.above - k
        surplus, deficit = np.maximum(extra, 0), np.maximum(-extra, 0)
        ratio = np.log1p(self.residual(k) / (deficit + self.upper.tail))
        far = np.log(surplus + self.lower.tail) - np.log(deficit + self.upper.tail)
        return np.where(np.abs(far) < 0.1, ratio, far)

    def pdf(self) -> Array:
        return self.lower.pdf + self.upper.pdf

    def rate(self) -> Array:
        """How fast things change with b: a step is short when step · rate is."""
        rate = self.pdf() / (self.lower.tail + self.upper.tail)
        if self.lower.nearest is None or self.upper.nearest is None:
            return rate
        return np.maximum(rate, 1 / (1 + np.minimum(self.lower.nearest, self.upper.nearest)))


@dataclass
class Rows:
    """The rows still to be solved: their scores, and NumPy arrays of one entry per row."""

    x: Tensor
    index: Array  # where the row came from
    k: Array
    tau: Array
    high: Array  # b = high + low, an unevaluated sum
    low: Array
    left: Array  # the root lies between b + left and b + right
    right: Array
    left_excess: Array  # Sums.excess there
    right_excess: Array
    by: Array  # how far to move b next; NaN when there is no good idea
    residual: Array  # after the last pass, NaN when there was none
    previous: Array  # |excess| after the last pass, inf when it says nothing
    older: Array  # the same one pass before
    width: Array  # right - left after the last pass
    valid: Array  # how many scores are not -inf; NaN if one is NaN
    certain: Array  # how many are +inf
    classified: Array  # whether valid and certain are known
    selected: Array  # whether left and right come from a selection
    sweeps: Array

    @staticmethod
    def of(x: Tensor, k: Array, tau: Array) -> Rows:
        count, n = x.shape
        zeros, infinite = np.zeros(count), np.full(count, math.inf)
        no = np.zeros(count, dtype=bool)
        start = [zeros.copy(), zeros.copy(), -infinite, infinite.copy(), infinite.copy(), -infinite]
        later = [
            zeros.copy(),
            zeros * math.nan,
            infinite,
            infinite.copy(),
            infinite.copy(),
            np.full(count, float(n)),
            zeros.copy(),
            no,
            no.copy(),
        ]
        columns = [np.arange(count), k, tau, *start, *later, zeros]
        return Rows(x, *columns)

    def __len__(self) -> int:
        return len(self.k)

    def take(self, which: Array) -> Rows:
        if which.all():
            return self
        x = self.x[torch.from_numpy(which).to(self.x.device)]
        return Rows(x, *(getattr(self, f.name)[which] for f in fields(self)[1:]))

    def put(self, which: Array, other: Rows) -> None:
        for field in fields(self)[1:]:
            getattr(self, field.name)[which] = getattr(other, field.name)

    def set_b(self, b: Array, plus: Array) -> None:
        self.high, self.low = b, np.zeros_like(b)
        self.move(plus)

    def move(self, by: Array) -> None:
        """Moves b; the bracket, which is relative to it, stays where it was."""
        total = self.high + by
        part = total - self.high
        tail = self.low + ((self.high - (total - part)) + (by - part))
        self.high = total + tail
        self.low = tail - (self.high - total)
        self.left, self.right = self.left - by, self.right - by

    def split(self) -> tuple[Array, Array]:
        """b as centre + rest in the dtype of the scores."""
        centre = self.high.astype(_NUMPY[self.x.dtype])
        return centre, ((self.high - centre) + self.low).astype(centre.dtype)

    def columns(self, *values: Array) -> Tensor:
        """Arrays as columns beside x, in its dtype and on its device."""
        stacked = np.array(values, dtype=_NUMPY[self.x.dtype])
        return torch.from_numpy(stacked).to(self.x.device).unsqueeze(-1)


class Solver:
    """Solves the rows of a matrix; `solve` returns b, stacked, and the passes of every row."""

    def __init__(self, x: Tensor, k: Array, tau: Array, law: Density) -> None:
        self.law = law
        self.rows = Rows.of(x, k, tau)
        self.n = x.shape[1]
        self.short = _SHORT[x.dtype]
        self.epsilon = torch.finfo(x.dtype).eps
        self.b = np.empty((2, len(k)), _NUMPY[x.dtype])
        self.sweeps = np.zeros(len(k), np.int32)

    def solve(self) -> tuple[Array, Array]:
        with np.errstate(all="ignore"):
            rows = self._start(self.rows)
            for turn in range(_MOST_TURNS):
                if turn == 3:
                    rows = self._drop_rootless(rows, ~rows.classified)
                if not len(rows):
                    break
                rows = self._improve(rows, turn)
            self._finish(rows)
        return self.b, self.sweeps

    def _finish(self, rows: Rows) -> None:
        self._answer(rows, *rows.split())

    def _answer(self, rows: Rows, centre: Array, rest: Array) -> None:
        self.b[0, rows.index], self.b[1, rows.index] = centre, rest
        self.sweeps[rows.index] = np.rint(rows.sweeps)

    # ---- rows whose threshold is not a finite number: the contract of kernels/threshold.py -----

    def _drop_rootless(self, rows: Rows, suspects: Array) -> Rows:
        """Answers those suspects that have no finite threshold, and returns the other rows."""
        if not suspects.any():
            return rows
        checked = rows.take(suspects)
        _classify(checked)
        rows.put(suspects, checked)
        rooted = (rows.k < rows.valid) & (rows.k > rows.certain)
        rootless = rows.take(suspects & ~rooted)
        self._answer(rootless, *self._convention(rootless))
        return rows.take(rooted | ~suspects)

    def _convention(self, rows: Rows) -> tuple[Array, Array]:
        k, valid, certain = rows.k, rows.valid, rows.certain
        cases = [np.isnan(valid), k <= 0, k >= valid, k == certain]
        shared = -rows.tau * self._quantile(k / certain)
        centre = np.select(cases, [math.nan, math.inf, -math.inf, math.inf], math.inf)
        return centre, np.select(cases, [0.0, math.inf, 0.0, -math.inf], shared)

    def _quantile(self, p: Array) -> Array:
        return self.law.quantile(torch.from_numpy(p)).numpy()

    # ---- the starting guess --------------------------------------------------------------------

    def _start(self, rows: Rows) -> Rows:
        rows = self._drop_rootless(rows, (rows.k <= 0) | (rows.k >= self.n))
        if not len(rows):
            return rows
        if self.n < 4 * _SAMPLE:
            return self._start_from_moments(rows)
        self._start_from_sample(rows)
        lost = ~np.isfinite(rows.high)
        return self._start_lost(rows, lost) if lost.any() else rows

    def _start_from_sample(self, rows: Rows) -> None:
        sample = rows.x[:, :: self.n // _SAMPLE].contiguous()
        share = sample.shape[1] / self.n
        solver = Solver(sample, rows.k * share, rows.tau, self.law)
        b, sweeps = solver.solve()
        rows.set_b(*b.astype(np.float64))
        rows.sweeps = sweeps * share

    def _start_lost(self, rows: Rows, lost: Array) -> Rows:
        rows.by[lost] = math.nan
        rows = self._drop_rootless(rows, lost)
        lost = np.isnan(rows.by)
        found = rows.take(lost)
        self._select(found)
        rows.put(lost, found)
        return rows

    def _start_from_moments(self, rows: Rows) -> Rows:
        """The smoothed row as a sum of two variables, bell and F, whose quantiles add like errors;
        but far out in an exponential tail of F the bell only adds its cumulant."""
        mean, deviation = _moments(rows.x, np.full(len(rows), self.n), finite=True)
        rows.sweeps += 1
        odd = ~np.isfinite(deviation)
        rows.high, rows.low = mean, deviation
        if odd.any():
            rows = self._drop_rootless(rows, odd)
            odd = rows.classified
            count = (rows.valid - rows.certain)[odd]
            x = rows.take(odd).x
            rows.high[odd], rows.low[odd] = _moments(x, count, finite=False)
            rows.sweeps[odd] += 1
        share = (rows.k - rows.certain) / (rows.valid - rows.certain)
        bell = -torch.special.ndtri(torch.from_numpy(share)).numpy()
        mean, deviation = rows.high, rows.low
        own = np.abs(self.law.middle - self._quantile(share)) * rows.tau
        size = np.hypot(deviation * bell, own)
        if self.law.decay == "exponential":
            cumulant = 0.5 * deviation / rows.tau * deviation
            size = np.where(own > cumulant + deviation, own + cumulant, size)
        rows.set_b(mean, np.copysign(size, bell) - self.law.middle * rows.tau)
        rows.left, rows.right = np.full(len(rows), -math.inf), np.full(len(rows), math.inf)
        lost = ~np.isfinite(rows.high)
        return self._start_lost(rows, lost) if lost.any() else rows

    # ---- the iteration -------------------------------------------------------------------------

    def _improve(self, rows: Rows, turn: int) -> Rows:
        """One pass; answers the rows that are done with it and returns the others, b moved."""
        sums = self._sweep(rows)
        excess = sums.excess(rows.k)
        _narrow(rows, excess)
        step, order = self._step(sums, rows)
        rows.by = step * rows.tau
        gap = self._in_gap(sums, rows.k)
        settled = self._settled(sums, rows.k, step, order) & ~gap
        width = rows.right - rows.left
        # with a true bracket a model may err once
        before = np.where(rows.selected, np.maximum(rows.previous, rows.older), rows.previous)
        progress = (np.abs(excess) < 0.5 * before) | (width < 0.5 * rows.width) | np.isinf(before)
        rows.older, rows.previous, rows.width = rows.previous, np.abs(excess), width
        rows.residual = sums.residual(rows.k)
        beyond = (rows.by <= rows.left) | (rows.by >= rows.right)
        known = ~np.isnan(rows.by) & rows.selected
        # the ends of the bracket are bounds: a root that seems to be behind one is close to it
        short = 0.9 * np.where(rows.by < 0, rows.left, rows.right)
        rows.by = np.where(beyond & known & progress & ~settled, short, rows.by)
        stuck = ~progress | (beyond & ~known) | np.isnan(rows.by) | _is_lost(sums, rows)
        stuck |= _goes_back(rows, excess)
        rows.by[stuck & ~settled] = math.nan
        if gap.any() or settled.any():
            self._answer_gaps(rows.take(gap))
            done = rows.take(settled)
            done.move(done.by)
            self._finish(done)
            rows = rows.take(~(gap | settled))
        return self._advance(rows, turn)

    def _advance(self, rows: Rows, turn: int) -> Rows:
        stuck = np.isnan(rows.by)
        if stuck.any():
            rows.previous[stuck] = math.inf
            rows.by = np.where(stuck & rows.selected, _between(rows, turn), rows.by)
            rows = self._drop_rootless(rows, np.isnan(rows.by) & ~rows.classified)
            lost = np.isnan(rows.by)
            if lost.any():
                found = rows.take(lost)
                self._select(found)
                rows.put(lost, found)
        rows.move(rows.by)
        return rows

    def _sweep(self, rows: Rows) -> Sums:
        centre, rest = rows.split()
        most = torch.finfo(rows.x.dtype).max
        column = rows.columns(centre, rest, np.minimum(1 / rows.tau, most))
        u = (rows.x - column[0]).sub_(column[1]).mul_(column[2])
        nearest = _nearest(u) if self.law.decay == "hyperbola" else (None, None)
        side, *values = self.law.sides(u)
        known = [v for v in dict.fromkeys(values) if v is not None]  # Laplace: all are the same
        totals = [v.sum(-1, dtype=torch.float64) for v in (side, *known)]
        totals += [v.mul_(side).sum(-1, dtype=torch.float64) for v in known]
        rows.sweeps += 1
        above, *sums = torch.stack(totals).cpu().numpy()
        plain, signed = np.split(np.array(sums), 2)
        lower, upper = np.maximum(0.5 * (plain - signed), 0), np.maximum(0.5 * (plain + signed), 0)
        return Sums(0.5 * (self.n + above), _side(lower, nearest[0]), _side(upper, nearest[1]))

    def _step(self, sums: Sums, rows: Rows) -> tuple[Array, int]:
        """How far to move b, in units of τ, and the order of the step near the root."""
        if sums.lower.pdf is sums.lower.tail:
            return _exponential_step(sums, rows.k), 2
        residual, pdf = sums.residual(rows.k), sums.pdf()
        newton = residual / pdf
        lower, upper = sums.lower.drop, sums.upper.drop
        if self.law.decay == "none":  # linear in pieces
            near, order, far = newton, 2, ~(np.abs(sums.excess(rows.k)) < 2)
        elif lower is None or upper is None:
            near, order, far = newton, 2, ~(np.abs(newton) * sums.rate() < 0.1)
        else:  # Halley's, where his correction is one
            correction = 0.5 * newton / pdf * (lower - upper)
            near, order = newton / (1 - correction), 3
            far = ~((np.abs(near) * sums.rate() < 0.5) & (np.abs(correction) < 0.5))
        if self.law.decay == "hyperbola":  # a crowd ahead makes a smooth slope, no single steps
            crowded = far & (_ahead(sums, rows.k) < _CROWD) & (pdf > 0.05)
            secant = residual / (rows.residual - residual) * rows.by / rows.tau
            smooth = np.where(secant * residual > 0, secant, newton)
            near, far = np.where(crowded, smooth, near), far & ~crowded
        return np.where(far, self._far_step(sums, rows, newton), near) if far.any() else near, order

    def _far_step(self, sums: Sums, rows: Rows, newton: Array) -> Array:
        """The root of a model that fits far away too, in units of τ; ±inf if it is out of bounds.

        It is solved in logarithms, where it is nearly linear, by Newton's steps inside the bracket.
        """
        extra, rate = sums.above - rows.k, sums.rate()
        surplus, deficit = np.maximum(extra, 0), np.maximum(-extra, 0)
        lower, upper = (Model.of(side, self.law) for side in (sums.lower, sums.upper))
        low, high, t = rows.left / rows.tau, rows.right / rows.tau, np.zeros_like(extra)
        for _ in range(_MODEL_TURNS):
            (more, fall), (less, rise) = lower.at(t), upper.at(-t)
            more, less = more + surplus, less + deficit
            excess = np.log(more) - np.log(less)
            low, high = np.where(excess > 0, t, low), np.where(excess < 0, t, high)
            goal = t + excess / (fall / more + rise / less)
            goal = np.where((goal > low) & (goal < high), goal, 0.5 * (low + high))
            moved, t = np.abs(goal - t), goal
            if not (moved * rate > 1e-3).any():
                break
        behind = newton if self.law.decay == "none" else np.copysign(math.inf, newton)
        return np.where(np.abs(excess) < 0.1, t, behind)

    def _settled(self, sums: Sums, k: Array, step: Array, order: int) -> Array:
        if self.law.decay == "none":
            return np.abs(sums.residual(k)) <= 8 * self.epsilon * (sums.lower.tail + sums.upper.pdf)
        close = np.abs(sums.excess(k)) < 0.5  # where the pdf underflows, the rate says nothing
        return (np.abs(step) * sums.rate() <= self.short[order]) & close

    # ---- exactly k scores above b, and tails too small to be told from 0 -----------------------

    def _in_gap(self, sums: Sums, k: Array) -> Array:
        lower, upper = sums.lower, sums.upper
        if self.law.decay == "none":
            return (sums.above == k) & (lower.tail == 0) & (upper.tail == 0)
        small = lower.tail + upper.tail < 0.25
        return (sums.above == k) & ((lower.pdf == 0) | (upper.pdf == 0)) & small

    def _answer_gaps(self, rows: Rows) -> None:
        """Any b in the gap fits the sum: the one that balances the logarithms fits log p too."""
        rows = self._drop_rootless(rows, ~rows.classified)
        if not len(rows):
            return
        if self.law.decay != "none":
            self._balance(rows)
        self._finish(rows)

    def _balance(self, rows: Rows) -> None:
        column = rows.columns(*rows.split())
        below = (rows.x - column[0]).sub_(column[1]) < 0
        x = rows.x.double()
        low = torch.where(below, x, -math.inf).amax(-1, keepdim=True)
        high = torch.where(below, math.inf, x).amin(-1, keepdim=True)
        tau = torch.from_numpy(rows.tau).to(x.device).unsqueeze(-1)
        beyond = torch.where(below, low - x, x - high) / tau
        gap, at = high - low, 0.5 * (high - low)
        turns = 8 if self.law.logarithmic else 0
        for _ in range(turns):
            a = beyond + torch.where(below, at, gap - at) / tau
            log_tail = self.law.log_tail(a)
            slope = torch.exp(self.law.log_pdf(a) - log_tail).nan_to_num(0.0, 0.0, 0.0)
            lower, lower_rate = _log_sum(log_tail, slope, below)
            upper, upper_rate = _log_sum(log_tail, slope, ~below)
            if self.law.decay == "hyperbola":  # A/at and B/(gap - at) balance at once
                ratio = torch.exp(lower - upper) * at / (gap - at)
                by = gap * (ratio / (1 + ratio)) - at
            else:
                by = (lower - upper) / (lower_rate + upper_rate) * tau
            at = torch.minimum((at + by).clamp(min=0), gap)
            rows.sweeps += 1
            if bool((by.abs() <= 1e-10 * gap).all()):  # quadratic: the next step would be 1e-20
                break
        rows.sweeps += 1
        rows.set_b(*(v.squeeze(-1).cpu().numpy() for v in (low, at)))

    # ---- when the model fails: a bracket by selection ------------------------------------------

    def _select(self, rows: Rows) -> None:
        """Puts b where the root would be if only the nearest scores counted.

        The bracket holds whatever the others add: x_(⌊k⌋+1) - ζτ <= b <= x_(⌈k⌉) + ζ'τ.
        """
        rank = rows.k - rows.certain
        whole = np.floor(rank)
        part = rank - whole
        count = rows.valid - rows.certain
        lowest, next_above = _ranked(rows.x, rows.certain + whole)
        rows.sweeps += _SELECTION
        integer = part == 0
        width = np.where(integer, next_above - lowest, 0.0)
        middle = 0.5 * width - self.law.middle * rows.tau
        offset = np.where(integer, middle, -rows.tau * self._quantile(np.where(integer, 0.5, part)))
        low_share = np.minimum(0.5, (1 - part) / (whole + 1))
        high_share = np.minimum(0.5, np.where(integer, 1, part) / (count - np.ceil(rank) + 1))
        rows.set_b(lowest, offset)
        rows.left = -rows.tau * self._quantile(1 - low_share) - offset
        rows.right = width - rows.tau * self._quantile(high_share) - offset
        rows.left_excess = np.full(len(rows), math.inf)
        rows.right_excess = -rows.left_excess
        rows.by = np.zeros(len(rows))
        rows.residual = np.full(len(rows), math.nan)
        rows.previous = rows.older = np.full(len(rows), math.inf)
        rows.width = rows.right - rows.left
        rows.selected = np.ones(len(rows), dtype=bool)


def _ahead(sums: Sums, k: Array) -> Array:
    """The distance of the first score that b would meet on its way to the root."""
    assert sums.lower.nearest is not None
    assert sums.upper.nearest is not None
    return np.where(sums.residual(k) > 0, sums.upper.nearest, sums.lower.nearest)


def _classify(rows: Rows) -> None:
    x = rows.x
    out, certain = ((x == v).sum(-1) for v in (-math.inf, math.inf))
    nan = torch.where(x.isnan().any(-1), math.nan, 0.0).double()
    totals = torch.stack([x.shape[1] - out + nan, certain.double()]).cpu().numpy()
    rows.valid, rows.certain = totals[0], totals[1]
    rows.classified = np.ones(len(rows), dtype=bool)
    rows.sweeps += 1


def _moments(x: Tensor, count: Array, finite: bool) -> tuple[Array, Array]:
    """Mean, and a deviation that overflows late, of the finite scores of every row."""
    nought = x if finite else x.nan_to_num(0.0, 0.0, 0.0)
    mean = nought.sum(-1, dtype=torch.float64).cpu().numpy() / count
    z = x - torch.from_numpy(mean).to(x.device, x.dtype).unsqueeze(-1)
    z = z if finite else z.nan_to_num_(0.0, 0.0, 0.0)
    return mean, 1.25 * z.abs_().sum(-1, dtype=torch.float64).cpu().numpy() / count


def _narrow(rows: Rows, excess: Array) -> None:
    """The sum decreases in b: the sign of the excess tells on which side of b the root is."""
    up, down = (excess >= 0) & (rows.left <= 0), (excess <= 0) & (rows.right >= 0)
    rows.left, rows.left_excess = (
        np.where(up, 0.0, rows.left),
        np.where(up, excess, rows.left_excess),
    )
    rows.right = np.where(down, 0.0, rows.right)
    rows.right_excess = np.where(down, excess, rows.right_excess)


def _between(rows: Rows, turn: int) -> Array:
    """A place inside the bracket: the false position and the middle by turns."""
    share = rows.left_excess / (rows.left_excess - rows.right_excess)
    known = np.isfinite(rows.left_excess) & np.isfinite(rows.right_excess) & bool(turn % 3)
    share = np.where(known, np.clip(share, 0.05, 0.95), 0.5)
    return rows.left + (rows.right - rows.left) * share


def _goes_back(rows: Rows, excess: Array) -> Array:
    """Whether the next place is almost the other end of the bracket, known to be no better."""
    end = np.where(excess > 0, rows.right, rows.left)
    there = np.where(excess > 0, rows.right_excess, rows.left_excess)
    near = np.abs(end - rows.by) < 0.02 * rows.width
    return near & np.isfinite(there) & (np.abs(there) > 0.1 * np.abs(excess))


def _is_lost(sums: Sums, rows: Rows) -> Array:
    """Scores have to pass b, but none is near: no model can tell how far away they are."""
    extra = np.abs(sums.above - rows.k)
    return (extra >= 1) & (sums.lower.tail + sums.upper.tail < 0.1 * extra) & ~rows.selected


def _side(sums: Array, nearest: Array | None) -> Side:
    tail = sums[0]
    if len(sums) == 1:  # Laplace: f = F(-|u|) = -f'
        return Side(tail, tail, tail, nearest)
    return Side(tail, sums[1], sums[2] if len(sums) > 2 else None, nearest)


def _nearest(u: Tensor) -> tuple[Array, Array]:
    """The distances of the nearest scores below and above; inf where there is none."""
    low, high = torch.aminmax(u.reciprocal(), dim=-1)
    near = torch.stack([-low, high]).clamp_(min=0).double().reciprocal_().cpu().numpy()
    return near[0], near[1]


def _exponential_step(sums: Sums, k: Array) -> Array:
    """Both tail sums as exponentials in b: the closed form of LapSum, until b passes a score."""
    lower, upper, extra = sums.lower.tail, sums.upper.tail, sums.above - k
    root = np.hypot(extra, 2 * np.sqrt(lower) * np.sqrt(upper))
    ratio = np.where(extra > 0, (extra + root) / (2 * upper), 2 * lower / (root - extra))
    return np.where(extra == 0, 0.5 * (np.log(lower) - np.log(upper)), np.log(ratio))


class Model(NamedTuple):
    """How the tail sum of one side continues when b moves away from it by t.

    As a power of the distance, S (1 + eλt)^(-1/e), with the e and λ that give it its first and
    second derivative: e = 0 is an exponential, e = 1 the hyperbola of Cauchy's tails, e = -1/2 the
    parabola at the end of a uniform row. Heavy tails hide the nearest score behind the crowd of
    the others: it is taken out of the sums and counted exactly.
    """

    height: Array
    rate: Array
    bend: Array
    nearest: Array | None
    weight: Array  # how many scores are there

    @staticmethod
    def of(side: Side, law: Density) -> Model:
        tail, pdf, drop, nearest = side
        weight = np.ones_like(tail)
        if nearest is not None:
            there = law.sides(torch.from_numpy(nearest.copy()))[1:]
            own = np.array([v.numpy() for v in there if v is not None])
            sums = np.array(side[:3])
            # ties count together: they show in Σ -f', which falls fastest with distance
            ties = sums[2] / own[2]
            weight = np.where(np.abs(ties - np.rint(ties)) < 1e-3, np.maximum(np.rint(ties), 1), 1)
            tail, pdf, drop = np.maximum(sums - weight * own, 0)
        rate = np.where(tail > 0, pdf / tail, 0)
        if drop is None:
            return Model(tail, rate, np.zeros_like(rate), nearest, weight)
        # without a tail, `drop` is Σ F²: are all at one place, or spread to the end?
        none = law.decay == "none"
        bend = 1.5 * (drop / tail * rate - 1) - 1 if none else drop / pdf / rate - 1
        return Model(tail, rate, np.clip(np.nan_to_num(bend), -1, 9), nearest, weight)

    def at(self, t: Array) -> tuple[Array, Array]:
        """The sum and minus its slope."""
        straight = np.abs(self.bend) < 1e-6
        base = 1 + self.bend * self.rate * t
        exponent = np.log(base) / np.where(straight, 1, self.bend)
        value = self.height * np.exp(-np.where(straight, self.rate * t, exponent))
        value = np.where(base > 0, value, np.where(self.bend > 0, math.inf, 0.0))
        slope = np.where(base > 0, value * self.rate / base, 0.0)
        if self.nearest is None:
            return value, slope
        a, weight = self.nearest + t, self.weight / math.pi
        return value + weight * np.arctan2(1, a), slope + weight / (1 + a * a)


def _log_sum(log_tail: Tensor, slope: Tensor, side: Tensor) -> tuple[Tensor, Tensor]:
    """log Σ F(-a) over one side of the gap, and minus its slope in a."""
    total = torch.logsumexp(torch.where(side, log_tail, -math.inf), -1, keepdim=True)
    weight = torch.where(side, torch.exp(log_tail - total), 0.0)
    return total, (weight * slope).sum(-1, keepdim=True)


def _ranked(x: Tensor, rank: Array) -> tuple[Array, Array]:
    """The score that exactly `rank` others exceed, and the one before it, of every row."""
    ranks = torch.from_numpy(rank).long().to(x.device).unsqueeze(-1)
    if x.shape[1] < _LONG or len(np.unique(rank)) > 4:
        ordered = x.sort(-1, descending=True).values
        found = ordered.gather(-1, ranks), ordered.gather(-1, (ranks - 1).clamp(min=0))
    else:
        lowest = x.new_empty(len(x), 1)
        for value in np.unique(rank):
            group = torch.from_numpy(rank == value).to(x.device)
            lowest[group] = x[group].kthvalue(x.shape[1] - int(value), -1, keepdim=True).values
        larger = x > lowest
        next_above = torch.where(larger, x, math.inf).amin(-1, keepdim=True)
        tied = larger.sum(-1, keepdim=True) < ranks
        found = lowest, torch.where(tied, lowest, next_above)
    low, above = (v.squeeze(-1).double().cpu().numpy() for v in found)
    return low, above

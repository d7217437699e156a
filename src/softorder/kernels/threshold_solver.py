"""Solves Σ_i F((x_i - b)/τ) = k for many rows at once: passes in torch, row algebra in NumPy.

The passes over the scores run on their device. Each returns a few sums per row; what to do next
is decided from them on the host, in float64: a loop that ends when the rows are done has to ask
the device after every pass anyway. Nothing is sorted unless the model of the sum fails on a row.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from softorder.densities import Density
from softorder.kernels import threshold_easy as easy
from softorder.kernels.threshold_rows import Rows, classify, moments, ranked
from softorder.kernels.threshold_steps import next_step
from softorder.kernels.threshold_sums import NUMPY, Array, Sums, sweep

_MOST_TURNS = 64
_SAMPLE = 4096  # a row four times as long is first solved on a sample of this size
# A step so short (in τ), of second or third order, leaves an error that does not matter.
_SHORT = {torch.float32: {2: 1e-4, 3: 1e-2}, torch.float64: {2: 1e-8, 3: 1e-5}}


class Start(NamedTuple):
    """Thresholds that are near the root, perhaps, and the passes that they took."""

    b: Array
    sweeps: Array


def solve(x: Tensor, k: Array, tau: Array, law: Density) -> tuple[Array, Array]:
    """b of every row of a matrix, centres and rests stacked, and the number of passes."""
    with np.errstate(all="ignore"):
        start = _from_sample(x, k, tau, law) if _can_sample(x.shape[1], k, law) else None
        if len(x) == 1:
            row = easy.Row(x[0], k.item(), tau.item(), law, _SHORT[x.dtype])
            place = easy.improve(row, start and _place(start))
            start = place and _start(place, x.dtype)
            if start and place and place.solved:
                return start
        return Solver(x, k, tau, law).solve(start)


def _can_sample(n: int, k: Array, law: Density) -> bool:
    """Whether a sample is short and, where every score matters, holds some of both kinds."""
    few = np.minimum(k, n - k) * _SAMPLE < n
    return n >= 4 * _SAMPLE and not (law.decay == "hyperbola" and few.any())


def _from_sample(x: Tensor, k: Array, tau: Array, law: Density) -> Start:
    sample = x[:, :: x.shape[1] // _SAMPLE].contiguous()
    share = sample.shape[1] / x.shape[1]
    b, sweeps = solve(sample, k * share, tau, law)
    return Start(b, sweeps * share)


def _place(start: Start) -> easy.Place:
    centre, rest = start.b[:, 0].tolist()
    return easy.Place(centre, rest, start.sweeps.item())


def _start(place: easy.Place, dtype: torch.dtype) -> Start:
    centre, rest, sweeps, _ = easy.split(place, dtype)
    return Start(np.array([[centre], [rest]], NUMPY[dtype]), np.array([round(sweeps)], np.int32))


class Solver:
    """Solves the rows of a matrix, whatever they are."""

    def __init__(self, x: Tensor, k: Array, tau: Array, law: Density) -> None:
        self.law = law
        self.rows = Rows.of(x, k, tau)
        self.n = x.shape[1]
        self.short = _SHORT[x.dtype]
        self.epsilon, self.most = torch.finfo(x.dtype).eps, torch.finfo(x.dtype).max
        self.b = np.empty((2, len(k)), NUMPY[x.dtype])
        self.sweeps = np.zeros(len(k), np.int32)

    def solve(self, start: Start | None) -> tuple[Array, Array]:
        rows = self._begin(self.rows, start)
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
        classify(checked)
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

    def _begin(self, rows: Rows, start: Start | None) -> Rows:
        rows = self._drop_rootless(rows, (rows.k <= 0) | (rows.k >= self.n))
        if not len(rows):
            return rows
        if start is None:
            rows = self._start_from_moments(rows)
        else:
            rows.sweeps += start.sweeps[rows.index]
            rows.set_b(*start.b[:, rows.index].astype(np.float64))
        lost = ~np.isfinite(rows.high)
        return self._start_lost(rows, lost) if lost.any() else rows

    def _start_lost(self, rows: Rows, lost: Array) -> Rows:
        rows.by[lost] = math.nan
        rows = self._drop_rootless(rows, lost & ~rows.classified)
        lost = np.isnan(rows.by)
        found = rows.take(lost)
        self._select(found)
        rows.put(lost, found)
        return rows

    def _start_from_moments(self, rows: Rows) -> Rows:
        mean, deviation = moments(rows.x, np.full(len(rows), self.n), finite=True)
        rows.sweeps += 1
        odd = ~np.isfinite(deviation)
        rows.high, rows.low = mean, deviation
        if odd.any():
            rows = self._drop_rootless(rows, odd)
            odd = rows.classified
            count = (rows.valid - rows.certain)[odd]
            x = rows.take(odd).x
            rows.high[odd], rows.low[odd] = moments(x, count, finite=False)
            rows.sweeps[odd] += 1
        rows.classified = np.ones(len(rows), dtype=bool)  # finite moments, finite scores
        share = (rows.k - rows.certain) / (rows.valid - rows.certain)
        bell = -torch.special.ndtri(torch.from_numpy(share)).numpy()
        mean, deviation = rows.high, rows.low
        own = np.abs(self.law.middle - self._quantile(share)) * rows.tau
        rows.set_b(mean, easy.guess(bell, deviation, own, rows.tau, self.law))
        if self.law.decay == "exponential":
            few = np.minimum(rows.k - rows.certain, rows.valid - rows.k)
            rows.high[easy.is_sharp(deviation, few, rows.tau)] = math.nan
        return rows

    # ---- the iteration -------------------------------------------------------------------------

    def _improve(self, rows: Rows, turn: int) -> Rows:
        """One pass; answers the rows that are done with it and returns the others, b moved."""
        sums = self._sweep(rows)
        excess = sums.excess(rows.k)
        _narrow(rows, excess)
        step, order = next_step(sums, rows, self.law)
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
        rows.sweeps += 1
        centre, rest, scale = rows.columns(*rows.split(), np.minimum(1 / rows.tau, self.most))
        return sweep((rows.x - centre).sub_(rest).mul_(scale), self.law)

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
        lowest, next_above = ranked(rows.x, rows.certain + whole)
        rows.sweeps += easy.SELECTION
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


def _log_sum(log_tail: Tensor, slope: Tensor, side: Tensor) -> tuple[Tensor, Tensor]:
    """log Σ F(-a) over one side of the gap, and minus its slope in a."""
    total = torch.logsumexp(torch.where(side, log_tail, -math.inf), -1, keepdim=True)
    weight = torch.where(side, torch.exp(log_tail - total), 0.0)
    return total, (weight * slope).sum(-1, keepdim=True)

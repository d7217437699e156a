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
from softorder.kernels.threshold import bracket, single_row
from softorder.kernels.threshold.bracket import quantile
from softorder.kernels.threshold.gap import balance, in_gap
from softorder.kernels.threshold.state import Rows, classify, moments
from softorder.kernels.threshold.steps import next_step
from softorder.kernels.threshold.sums import NUMPY, Array, Sums, sweep

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
            row = single_row.Row(x[0], k.item(), tau.item(), law, _SHORT[x.dtype])
            place = single_row.improve(row, start and _place(start))
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


def _place(start: Start) -> single_row.Place:
    centre, rest = start.b[:, 0].tolist()
    return single_row.Place(centre, rest, start.sweeps.item())


def _start(place: single_row.Place, dtype: torch.dtype) -> Start:
    centre, rest, sweeps, _ = single_row.split(place, dtype)
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

    # ---- rows whose threshold is not a finite number: see contract.py ---------------------------

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
        shared = -rows.tau * quantile(self.law, k / certain)
        centre = np.select(cases, [math.nan, math.inf, -math.inf, math.inf], math.inf)
        return centre, np.select(cases, [0.0, math.inf, 0.0, -math.inf], shared)

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
        bracket.select(found, self.law)
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
        own = np.abs(self.law.middle - quantile(self.law, share)) * rows.tau
        rows.set_b(mean, single_row.guess(bell, deviation, own, rows.tau, self.law))
        if self.law.decay == "exponential":
            few = np.minimum(rows.k - rows.certain, rows.valid - rows.k)
            rows.high[single_row.is_sharp(deviation, few, rows.tau)] = math.nan
        return rows

    # ---- the iteration -------------------------------------------------------------------------

    def _improve(self, rows: Rows, turn: int) -> Rows:
        """One pass; answers the rows that are done with it and returns the others, b moved."""
        sums = self._sweep(rows)
        excess = sums.excess(rows.k)
        bracket.narrow(rows, excess)
        step, order = next_step(sums, rows, self.law)
        rows.by = step * rows.tau
        gap = in_gap(sums, rows.k, self.law)
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
        stuck |= bracket.goes_back(rows, excess)
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
            rows.by = np.where(stuck & rows.selected, bracket.between(rows, turn), rows.by)
            rows = self._drop_rootless(rows, np.isnan(rows.by) & ~rows.classified)
            lost = np.isnan(rows.by)
            if lost.any():
                found = rows.take(lost)
                bracket.select(found, self.law)
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

    def _answer_gaps(self, rows: Rows) -> None:
        """Answers rows with exactly k scores above b, and tails too small to be told from 0."""
        rows = self._drop_rootless(rows, ~rows.classified)
        if not len(rows):
            return
        if self.law.decay != "none":
            balance(rows, self.law)
        self._finish(rows)


def _is_lost(sums: Sums, rows: Rows) -> Array:
    """Scores have to pass b, but none is near: no model can tell how far away they are."""
    extra = np.abs(sums.above - rows.k)
    return (extra >= 1) & (sums.lower.tail + sums.upper.tail < 0.1 * extra) & ~rows.selected

"""Newton's method for one long row with an anchor for every score, without a matrix of n × n.

The plan is kept in windows. Newton's system J w = r is solved by conjugate gradients. Where scores
are even and spread over σ places, J multiplies a wave exp(iωj) by (1 - exp(-σ²ω²))/(2 - 2 cos ω):
σ² for long waves, its sum over a row; the inverse of a second difference for short ones. So

    J⁻¹ ≈ diag(1/J1) + second differences

is within a factor of 1.3, at every temperature; some twenty products give all the digits.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from softorder.kernels.formulas import at_hand
from softorder.kernels.transport.damping import Trial, next_trial
from softorder.kernels.transport.windows import MAX_ENTRIES, Windows

LONG = 256  #: from this length on the others' n³ is more than the calls of these

_LOOSE, _TIGHT = 1e-9, 1e-15  # of conjugate gradients: within Newton's method, and for derivatives
_MOST_PRODUCTS = 300


def serves(gains: Tensor, levels: Tensor) -> bool:
    """Whether every score has an anchor, all thresholds share the gains, and they are many."""
    n = gains.shape[-1]
    return at_hand(gains) and gains.shape[-2] == 1 and levels.shape[-1] == n - 1 and n >= LONG


class LongRow(NamedTuple):
    """What is open of a row: its finite gains in order, and the thresholds between them."""

    order: Tensor  #: of the finite gains
    open: Tensor  #: which thresholds
    gains: Tensor
    centre: Tensor
    rest: Tensor
    scale: Tensor

    @staticmethod
    def of(gains: Tensor, levels: Tensor, centre: Tensor, rest: Tensor, scale: Tensor) -> LongRow:
        """From (n,) gains, (n - 1,) levels, centre and rest; `scale` is a number."""
        values, order = torch.sort(gains)
        finite = int(gains.isfinite().sum())
        opened = (levels > 0) & (levels < finite)
        inner = values[:finite], centre[opened], rest[opened]
        return LongRow(order[:finite], opened, *inner, scale)

    def windows(self, max_entries: int = MAX_ENTRIES) -> Windows:
        return Windows(self.gains, self.centre, self.rest, self.scale, max_entries)


def solve(
    gains: Tensor,
    levels: Tensor,
    centre: Tensor,
    scale: Tensor,
    tolerance: float,
    max_iterations: int,
    max_entries: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Rest, iterations and error of rows (rows, n), (rows, n - 1), (rows, n - 1), (rows,)."""
    rest = torch.zeros_like(centre)
    iterations = torch.zeros(len(rest), dtype=torch.int32, device=rest.device)
    error = torch.zeros_like(scale)
    options = tolerance, max_iterations, max_entries
    for row in range(len(rest)):
        at = LongRow.of(*(v[row] for v in (gains, levels, centre, rest, scale)))
        if len(at.centre):
            rest[row, at.open], iterations[row], error[row] = solve_row(at, *options)
    return rest, iterations, error


def solve_row(
    row: LongRow, tolerance: float, max_iterations: int, max_entries: int = MAX_ENTRIES
) -> tuple[Tensor, int, Tensor]:
    """The rest of its thresholds, the iterations and the error."""
    gains, centre, rest, scale = row[2:]
    levels = torch.arange(1, len(gains), device=gains.device, dtype=gains.dtype)
    surplus = torch.searchsorted(gains, centre) - levels
    error = torch.zeros_like(scale)
    trial = Trial.at(rest.unsqueeze(0))
    for turn in range(1, max_iterations + 1):
        windows = Windows(gains, centre, trial.z.squeeze(0), scale, max_entries)
        hard = windows.steps < 0
        astray = torch.where(hard, -windows.above, windows.below)
        residual = windows.by_threshold(astray) + surplus
        error = residual.abs().max()
        if turn == 1:
            step = windows.by_anchor(windows.plan).clamp(min=1e-300).log().diff()
            trial = Trial.plain(trial.z, step.unsqueeze(0))
        else:
            step = solve_curvature(windows, -residual, _LOOSE)
            trial = next_trial(trial, residual.unsqueeze(0), step.unsqueeze(0))
        if error <= tolerance:  # the next step is known already, and can only help
            return trial.z.squeeze(0), turn, error
    return trial.base.squeeze(0), max_iterations, error


def solve_curvature(windows: Windows, right: Tensor, precision: float = _TIGHT) -> Tensor:
    """J⁻¹ right by conjugate gradients; 0 where J_jj underflows."""
    diagonal = windows.diagonal
    still = diagonal < torch.finfo(right.dtype).tiny
    unit = torch.where(still, 0.0, torch.where(still, 1.0, diagonal).rsqrt())
    inverse = torch.where(still, 0.0, diagonal.sqrt())
    row_sums = windows.curvature(torch.ones_like(right))
    row_sums = torch.where(still, 1.0, row_sums)
    held = windows.by_anchor(windows.plan).clamp(min=1e-3)

    def nearly_inverse(r: Tensor) -> Tensor:
        r = inverse * r
        nothing = r.new_zeros(1)
        differences = torch.cat([nothing, r, nothing]).diff() / held
        return inverse * (r / row_sums - differences.diff())

    x, r = torch.zeros_like(right), unit * right
    z = nearly_inverse(r)
    direction, product = z, r @ z
    enough = precision**2 * product
    for _ in range(_MOST_PRODUCTS):
        if not product > enough:
            break
        image = unit * windows.curvature(unit * direction)
        share = product / (direction @ image)
        x, r = x + share * direction, r - share * image
        z = nearly_inverse(r)
        before, product = product, r @ z
        direction = z + (product / before) * direction
    return unit * x

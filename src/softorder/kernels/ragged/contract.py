"""Rows of different lengths: row i of all tensors of scores is [offsets_i, offsets_{i+1}).

Contract. `scores` is (total,), `offsets` int64 (rows + 1,), dense, beside the scores, ascending
from 0 to total: equal ones have an empty row between them. Numbers per row (k, temperature) are
float64, (rows,) or one for all. What is asked of a row and what comes back is what the kernels of
matrices say, `threshold/`, `order/`, `placement/` and `sort/`: a row has the results that it has
alone. A k may be more than the row has scores; these p are 1 then. Thresholds are stacked, (2,
rows), and indices, int32 or int64, count within their rows.

The compiled library has no other kernels for this: they take the offsets beside their arguments,
and share rows out among threads by the number of scores. The reference pads rows of about the same
length together, for the kernels of matrices; F-sums and their roots (`fsum/`) it takes row by row.

laplace and uniform have fused orders, `rank` and `sort`, and all densities `placement`. Other
orders are formulas above F-sums (relaxations/fsum.py), whose sources and targets have offsets each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from softorder import _check
from softorder.kernels import _native
from softorder.kernels._density_numbers import COMPILED, is_walked
from softorder.kernels._operators import Fused, Operator, Pair
from softorder.kernels.formulas import exact
from softorder.kernels.fsum.contract import fake_fsum, fake_invert
from softorder.kernels.placement.cpu import slopes_of
from softorder.kernels.ragged import cpu, reference


def forward(
    scores: Tensor, offsets: Tensor, k: Tensor, temperature: Tensor, density: int
) -> tuple[Tensor, Tensor]:
    """p of a soft top-k and its threshold."""
    found: tuple[Tensor, Tensor] = _forward(scores, offsets, k, temperature, density)
    return found


def threshold(
    scores: Tensor, offsets: Tensor, k: Tensor, temperature: Tensor, density: int
) -> Tensor:
    """The threshold alone, which fits log p too."""
    arguments = scores.detach(), offsets, k.detach(), temperature.detach(), density
    found: Tensor = _threshold(*arguments)
    return found


def backward(
    upstream: Tensor,
    scores: Tensor,
    offsets: Tensor,
    temperature: Tensor,
    b: Tensor,
    density: int,
    by_temperature: bool,
) -> tuple[Tensor, Tensor]:
    """Gradients of the scores; and per row of k, and of temperature if wanted."""
    _check.dense("the gradient", upstream)
    arguments = upstream, scores, offsets, temperature, b, density, by_temperature
    found: tuple[Tensor, Tensor] = _backward(*arguments)
    return found


def sorted_rows(scores: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
    """Rows in ascending order, NaN last, and where in its row every score came from.

    >>> import torch
    >>> sorted_rows(torch.tensor([3.0, 1.0, 7.0, 2.0, 5.0]), torch.tensor([0, 2, 2, 5]))
    (tensor([1., 3., 2., 5., 7.]), tensor([1, 0, 1, 2, 0]))
    """
    found: tuple[Tensor, Tensor] = _sort(scores.detach(), offsets)
    return found


def sums_serve(scores: Tensor, temperature: Tensor, offsets: Tensor) -> bool:
    """Whether F-sums of such rows are compiled, and their derivatives are enough, here and now."""
    if _check.eager():
        return _native.serves(scores, temperature, offsets, most=_native.INT32)
    return _check.traceable()


# ---- the operators ------------------------------------------------------------------------------


def _empty_thresholds(scores: Tensor, offsets: Tensor) -> Tensor:
    return scores.new_empty((2, offsets.shape[0] - 1), dtype=exact(scores.dtype))


def _fake_forward(
    scores: Tensor, offsets: Tensor, k: Tensor, temperature: Tensor, density: int
) -> tuple[Tensor, Tensor]:
    return scores.new_empty(scores.shape), _empty_thresholds(scores, offsets)


def _fake_threshold(
    scores: Tensor, offsets: Tensor, k: Tensor, temperature: Tensor, density: int
) -> Tensor:
    return _empty_thresholds(scores, offsets)


def _fake_backward(
    upstream: Tensor,
    scores: Tensor,
    offsets: Tensor,
    temperature: Tensor,
    b: Tensor,
    density: int,
    by_temperature: bool,
) -> tuple[Tensor, Tensor]:
    by_row = b.new_empty((1 + by_temperature, b.shape[-1]), dtype=torch.float64)
    return scores.new_empty(scores.shape), by_row


def _fake_sorted(scores: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
    return scores.new_empty(scores.shape), scores.new_empty(scores.shape, dtype=torch.int64)


_forward = Operator(
    "ragged_topk_forward(Tensor scores, Tensor offsets, Tensor k, Tensor temperature, int density)"
    " -> (Tensor p, Tensor b)",
    reference=reference.forward,
    cpu=cpu.forward,
    compiled=lambda scores, offsets, k, temperature, density: density < COMPILED,
    fake=_fake_forward,
)
_threshold = Operator(
    "ragged_threshold(Tensor scores, Tensor offsets, Tensor k, Tensor temperature, int density)"
    " -> Tensor b",
    reference=reference.solve,
    cpu=cpu.solve,
    compiled=lambda scores, offsets, k, temperature, density: density < COMPILED,
    fake=_fake_threshold,
)
_backward = Operator(
    "ragged_topk_backward(Tensor upstream, Tensor scores, Tensor offsets, Tensor temperature,"
    " Tensor b, int density, bool by_temperature)"
    " -> (Tensor grad_scores, Tensor grad_k_and_temperature)",
    reference=reference.backward,
    cpu=cpu.backward,
    compiled=lambda upstream, scores, offsets, temperature, b, density, _: density < COMPILED,
    fake=_fake_backward,
)
_sort = Operator(
    "ragged_sort(Tensor scores, Tensor offsets) -> (Tensor values, Tensor order)",
    reference=reference.sort,
    cpu=cpu.sort,
    fake=_fake_sorted,
)


Operator(
    "ragged_fsum(Tensor sources, Tensor? source_rest, Tensor targets, Tensor? target_rest,"
    " Tensor? weights, Tensor temperature, Tensor? source_count, Tensor? target_count,"
    " Tensor source_offsets, Tensor target_offsets, int density, int derivative, int moment)"
    " -> Tensor",
    reference=reference.fsum,
    cpu=cpu.fsum,
    compiled=lambda *arguments: arguments[10] < COMPILED,
    fake=fake_fsum,
)
Operator(
    "ragged_fsum_invert(Tensor sources, Tensor levels, Tensor temperature, Tensor? count,"
    " Tensor source_offsets, Tensor target_offsets, int density) -> (Tensor centre, Tensor rest)",
    reference=reference.invert,
    cpu=cpu.invert,
    compiled=lambda *arguments: arguments[6] < COMPILED,
    fake=fake_invert,
)


class _Ragged(Fused):
    """A fused kernel whose first tensor beside the scores are the offsets."""

    def rows_of(self, scores: Tensor, *tensors: Tensor) -> Sequence[int]:
        return (tensors[0].shape[0] - 1,)

    def serves(
        self, scores: Tensor, temperature: Tensor, *options: Any, tensors: Sequence[Tensor] = ()
    ) -> bool:
        """In a graph always: how rows are padded depends on the offsets, which it cannot see."""
        if _check.traceable():
            return self.compiled(*options)
        return super().serves(scores, temperature, *options, tensors=tensors)


def _keep(
    scores: Tensor, found: Sequence[Tensor], offsets: Tensor, *others: Any
) -> Sequence[Tensor]:
    return scores, *found[1:], offsets, *others[:-1]


def _fake_rank(
    scores: Tensor, temperature: Tensor, offsets: Tensor, descending: bool, density: int
) -> tuple[Tensor, ...]:
    ranks, values = (scores.new_empty(scores.shape) for _ in range(2))
    return ranks, values, scores.new_empty(scores.shape, dtype=torch.int32)


def _fake_sort(
    scores: Tensor, temperature: Tensor, offsets: Tensor, descending: bool, density: int
) -> tuple[Tensor, ...]:
    t, values, rest, slope = (scores.new_empty(scores.shape) for _ in range(4))
    order, segment = (scores.new_empty(scores.shape, dtype=torch.int32) for _ in range(2))
    return t, values, order, segment, rest, slope


def _fake_placement(
    scores: Tensor,
    temperature: Tensor,
    offsets: Tensor,
    first: Tensor,
    last: Tensor,
    descending: bool,
    density: int,
) -> tuple[Tensor, ...]:
    losses, rest = (scores.new_empty(scores.shape, dtype=torch.float64) for _ in range(2))
    order, segment = (scores.new_empty(scores.shape, dtype=torch.int32) for _ in range(2))
    slope = losses.new_empty(slopes_of(scores, density))
    return losses, scores.new_empty(scores.shape), order, rest, slope, segment


rank = _Ragged(
    "ragged_soft_rank",
    tensors=("offsets",),
    options="int density",
    outputs=3,
    reference=Pair(reference.rank, reference.rank_vjp),
    cpu=Pair(cpu.rank, cpu.rank_vjp),
    keep=_keep,
    fake=_fake_rank,
    compiled=is_walked,
    learns_temperature=True,
)
sort = _Ragged(
    "ragged_soft_sort",
    tensors=("offsets",),
    options="int density",
    outputs=6,
    reference=Pair(reference.sorted_scores, reference.sort_vjp),
    cpu=Pair(cpu.sorted_scores, cpu.sort_vjp),
    keep=_keep,
    fake=_fake_sort,
    compiled=is_walked,
    learns_temperature=True,
)
placement = _Ragged(
    "ragged_placement",
    tensors=("offsets", "first", "last"),
    options="int density",
    outputs=6,
    reference=Pair(reference.losses, reference.losses_vjp),
    cpu=Pair(cpu.losses, cpu.losses_vjp),
    keep=_keep,
    fake=_fake_placement,
    compiled=lambda density: density < COMPILED,
    learns_temperature=True,
)

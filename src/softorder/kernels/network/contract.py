"""Soft comparator networks.

Contract. `scores` is float32 or float64, rows on the last axis; `temperature` is float64 and
broadcasts over the rows. The network of that kind (None: `softorder.networks.choice` decides) that
selects k of n, or sorts them, gives its values (..., k) or the matrix (..., k, n) that maps scores
to them, completed by what infinities and NaN mean (kernels/sort/completion.py). Only finite scores
have wires, the first ones. `comparator` is what comparators.named returns; the compiled kernels and
Triton's know some λ of "logistic_phi" only, and leave the others to plain torch.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from softorder.kernels import _triton
from softorder.kernels._operators import Fused, Pair
from softorder.kernels.network import cpu, reference
from softorder.kernels.network.comparators import COMPILED

_gpu = _triton.Module("softorder.kernels.network.triton")


def _keep(scores: Tensor, found: Sequence[Tensor], *options: object) -> Sequence[Tensor]:
    return (scores,)


def _fake(
    scores: Tensor,
    temperature: Tensor,
    descending: bool,
    kind: str | None,
    comparator: str,
    k: int,
    matrix: bool,
) -> tuple[Tensor]:
    *rows, n = scores.shape
    return (scores.new_empty((*rows, k, n) if matrix else (*rows, k)),)


def _compiled(kind: str | None, comparator: str, k: int, matrix: bool) -> bool:
    return comparator in COMPILED


run = Fused(
    "network",
    options="str? kind, str comparator, int k, bool matrix",
    outputs=1,
    reference=Pair(reference.run, reference.vjp),
    cpu=Pair(cpu.run, cpu.vjp),
    triton=Pair(_gpu.run, _gpu.vjp),
    keep=_keep,
    fake=_fake,
    compiled=_compiled,
)

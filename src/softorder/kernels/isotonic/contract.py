"""Which places share a value in an isotonic regression.

Contract. For every row, the solution of

    l2:   min Σ (v_i - (s_i - w_i))²/2           over  v_1 ≥ v_2 ≥ ... ≥ v_n
    kl:   min Σ e^(s_i - v_i) + e^(w_i) v_i      over  v_1 ≥ v_2 ≥ ... ≥ v_n

is constant on blocks of consecutive places. `blocks` returns, for every place, the first place of
its block, int64. Within a block B the value is mean_B(s) - mean_B(w), or
log Σ_B e^s - log Σ_B e^w. Neighbours of equal value are one block. Sums are float64 for every
dtype. A place with s = -inf comes last and is a block of its own, or of such places. NaN stays in
its row. Time O(n) for a row: pool adjacent violators, where every place is pushed once and merged
at most once. Not differentiable: the formula above is, with the blocks as constants.

The operators are `softorder::isotonic_l2` and `softorder::isotonic_kl`.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from softorder.kernels._operators import Operator, define_vmap
from softorder.kernels.isotonic import cpu, reference


def blocks(s: Tensor, w: Tensor, regularization: str) -> Tensor:
    """The first place of every place's block; s and w have the same shape.

    >>> import torch
    >>> blocks(torch.tensor([3.0, 0.0, 1.0, -5.0]), torch.zeros(4), "l2")
    tensor([0, 1, 1, 3])
    """
    found: Tensor = _OPERATORS[regularization].dispatched(s.detach(), w.detach())
    return found


def _fake(s: Tensor, w: Tensor) -> Tensor:
    return s.new_empty(s.shape, dtype=torch.int64)


def _operator(regularization: str) -> Operator:
    operator = Operator(
        f"isotonic_{regularization}(Tensor s, Tensor w) -> Tensor",
        reference=partial(reference.blocks, regularization=regularization),
        cpu=partial(cpu.blocks, entropic=regularization == "kl"),
        fake=_fake,
    )
    define_vmap(operator.name, matrices=(0, 1), numbers=())
    return operator


_OPERATORS = {name: _operator(name) for name in ("l2", "kl")}

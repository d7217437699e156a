"""difftopk's networks, as published: sparse splitter selection, and dense bitonic sorting.

The sparse ones multiply by torch_sparse.spmm, which needs a compiler and minutes to install. Where
it is missing, the few lines that it consists of stand in for it.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from benchmarks.cases import Case
from benchmarks.providers._provider import Operator, Provider


def _spmm(index: Tensor, value: Tensor, m: int, n: int, matrix: Tensor) -> Tensor:
    """torch_sparse.spmm: a gather, a product and a scattered sum."""
    row, column = index
    entries = matrix.index_select(0, column) * value.unsqueeze(-1)
    return torch.zeros(m, matrix.shape[-1], dtype=matrix.dtype).index_add(0, row, entries)


def _import() -> Any:
    import difftopk

    theirs = difftopk.functional
    if not theirs.SPARSE_INSTALLED:
        theirs.torch_sparse, theirs.SPARSE_INSTALLED = SimpleNamespace(spmm=_spmm), True
    return difftopk


@lru_cache(maxsize=4)
def _network(kind: str, n: int, k: int, sparse: bool, steepness: float) -> torch.nn.Module:
    # It prints, and warns of how it builds its matrices.
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _import().DiffTopkNet(
            kind, n, k, sparse=sparse, steepness=steepness, distribution="cauchy"
        )


def _bind(case: Case, kind: str, sparse: bool) -> Operator:
    net = _network(kind, case.shape.n, case.k, sparse, 1 / case.temperature)

    def call(scores: Tensor) -> Tensor:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return net(scores)[1].mT.flip(-2)  # the k largest are its last columns, ascending

    return call


sparse_splitter = Provider(
    "difftopk", "difftopk, sparse splitter", lambda case: _bind(case, "splitter_selection", True)
)
dense_bitonic = Provider(
    "difftopk-dense", "difftopk, dense bitonic", lambda case: _bind(case, "bitonic", False)
)

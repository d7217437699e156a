"""Rows of different lengths: as they are, padded with a mask, and a dense matrix as large."""

from __future__ import annotations

from typing import Any

import torch

import softorder as so
from benchmarks.cases import RaggedCase
from benchmarks.providers._provider import Operator, Provider

DENSE_ROW = 100  #: the length of the rows of the dense matrix


def _options(case: RaggedCase) -> dict[str, Any]:
    options: dict[str, Any] = {"method": case.method, "temperature": case.temperature}
    return options | ({"k": 5} if case.operator == "soft_topk" else {})


def _ragged(case: RaggedCase) -> Operator:
    operator, offsets, options = getattr(so.ragged, case.operator), case.offsets(), _options(case)
    return lambda scores: operator(scores, offsets, **options)


def _padded(case: RaggedCase) -> Operator:
    operator, lengths, options = getattr(so, case.operator), case.lengths(), _options(case)
    mask = torch.arange(int(lengths.max())) < lengths.unsqueeze(-1)
    index = mask.flatten().nonzero().squeeze(-1)

    def run(scores: torch.Tensor) -> torch.Tensor:
        matrix = scores.new_zeros(mask.numel()).index_copy(0, index, scores).view(mask.shape)
        return operator(matrix, mask=mask, **options).flatten()[index]

    return run


def _dense(case: RaggedCase) -> Operator:
    operator, options = getattr(so, case.operator), _options(case)

    def run(scores: torch.Tensor) -> torch.Tensor:
        whole = len(scores) // DENSE_ROW * DENSE_ROW
        return operator(scores[:whole].view(-1, DENSE_ROW), **options)

    return run


ragged = Provider("ragged", "ragged", _ragged)
padded = Provider("padded", "padded with a mask", _padded)
dense = Provider("dense", f"dense rows of {DENSE_ROW}", _dense)

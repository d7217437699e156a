"""Rows of different lengths: as they are, padded with a mask, and a dense matrix as large."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import softorder as so
from benchmarks.cases import RaggedCase
from benchmarks.providers._provider import Operator, Provider

DENSE_ROW = 100  #: the length of the rows of the dense matrix
_K = 5

#: Rows of scores, jagged or a matrix, and of targets; the padded ones have a mask.
Call = Callable[[Tensor, Tensor, Tensor | None], Tensor]


def _operator(case: RaggedCase) -> Call:
    operator, options = getattr(so, case.operator), _options(case)
    if case.operator == "soft_topk":
        options["k"] = _K
    return lambda scores, _, mask: operator(scores, mask=mask, **options)


def _permutation(case: RaggedCase) -> Call:
    loss, options = so.losses.permutation_cross_entropy, _options(case)
    return lambda scores, places, mask: loss(scores, places, mask=mask, **options)


def _list(case: RaggedCase) -> Call:
    options = _options(case) if case.method else {"temperature": case.temperature}
    loss = getattr(so.losses, case.operator)(**options)
    return lambda scores, places, mask: loss(scores, places.clamp(max=3), mask)


def _options(case: RaggedCase) -> dict[str, Any]:
    return {"method": case.method, "temperature": case.temperature}


def _call(case: RaggedCase) -> Call:
    if case.operator == "permutation_cross_entropy":
        return _permutation(case)
    return _list(case) if case.operator.endswith("Loss") else _operator(case)


def _places(lengths: Tensor) -> Tensor:
    """A place for every score in its row, one row behind another."""
    every, begin = torch.arange(int(lengths.sum())), lengths.cumsum(0) - lengths
    return every - begin.repeat_interleave(lengths)


def _ragged(case: RaggedCase) -> Operator:
    offsets, places, options = case.offsets(), _places(case.lengths()), _options(case)
    if case.operator.endswith("Loss"):
        call, pack = _call(case), torch.nested.nested_tensor_from_jagged
        own = pack(places, offsets=offsets)
        return lambda scores: call(pack(scores, offsets=own.offsets()), own, None)
    operator = getattr(so.ragged, case.operator)
    if case.operator == "permutation_cross_entropy":
        return lambda scores: operator(scores, offsets, places, **options).mean()
    extra = (_K,) if case.operator == "soft_topk" else ()
    return lambda scores: operator(scores, offsets, *extra, **options)


def _padded(case: RaggedCase) -> Operator:
    call, lengths = _call(case), case.lengths()
    mask = torch.arange(int(lengths.max())) < lengths.unsqueeze(-1)
    index = mask.flatten().nonzero().squeeze(-1)
    places = torch.arange(mask.shape[-1]).expand(mask.shape)

    def run(scores: Tensor) -> Tensor:
        matrix = scores.new_zeros(mask.numel()).index_copy(0, index, scores).view(mask.shape)
        found = call(matrix, places, mask)
        return found.flatten()[index] if found.dim() else found

    return run


def _dense(case: RaggedCase) -> Operator:
    call = _call(case)

    def run(scores: Tensor) -> Tensor:
        whole = len(scores) // DENSE_ROW * DENSE_ROW
        rows = scores[:whole].view(-1, DENSE_ROW)
        return call(rows, torch.arange(DENSE_ROW).expand(rows.shape), None)

    return run


ragged = Provider("ragged", "ragged", _ragged)
padded = Provider("padded", "padded with a mask", _padded)
dense = Provider("dense", f"dense rows of {DENSE_ROW}", _dense)

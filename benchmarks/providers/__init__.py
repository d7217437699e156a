"""Who is measured: one file per peer."""

from __future__ import annotations

from importlib.util import find_spec

import softorder as so
from benchmarks.providers import (
    lapsum_closed_form,
    softorder_native,
    softorder_torch,
    torch_softmax,
    torch_sort,
    torch_topk,
)
from benchmarks.providers._provider import Operator, Provider

DENSITIES = tuple(so.densities.BUILT_IN)

softmax = torch_softmax.provider
topk = torch_topk.provider
sort = torch_sort.provider
closed_form = lapsum_closed_form.provider
native = softorder_native.provider
plain = softorder_torch.provider


def peers() -> list[Provider]:
    """Everybody else, those that are installed."""
    found = [softmax, topk, sort, closed_form]
    if find_spec("entmax"):
        from benchmarks.providers import entmax_budget

        found.append(entmax_budget.provider)
    return found


__all__ = [
    "DENSITIES",
    "Operator",
    "Provider",
    "closed_form",
    "native",
    "peers",
    "plain",
    "softmax",
    "sort",
    "topk",
]

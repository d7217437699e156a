"""softorder's other families: networks, row softmax, projections onto a permutahedron."""

from __future__ import annotations

import softorder as so
from benchmarks.cases import Case, Problem
from benchmarks.providers._provider import Operator, Provider
from softorder.networks import build as build_module
from softorder.relaxations import NetworkMethod

_PROJECTED = {"rank": so.soft_rank, "sort": so.soft_sort}


def network(kind: str) -> Provider:
    """The first k rows of a permutation, by a selection network."""
    return rows(NetworkMethod(kind), kind, f"softorder {kind} network")


def rows(method: object, key: str, name: str) -> Provider:
    def bind(case: Case) -> Operator:
        return lambda scores: so.soft_permutation(
            scores, k=case.k, method=method, temperature=case.temperature, descending=True
        )

    return Provider(key, name, bind)


def projected(operator: str, method: str = "permutahedron") -> Provider:
    def bind(case: Problem) -> Operator:
        function = _PROJECTED[operator]
        return lambda scores: function(scores, method=method, temperature=case.temperature)

    return Provider(f"projected-{operator}", f"softorder {operator}, {method}", bind)


def building(kind: str) -> Provider:
    """Building a selection network, which is cached afterwards."""

    def bind(case: Case) -> Operator:
        build = build_module._selection_network.__wrapped__
        return lambda _: build(case.shape.n, case.k, kind)

    return Provider(f"build-{kind}", f"building a {kind} network", bind)

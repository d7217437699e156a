"""How time is measured: all providers of one case in alternation, within one run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch

from benchmarks.cases import Problem
from benchmarks.providers import Operator, Provider
from benchmarks.rounds import in_rounds
from softorder.cli._timing import Timing


@dataclass(frozen=True)
class Record:
    """One provider on one case."""

    section: str
    case: Problem
    provider: Provider
    timing: Timing


def measure_mixed(
    section: str,
    case: Problem,
    forward: Iterable[Provider],
    backward: Iterable[Provider],
    seconds: float,
) -> list[Record]:
    """Time some providers without their gradient and others with it, in alternation."""
    forward, backward = list(forward), list(backward)
    scores = case.scores()
    calls = {p.name: _forward(p.bind(case), scores) for p in forward}
    calls |= {p.name: _forward_backward(p.bind(case), scores) for p in backward}
    by_name = {provider.name: provider for provider in (*forward, *backward)}
    timings = in_rounds(calls, seconds)
    return [Record(section, case, by_name[name], timing) for name, timing in timings.items()]


def measure_doubling(
    section: str,
    cases: Sequence[Problem],
    providers: Iterable[Provider],
    seconds: float,
    backward: bool,
) -> list[Record]:
    """Time every provider on several sizes, all in alternation: their ratios are what counts."""
    pairs = {f"{p.name} {case}": (p, case) for p in providers for case in cases}
    calls = {
        name: prepared(p.bind(case), case.scores(), backward) for name, (p, case) in pairs.items()
    }
    timings = in_rounds(calls, seconds)
    return [
        Record(section, case, provider, timings[name]) for name, (provider, case) in pairs.items()
    ]


def prepared(operator: Operator, scores: torch.Tensor, backward: bool) -> Callable[[], object]:
    """The call that is timed: the operator alone, or with its gradient."""
    return (_forward_backward if backward else _forward)(operator, scores)


def _forward(operator: Operator, scores: torch.Tensor) -> Callable[[], object]:
    return lambda: operator(scores)


def _forward_backward(operator: Operator, scores: torch.Tensor) -> Callable[[], object]:
    leaf = scores.clone().requires_grad_()
    upstream = torch.randn_like(operator(scores))
    return lambda: torch.autograd.grad(operator(leaf), leaf, upstream)

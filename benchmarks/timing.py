"""How time is measured: all providers of one case in alternation, within one run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch

from benchmarks.cases import Case
from benchmarks.providers import Operator, Provider
from softorder.cli._timing import Timing, interleaved


@dataclass(frozen=True)
class Record:
    """One provider on one case."""

    section: str
    case: Case
    provider: Provider
    timing: Timing


def measure(
    section: str, case: Case, providers: Iterable[Provider], seconds: float, backward: bool = False
) -> list[Record]:
    """Time the providers on the same scores, with their gradient or without."""
    scores, prepare = case.scores(), _forward_backward if backward else _forward
    by_name = {provider.name: provider for provider in providers}
    calls = {name: prepare(provider.bind(case), scores) for name, provider in by_name.items()}
    timings = interleaved(calls, seconds)
    return [Record(section, case, by_name[name], timing) for name, timing in timings.items()]


def _forward(operator: Operator, scores: torch.Tensor) -> Callable[[], object]:
    return lambda: operator(scores)


def _forward_backward(operator: Operator, scores: torch.Tensor) -> Callable[[], object]:
    leaf = scores.clone().requires_grad_()
    upstream = torch.randn_like(operator(scores))
    return lambda: torch.autograd.grad(operator(leaf), leaf, upstream)

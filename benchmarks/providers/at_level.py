"""An operator with the library of one SIMD level, so that levels can alternate in one run."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

import torch

from benchmarks.cases import Problem
from benchmarks.providers._provider import Operator, Provider
from softorder.kernels import _native

_level_in_use = ExitStack()


def at_level(level: str, provider: Provider) -> Provider:
    def bind(case: Problem) -> Operator:
        operator = provider.bind(case)

        def call(scores: torch.Tensor) -> torch.Tensor:
            # The level stays in use: the backward pass comes after the call.
            _level_in_use.close()
            _level_in_use.enter_context(_native.use_level(level))
            return operator(scores)

        return call

    return replace(
        provider, key=f"{provider.key}-{level}", name=f"{provider.name}, {level}", bind=bind
    )

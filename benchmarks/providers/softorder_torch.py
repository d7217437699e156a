"""so.soft_topk without its compiled kernels: plain torch, as on any other device."""

from __future__ import annotations

import torch

import softorder as so
from benchmarks.cases import Case
from benchmarks.providers._provider import Operator, Provider
from softorder.kernels import _native


def provider(density: str) -> Provider:
    def bind(case: Case) -> Operator:
        def call(scores: torch.Tensor) -> torch.Tensor:
            with _native.use("torch"):
                return so.soft_topk(scores, case.k, method=density, temperature=case.temperature)

        return call

    return Provider("torch", f"softorder {density}, plain torch", bind, density)

"""What the losses suite measures."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from benchmarks.cases import Shape, normal_scores

IMAGENET_21K = Shape(500, 10_450)
SHAPES = (IMAGENET_21K, Shape(500, 1_000), Shape(64, 100))
MIX = (0.5, 0.0, 0.0, 0.0, 0.5)
EVEN = (0.2,) * 5
TEMPERATURES = (1.0, 0.1, 0.01)
PRESELECTED = 50  # the m of Petersen et al. (2022) for so many classes


@dataclass(frozen=True)
class LossCase:
    """Standard normal logits of `rows` samples, and the class of each."""

    shape: Shape
    p_k: tuple[float, ...]
    temperature: float

    def __str__(self) -> str:
        return f"{self.shape} p_k={list(self.p_k)} τ={self.temperature:g}"

    def scores(self) -> torch.Tensor:
        return normal_scores(self.shape)

    def target(self) -> torch.Tensor:
        generator = torch.Generator().manual_seed(1)
        return torch.randint(self.shape.n, (self.shape.rows,), generator=generator)

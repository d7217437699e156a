"""What the losses suite measures."""

from __future__ import annotations

from benchmarks.cases import Shape

IMAGENET_21K = Shape(500, 10_450)
SHAPES = (IMAGENET_21K, Shape(500, 1_000), Shape(64, 100))
MIX = (0.5, 0.0, 0.0, 0.0, 0.5)
EVEN = (0.2,) * 5
TEMPERATURES = (1.0, 0.1, 0.01)
PRESELECTED = 50  # the m of Petersen et al. (2022) for so many classes

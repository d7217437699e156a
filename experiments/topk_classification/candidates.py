"""The losses that are compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from torch import Tensor, nn

import softorder as so

DENSITIES = ("laplace", "logistic", "normal", "cauchy", "uniform")
OTHERS = ("sinkhorn", "network", "softsort", "neuralsort")  # on the m best classes only
METHODS = ("softmax", "smooth top-k", *DENSITIES, *OTHERS)
P_K = {
    "1": [1.0, 0, 0, 0, 0],
    "5": [0, 0, 0, 0, 1.0],
    "1 and 5": [0.5, 0, 0, 0, 0.5],
    "1 to 5": [0.2] * 5,
}
MIXED = ("1 and 5", "1 to 5")
TEMPERATURES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
M = 16  # as in Petersen et al. (2022) for 1,000 classes


class SoftmaxLoss(nn.Module):
    """Cross-entropy of softmax(scores / τ): the scale that all the others may choose, too."""

    def __init__(self, temperature: float) -> None:
        super().__init__()
        self.temperature = temperature

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        return nn.functional.cross_entropy(logits / self.temperature, target)


@dataclass(frozen=True)
class Candidate:
    """A loss: softmax, smooth top-k, or top-k cross-entropy by a method, with the k it is for."""

    method: str
    k: str  # a key of P_K
    temperature: float = 1.0

    def criterion(self, classes: int) -> nn.Module:
        if self.method == "softmax":
            return SoftmaxLoss(self.temperature)
        if self.method == "smooth top-k":
            return so.losses.SmoothTopKLoss(5, temperature=self.temperature)
        m = min(M, classes) if self.method in OTHERS else None
        return so.losses.TopKCrossEntropyLoss(
            P_K[self.k], method=self.method, temperature=self.temperature, m=m
        )

    def at(self, temperature: float) -> Candidate:
        return replace(self, temperature=temperature)

    def __str__(self) -> str:
        return f"{self.method}, k = {self.k}"


def candidates() -> Iterator[Candidate]:
    """With p_k = [1, 0, 0, 0, 0] every method is softmax cross-entropy: it runs once."""
    yield Candidate("softmax", "1")
    yield Candidate("smooth top-k", "5")
    for method in (*DENSITIES, *OTHERS):
        for k in ("5", *MIXED):
            yield Candidate(method, k)

"""The losses that are compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from torch import Tensor, nn

import softorder as so

DENSITIES = ("laplace", "logistic", "normal", "cauchy", "uniform")
OTHERS = ("sinkhorn_sort", "network", "softsort", "neuralsort")  # what Petersen et al. compare
METHODS = ("softmax", "smooth top-k", *DENSITIES, *OTHERS)
P_K = {
    "1": (1.0, 0, 0, 0, 0),
    "5": (0, 0, 0, 0, 1.0),
    "1 and 5": (0.5, 0, 0, 0, 0.5),
    "1 and 5, ¼ and ¾": (0.25, 0, 0, 0, 0.75),
    "1 and 5, .1 and .9": (0.1, 0, 0, 0, 0.9),
    "1 to 5": (0.2,) * 5,
}
MIXED = tuple(P_K)[2:]  #: of their tables 3 and 4
TEMPERATURES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


class SoftmaxLoss(nn.Module):
    """Cross-entropy of softmax(scores / τ): the scale that all the others may choose, too."""

    def __init__(self, temperature: float) -> None:
        super().__init__()
        self.temperature = temperature

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        return nn.functional.cross_entropy(logits / self.temperature, target)


@dataclass(frozen=True)
class Protocol:
    """What a paper does alike for all its methods.

    Petersen et al. (2022) let the 16 best of 1,000 classes compete and the 50 best of 10,450, and
    say nothing of 100 classes. They train from scratch with equation 4, whose top-1 part is softmax
    cross-entropy, and fine-tune with equation 2. A density is asked for all classes: it costs the
    same.
    """

    m: int | None = None  #: classes that compete, where a method is not a density
    top1: str = "softmax"  #: "operator" to fine-tune


SCRATCH = Protocol()


@dataclass(frozen=True)
class Candidate:
    """A loss: softmax, smooth top-k, or top-k cross-entropy by a method, with the k it is for."""

    method: str
    k: str  # a key of P_K
    temperature: float = 1.0
    protocol: Protocol = SCRATCH
    p_k: tuple[float, ...] = ()  #: instead of P_K[k]

    def criterion(self, classes: int) -> nn.Module:
        if self.method == "softmax":
            return SoftmaxLoss(self.temperature)
        if self.method == "smooth top-k":
            return so.losses.SmoothTopKLoss(5, temperature=self.temperature)
        m = None if self.method in DENSITIES else self.protocol.m
        return so.losses.TopKCrossEntropyLoss(
            list(self.p_k or P_K[self.k]),
            method=self.method,
            temperature=self.temperature,
            m=m if m is None else min(m, classes),
            top1=self.protocol.top1,
        )

    def at(self, temperature: float) -> Candidate:
        return replace(self, temperature=temperature)

    def __str__(self) -> str:
        return f"{self.method}, k = {self.k}"


def candidates(
    methods: Sequence[str] = METHODS,
    mixed: Sequence[str] = MIXED,
    protocol: Protocol = SCRATCH,
) -> Iterator[Candidate]:
    """With p_k = [1, 0, 0, 0, 0] every method is softmax cross-entropy: it runs once."""
    single = {"softmax": "1", "smooth top-k": "5"}
    for method in methods:
        for k in [single[method]] if method in single else ["5", *mixed]:
            yield Candidate(method, k, protocol=protocol)

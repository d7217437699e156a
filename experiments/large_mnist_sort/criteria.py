"""The loss of an order by every method, and the order that it stands for.

A criterion takes what the network says of lists, (lists, n, outputs), and the right places
(lists, n), and gives -log P[image i at its place], on average.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

import softorder as so
from experiments.large_mnist_sort.config import MATRICES, Config
from softorder.relaxations import StochasticNeuralSort

_SMALLEST = 1e-20  #: of an entry of a row-stochastic matrix, which may underflow to 0
_TOLERANCE = 1e-6  #: of the sums of Sinkhorn's matrices
_OBJECTS: dict[str, Callable[[], object]] = {"stochastic NeuralSort": StochasticNeuralSort}


class Criterion(nn.Module):
    """With a temperature, which may be learned."""

    outputs: int  #: that it wants of every image

    @property
    def temperature(self) -> Tensor | float:
        raise NotImplementedError

    def found(self, said: Tensor) -> Tensor:
        """What is to be compared with `aim`: the places (lists, n) that images are given."""
        raise NotImplementedError

    def aim(self, target: Tensor) -> Tensor:
        return target


class OfScores(Criterion):
    """One score for every image, and their soft permutation."""

    outputs = 1

    def __init__(self, method: str, temperature: float, learned: bool) -> None:
        super().__init__()
        options = {"temperature": temperature, "learnable_temperature": learned}
        served = {row.name for row in so.methods() if row.operator == "permutation_cross_entropy"}
        self.short = method in served  # without the whole matrix
        of = so.losses.PermutationCrossEntropyLoss if self.short else so.nn.SoftPermutation
        self.layer = of(method=_OBJECTS.get(method, lambda: method)(), **options)

    @property
    def temperature(self) -> Tensor | float:
        return self.layer.temperature

    def forward(self, said: Tensor, target: Tensor) -> Tensor:
        scores = said.squeeze(-1)
        if self.short:
            return self.layer(scores, target)
        entries = self.layer(scores).gather(-2, target.unsqueeze(-2)).squeeze(-2)
        return -entries.clamp_min(_SMALLEST).log().mean()

    def found(self, said: Tensor) -> Tensor:
        return said.squeeze(-1).argsort(-1).argsort(-1)


class OfMatrices(Criterion):
    """n numbers for every image, and a matrix of shares of them (Grover et al. 2019):

    "Vanilla" has two more layers over the numbers of all images, and a softmax for every place over
    the images; "Sinkhorn" makes rows and columns sum to 1, "Gumbel-Sinkhorn" the same after Gumbel
    noise, while training. Their rows are images and their columns places. In the published code
    the rows are compared with those of the right permutation, which are places: row i, of which
    only image i knows, is to say which image has place i. "Sinkhorn, as published" does that.
    """

    def __init__(self, method: str, size: int, temperature: float, learned: bool) -> None:
        super().__init__()
        self.method, self.outputs = method, size
        self.rows_are_places = method in ("Vanilla", "Sinkhorn, as published")
        start = torch.tensor(temperature).log()
        self.log_temperature = nn.Parameter(start, requires_grad=learned)
        if method == "Vanilla":
            every = size * size
            self.joint = nn.Sequential(nn.Linear(every, every), nn.ReLU(), nn.Linear(every, every))

    @property
    def temperature(self) -> Tensor:
        return self.log_temperature.exp()

    def forward(self, said: Tensor, target: Tensor) -> Tensor:
        logs = self.shares(said).clamp_min(_SMALLEST).log()
        return -logs.gather(-1, self.aim(target).unsqueeze(-1)).mean()

    def shares(self, said: Tensor) -> Tensor:
        """(lists, n, n), rows that sum to 1."""
        if self.method == "Vanilla":
            joint = self.joint(said.flatten(1)).view_as(said)
            return torch.softmax(joint / self.temperature, -1)
        noisy = self.method == "Gumbel-Sinkhorn" and self.training
        of = so.gumbel_sinkhorn if noisy else so.sinkhorn
        return of(said, temperature=self.temperature, tolerance=_TOLERANCE)

    def found(self, said: Tensor) -> Tensor:
        return self.shares(said).argmax(-1)

    def aim(self, target: Tensor) -> Tensor:
        return target.argsort(-1) if self.rows_are_places else target


def criterion(method: str, size: int, config: Config) -> Criterion:
    options = config.temperature, config.learn_temperature
    if method in MATRICES:
        return OfMatrices(method, size, *options)
    return OfScores(method, *options)

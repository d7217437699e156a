"""One run of the demo: what is trained and timed, and the tables made of it."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch

import softorder as so
from softorder.cli._table import Table
from softorder.cli.demo import neighbours, speed
from softorder.cli.demo.digits import load
from softorder.cli.demo.neighbours import QUERIES, SOFTNESS, K, SoftNeighbours
from softorder.cli.demo.training import Run, reproducible, train
from softorder.densities import BUILT_IN

METHODS = tuple(BUILT_IN)


@dataclass(frozen=True)
class Preset:
    seeds: range  # not those with which the settings were chosen, 0 to 2
    steps: int
    seconds: float  # of timing, for each shape
    shapes: tuple[speed.Shape, ...]


FULL = Preset(seeds=range(100, 103), steps=300, seconds=1.5, shapes=speed.SHAPES)
QUICK = Preset(seeds=range(100, 101), steps=30, seconds=0.05, shapes=speed.SHAPES[:2])


@dataclass(frozen=True)
class Result:
    """One line of the comparison; one accuracy per seed."""

    trained: str
    predicted: str
    accuracies: list[float]
    milliseconds: float | None = None

    @property
    def mean(self) -> float:
        return statistics.mean(self.accuracies)


class Session:
    def __init__(self, preset: Preset) -> None:
        self.preset = preset
        self.runs: dict[str | None, list[Run]] = {}  # by method; None is cross-entropy
        self.speeds: speed.Speeds = {}

    @property
    def ticks(self) -> int:
        trained = (1 + len(METHODS)) * len(self.preset.seeds) * self.preset.steps
        return trained + len(self.preset.shapes)

    def run(self, tick: Callable[[str], None]) -> None:
        """Train everything, then time everything; `tick(label)` is called `ticks` times."""
        with reproducible():
            for method in (None, *METHODS):
                label = f"training: {method or 'cross-entropy'}"
                self.runs[method] = [
                    train(method, seed, self.preset.steps, partial(tick, label))
                    for seed in self.preset.seeds
                ]
        for shape in self.preset.shapes:
            self.speeds[shape] = speed.measure(shape, METHODS, self.preset.seconds)
            tick("timing: {}×{}".format(*shape))

    def rows(self) -> list[Result]:
        usual = self.runs[None]
        pace = statistics.mean(run.milliseconds_per_step for run in usual)
        vote = f"{K} nearest"
        return [
            Result("nothing (raw pixels)", vote, self._pixels()),
            Result("cross-entropy", "linear layer", [r.classifier_accuracy() for r in usual], pace),
            Result("cross-entropy", vote, [r.neighbour_accuracy() for r in usual], pace),
            *(self._row(method, vote) for method in METHODS),
        ]

    def _row(self, method: str, vote: str) -> Result:
        runs = self.runs[method]
        pace = statistics.mean(run.milliseconds_per_step for run in runs)
        accuracies = [run.neighbour_accuracy() for run in runs]
        return Result(f"soft top-k, {method}", vote, accuracies, pace)

    def _pixels(self) -> list[float]:
        return [
            neighbours.neighbour_accuracy(torch.nn.Identity(), load(seed))
            for seed in self.preset.seeds
        ]

    def introduction(self) -> str:
        count, splits = len(load(0).labels), len(self.preset.seeds)
        return (
            f"softorder {so.__version__} on handwritten digits: {count} training images, "
            f"{splits} random split{'s' * (splits > 1)} × {self.preset.steps} steps. A network "
            f"learns features through the vote of a query's {K} soft neighbours ({QUERIES} "
            f"queries, {count - QUERIES} templates a step); test images are classified by their "
            f"{K} hard neighbours."
        )

    def accuracy_table(self) -> Table:
        table = Table(["trained with", "predicted by", "test accuracy", "ms per step"])
        for row in self.rows():
            pace = "" if row.milliseconds is None else f"{row.milliseconds:.2f}"
            accuracy = f"{row.mean:.2%}"
            if len(row.accuracies) > 1:
                accuracy += f" ± {statistics.pstdev(row.accuracies):.2%}"
            table.add(row.trained, row.predicted, accuracy, pace)
        return table

    def spread_note(self) -> str:
        splits = len(self.preset.seeds)
        if splits == 1:
            return "One random split only: differences of a percent or two are chance."
        return (
            f"Mean ± standard deviation over {splits} random splits. Read differences smaller than "
            "that spread, such as those between the densities, as chance."
        )

    def temperature_note(self) -> str:
        chosen = ", ".join(f"{method} {self.temperature(method):.2g}" for method in METHODS)
        return (
            "Each density has the temperature that makes it equally soft: before training, "
            f"{SOFTNESS:.0%} of the weights are not on the {K} nearest templates. Here: {chosen}."
        )

    def temperature(self, method: str) -> float:
        loss = self.runs[method][0].loss
        assert isinstance(loss, SoftNeighbours)
        return loss.temperature

    def speed_table(self) -> Table:
        return speed.table(self.speeds)

    def speed_note(self) -> str:
        return (
            "Forward, float32, k = n/10, temperature 0.1; in brackets: how many softmaxes "
            f"that is. {torch.get_num_threads()} threads, torch {torch.__version__}."
        )

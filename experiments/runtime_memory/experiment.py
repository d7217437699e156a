"""Measures every method of `so.soft_topk` on one row of n scores."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

import softorder as so
from benchmarks.cases import Case, Shape
from experiments.experiment import Experiment, Setting, Trial
from experiments.runtime_memory.config import PRESETS, Config
from experiments.runtime_memory.memory import peak
from experiments.trials import Column, Figures, Trials
from softorder.cli._timing import interleaved

COLUMNS = (
    Column("n", "largest n", 0),
    Column("forward", "forward, ms", 3),
    Column("both", "forward and backward, ms", 3),
    Column("memory", "peak of forward and backward, MB", 1),
    Column("error", "error of Σ p = k, per k", 9),
)
_CURVES = {
    "forward_curve": "forward, ms",
    "both_curve": "forward and backward, ms",
    "memory_curve": "peak memory, MB",
    "error_curve": "|Σ p - k|",
}
_MATRICES = {"softsort", "neuralsort", "sequential_softmax"}  #: methods with k·n numbers


def arms(config: Config) -> list[str]:
    return [f"{method}, k = {k}" for k in ("5", "n/2") for method in config.methods]


def session(config: Config, _setting: Setting, _: Trials) -> Trial:
    def trial(arm: str, _seed: int) -> Figures:
        method, _, rule = arm.partition(", k = ")
        points: list[dict[str, float]] = []
        for n in config.sizes:
            k = 5 if rule == "5" else n // 2
            if method in _MATRICES and k * n > config.entries:
                break
            points.append(_point(method, Case(Shape(1, n), k, config.temperature), config))
            if points[-1]["both"] > 1e3 * config.limit:
                break
        curves = {f"{key}_curve": [p[key] for p in points] for key in ("n", *_FIGURES)}
        last = points[-1]
        k = 5 if rule == "5" else last["n"] // 2
        return {**last, "error": last["error"] / k, **curves}

    return trial


_FIGURES = ("forward", "both", "memory", "error")


def _point(method: str, case: Case, config: Config) -> dict[str, float]:
    def forward(scores: Tensor) -> Tensor:
        return so.soft_topk(scores, case.k, method=method, temperature=case.temperature)

    def both(scores: Tensor) -> Tensor:
        leaf = scores.clone().requires_grad_()
        result = forward(leaf)
        (gradient,) = torch.autograd.grad(result, leaf, torch.ones_like(result))
        return gradient

    scores = case.scores()
    calls = {"forward": lambda: forward(scores), "both": lambda: both(scores)}
    times = interleaved(calls, config.seconds)
    return {
        "n": float(case.shape.n),
        **{name: 1e3 * timing.minimum for name, timing in times.items()},
        "memory": peak(lambda: both(scores)) / 1e6,
        "error": abs(forward(scores).double().sum().item() - case.k),
    }


def draw(trials: Trials, path: Path) -> None:
    """A panel for each figure and rule of k, over n."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(16, 7), layout="constrained")
    panels = figure.subplots(2, len(_CURVES), sharex=True)
    for row, rule in zip(panels, ("5", "n/2"), strict=True):
        for axes, (key, label) in zip(row, _CURVES.items(), strict=True):
            for arm in (arm for arm in trials.arms if arm.endswith(f"k = {rule}")):
                for n, values in zip(
                    trials.values(arm, "n_curve"), trials.values(arm, key), strict=True
                ):
                    axes.plot(n, values, "o-", ms=3, label=arm.split(",")[0])
            axes.set(xscale="log", yscale="log", title=f"{label}, k = {rule}", xlabel="n")
            axes.grid(alpha=0.3)
    panels[0][0].legend(fontsize=7)
    figure.suptitle(trials.title)
    figure.savefig(path, dpi=100)


EXPERIMENT = Experiment(
    name="runtime_memory",
    title="Time, memory and exactness of soft top-k against n",
    presets=PRESETS,
    columns=COLUMNS,
    arms=arms,
    session=session,
    devices=("cpu",),
    draw=draw,
)

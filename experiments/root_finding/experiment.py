"""Iterations and time of the paper's root finders, and of this library's own."""

from __future__ import annotations

import math

from experiments.experiment import Experiment, Setting, Trial
from experiments.khot import root_finding
from experiments.root_finding.config import PRESETS, Config
from experiments.trials import Column, Figures, Trials

COLUMNS = (
    Column("iterations", "iterations", 2),
    Column("ms", "time, ms", 1),
    Column("log_error", "log10 of the largest error of Σ p = k", 1),
)


def arms(_: Config) -> list[str]:
    steps = [step if guess == "-" else f"{step}, {guess}" for step, guess in root_finding.METHODS]
    return [*steps, "softorder"]


def session(config: Config, _setting: Setting, _: Trials) -> Trial:
    def trial(arm: str, seed: int) -> Figures:
        x, k = root_finding.problem(config.n, seed)
        if arm == "softorder":
            iterations, seconds, error = root_finding.ours(x, k)
        else:
            step, _, guess = arm.partition(", ")
            run = root_finding.solve(x, k, step, guess or "-")
            iterations, seconds, error = run.iterations, run.seconds, run.errors[-1]
        return {
            "iterations": float(iterations),
            "ms": 1e3 * seconds,
            "log_error": math.log10(max(error, 1e-300)),
        }

    return trial


EXPERIMENT = Experiment(
    name="root_finding",
    title="Root finding: the threshold of a sigmoid top-k",
    presets=PRESETS,
    columns=COLUMNS,
    arms=arms,
    session=session,
    devices=("cpu",),
)

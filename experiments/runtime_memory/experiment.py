"""Measures every method of every part, against n."""

from __future__ import annotations

import math

from experiments.experiment import Experiment, Setting, Trial
from experiments.runtime_memory import khot, order, permutation, topk
from experiments.runtime_memory.config import PRESETS, Config
from experiments.runtime_memory.measure import curve
from experiments.runtime_memory.plots import draw
from experiments.trials import Column, Figures, Trials

_EVERY = (topk.FIVE, topk.HALF, permutation.PART, order.PART, khot.RELAXED, khot.SAMPLING)
PARTS = {part.name: part for part in _EVERY}
_COMMON = f"n = {PRESETS['quick'].common:,}"
COLUMNS = (
    Column("common_forward", f"{_COMMON}: forward, ms", 3),
    Column("common_both", f"{_COMMON}: forward and backward, ms", 3),
    Column("n", "largest n", 0),
    Column("forward", "there: forward, ms", 2),
    Column("both", "there: forward and backward, ms", 2),
    Column("forward_memory", "there: peak of forward, MB", 1),
    Column("memory", "there: peak of forward and backward, MB", 1),
    Column("log_error", "there: log10 of the error of Σ p = k", 1),
)
_EXACT = 1e-16  #: stands for an error of 0, which has no logarithm


def arms(config: Config) -> list[str]:
    return [arm for name in config.parts for arm in PARTS[name].arms()]


def session(config: Config, _setting: Setting, _: Trials) -> Trial:
    def trial(arm: str, _seed: int) -> Figures:
        name, _, provider = arm.partition(": ")
        part = PARTS[name]
        points = curve(part, part.providers[provider], config)
        last = points[-1]
        figures: dict[str, float] = {key: last[key] for key in last if key != "error"}
        if "error" in last:
            figures["log_error"] = math.log10(max(last["error"], _EXACT))
        for point in points:
            if point["n"] == config.common:
                figures |= {f"common_{key}": point[key] for key in ("forward", "both")}
        return {**figures, **{f"{key}_curve": [p[key] for p in points] for key in last}}

    return trial


EXPERIMENT = Experiment(
    name="runtime_memory",
    title="Time, memory and exactness against n: soft top-k, permutations, k-hot draws",
    presets=PRESETS,
    columns=COLUMNS,
    arms=arms,
    session=session,
    timed=True,
    devices=("cpu",),
    draw=lambda trials, path: draw(list(PARTS.values()), trials, path),
)

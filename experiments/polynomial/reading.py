"""What the figures say."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from experiments.contest import Contest
from experiments.paper import Paper
from experiments.reading import claim, leader
from experiments.trials import Trials
from experiments.words import listed

CONTESTS = (Contest("excess", "excess over the optimum", digits=4),)
_ARRIVED = 0.05  #: of the start's excess
_MOVING = 0.01  #: of the start's excess, within a tenth of the steps


def read(trials: Trials, _paper: Paper) -> list[str]:
    curves = {arm: _mean(trials.values(arm, "curve")) for arm in trials.arms}
    curves = {arm: curve for arm, curve in curves.items() if len(curve) > 1 and curve[0] > 0}
    scores = CONTESTS[0].groups(trials).get("", {})
    if not scores or not curves:
        return []
    left = {arm: curve[-1] / curve[0] for arm, curve in curves.items()}
    steps = trials.config.get("steps", 0)
    parts = [f"{arm} {100 * left[arm]:.1f} %{_motion(curves[arm])}" for arm in curves]
    sentences = [
        f"Of the excess at the start, so much is left after {steps:,} steps: {listed(parts)}.",
        leader(CONTESTS[0], scores) if len(scores) > 1 else "",
    ]
    if {"πST", "πST2"} <= left.keys():
        text = f"πST2 comes to the optimum (below {100 * _ARRIVED:.0f} % here) and πST does not"
        sentences.append(claim(text, left["πST2"] < _ARRIVED <= left["πST"]))
    return sentences


def _mean(curves: Sequence[Sequence[float]]) -> list[float]:
    return [statistics.mean(points) for points in zip(*curves, strict=True)]


def _motion(curve: Sequence[float]) -> str:
    """Whether the last tenth is below the tenth before it, by more than nothing."""
    size = max(1, len(curve) // 10)
    before, last = (statistics.mean(part) for part in (curve[-2 * size : -size], curve[-size:]))
    if before - last > _MOVING * curve[0]:
        return " and falling"
    return " and rising" if last - before > _MOVING * curve[0] else ""

"""What the figures say."""

from __future__ import annotations

import statistics

from experiments.contest import Contest, by_first, mean
from experiments.feature_selection.config import WHOLE
from experiments.paper import Paper
from experiments.reading import beside_table, papers_ratio, still_moving
from experiments.trials import Trials
from experiments.words import listed, quoted

CONTESTS = (
    Contest("loss", "test loss", digits=4, split=by_first),
    Contest(
        "least",
        "least test loss of an epoch",
        digits=4,
        split=by_first,
        deciding=False,
        figure="loss",
    ),
)
_FIXED = Contest(
    "best_loss",
    "test loss with the k most probable pixels",
    digits=4,
    split=by_first,
    figure="loss",
)

_SHOWN = 3  #: curves that have turned


def read(trials: Trials, paper: Paper) -> list[str]:
    return [
        *beside_table(CONTESTS[0], trials, paper, papers_ratio),
        *(papers_ratio(contest, trials, paper) for contest in (CONTESTS[1], _FIXED)),
        _turned(trials),
        still_moving(CONTESTS[0], trials),
        _whole(trials, paper),
    ]


def _turned(trials: Trials) -> str:
    """Whether more epochs would lower the loss: which curves have been lower than at their end."""
    curves = {arm: _mean(trials.values(arm, "curve")) for arm in trials.arms}
    curves = {arm: curve for arm, curve in curves.items() if len(curve) > 1}
    if not curves:
        return ""
    rises = {arm: curve[-1] / min(curve) - 1 for arm, curve in curves.items()}
    turned = sorted((arm for arm in curves if rises[arm] > 0), key=lambda arm: -rises[arm])
    start = f"By the means over the seeds {len(turned)} of {len(curves)} curves"
    if not turned:
        return f"{start} had turned when it ended."
    parts = []
    for arm in turned[:_SHOWN]:
        curve = curves[arm]
        least, place = min(curve), 1 + curve.index(min(curve))
        parts.append(
            f"{quoted(arm)} {CONTESTS[0].shown(least)} after epoch {place} of {len(curve)}, "
            f"{100 * rises[arm]:+.1f} % at the end"
        )
    most = "the most of them " if len(turned) > _SHOWN else ""
    return f"{start} had turned when it ended: {most}{'; '.join(parts)}."


def _mean(curves: list[list[float]]) -> list[float]:
    return [statistics.mean(points) for points in zip(*curves, strict=True)]


def _whole(trials: Trials, paper: Paper) -> str:
    """What the same network comes to when nothing is hidden from it."""
    contest = CONTESTS[1]
    printed, parts, above = contest.printed(trials, paper), [], []
    for group, scores in contest.groups(trials).items():
        if WHOLE in scores and printed.get(group):
            theirs = min(printed[group].values())
            ours = scores[WHOLE]
            above += [group] if mean(ours) > theirs else []
            parts.append(
                f"{contest.estimate(ours)} for {group}, {mean(ours) / theirs:.2f} times the "
                f"paper's least with {trials.config['k']}"
            )
    if not parts:
        return ""
    end = f" No choice of pixels is what is missing for {listed(above)}." if above else ""
    return f"The {contest.name} with {WHOLE} is {listed(parts)}.{end}"

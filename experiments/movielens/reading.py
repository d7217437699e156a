"""What the figures say."""

from __future__ import annotations

import statistics

from experiments.contest import Contest
from experiments.movielens.config import BPR, POINTWISE
from experiments.paper import Paper
from experiments.reading import against, leaders
from experiments.trials import Trials
from experiments.words import quoted


def _percent(key: str, name: str, deciding: bool = False) -> Contest:
    return Contest(key, name, True, 2, 100, " %", deciding=deciding)


CONTESTS = (
    _percent("ndcg", "NDCG@10", deciding=True),
    _percent("map", "MAP", deciding=True),
    _percent("mrr", "MRR"),
    _percent("recall", "recall@10"),
    _percent("precision", "precision@10"),
)


def read(trials: Trials, _paper: Paper) -> list[str]:
    sentences = [text for contest in CONTESTS for text in leaders(contest, trials)]
    main = CONTESTS[0]
    scores = main.groups(trials).get("", {})
    for base in (BPR, POINTWISE):
        sentences.append(against(main, scores, base, [arm for arm in scores if arm != base]))
    return [*sentences, _time(trials), _ends(trials)]


def _time(trials: Trials) -> str:
    """Of an epoch, beside the quickest."""
    seconds = {arm: trials.values(arm, "epoch_seconds") for arm in trials.arms}
    medians = {arm: statistics.median(values) for arm, values in seconds.items() if values}
    if len(medians) < 2:
        return ""
    quickest, slowest = (pick(medians, key=medians.__getitem__) for pick in (min, max))
    ratio = medians[slowest] / medians[quickest]
    return (
        f"An epoch takes {medians[quickest]:.2f} CPU seconds with {quoted(quickest)}, the least, "
        f"and {ratio:.1f} times as long with {quoted(slowest)}, the most."
    )


def _ends(trials: Trials) -> str:
    """Whose temperature stands at an end of what there was to choose from."""
    grid = trials.config["temperatures"]
    if len(grid) < 3:
        return ""
    chosen = {arm: set(trials.values(arm, "temperature")) for arm in trials.arms}
    at = [arm for arm, values in chosen.items() if values & {min(grid), max(grid)}]
    return (
        f"The chosen temperature is the lowest or the highest of {len(grid)} for {len(at)} of "
        f"{len(trials.arms)} losses."
    )

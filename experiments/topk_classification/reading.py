"""What the figures say."""

from __future__ import annotations

from experiments.contest import Contest, Pair, Scores, verdicts
from experiments.paper import Paper
from experiments.reading import against, is_sweep, leader, papers_gap, papers_order, sides, sweeps
from experiments.trials import Trials
from experiments.words import count, too_few

CONTESTS = (
    Contest("top1", "top-1 accuracy", True, 2, 100, " %"),
    Contest("top5", "top-5 accuracy", True, 2, 100, " %"),
)
_SOFTMAX = "softmax, k = 1"
_SAYS = {"top1": "always", "top5": "for most methods"}


def read(trials: Trials, paper: Paper) -> list[str]:
    tables = [(contest, contest.groups(trials).get("", {})) for contest in CONTESTS]
    if len(tables[0][1]) < 2:
        return []
    if is_sweep(trials):
        return [sweeps(contest, trials) for contest in CONTESTS]
    first, scores = tables[0]
    leads = first.order(scores)[0] == _SOFTMAX  # then nothing more is to be said of it
    return [
        *(leader(contest, scores) for contest, scores in tables),
        "" if leads else against(first, scores, _SOFTMAX, list(scores)),
        *(_mixture(contest, scores) for contest, scores in tables),
        papers_order(first, trials, paper),
        papers_gap(first, trials, paper),
    ]


def parts(arm: str) -> Pair:
    """Method, and the k.

    >>> parts("smooth top-k, k = 5")
    ('smooth top-k', '5')
    """
    method, _, k = arm.rpartition(", k = ")
    return method, k


def _is_mixture(arm: str) -> bool:
    return not parts(arm)[1].isdecimal()


def pairs(scores: Scores) -> list[Pair]:
    """Every mixture with k = 5 alone, of the same method."""
    found = [(arm, f"{parts(arm)[0]}, k = 5") for arm in scores if _is_mixture(arm)]
    return [(mixture, alone) for mixture, alone in found if alone in scores]


def _mixture(contest: Contest, scores: Scores) -> str:
    """The papers' claim: in top-1 always, in top-5 for most."""
    every = pairs(scores)
    found = verdicts(scores, every)
    better, worse, alike, unclear = sides(contest, found)
    if not every:
        return ""
    if len(unclear) == len(every):
        wins = sum(contest.cost(verdict.difference.mean) < 0 for verdict in found.values())
        seeds = max(verdict.difference.seeds for verdict in found.values())
        return (
            f"In {contest.name} a mixture of several k has a better mean than k = 5 alone in "
            f"{wins} of {count(len(every), 'comparison')}; {too_few(seeds)}."
        )
    needed = len(every) if contest.key == "top1" else len(every) // 2 + 1
    shown = "shows" if len(better) >= needed else "does not show"
    return (
        f"In {contest.name} a mixture of several k beats k = 5 alone in {len(better)} of "
        f"{count(len(every), 'comparison')}, loses in {len(worse)} and cannot be told apart in "
        f"{len(alike)}: that it does {_SAYS[contest.key]}, as the paper says, {shown} here."
    )

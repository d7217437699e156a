"""What the figures say."""

from __future__ import annotations

import re
import statistics

from experiments.contest import Contest, Pair, Scores, verdicts
from experiments.paper import Paper
from experiments.reading import against, along, claim, sides
from experiments.trials import Trials
from experiments.words import listed, starting


def by_length(arm: str) -> Pair:
    """The group says how many words a phrase has, where this is not always the same.

    >>> by_length("4 words, soft beam, laplace"), by_length("soft beam, laplace")
    (('4 words', 'soft beam, laplace'), ('', 'soft beam, laplace'))
    """
    found = re.fullmatch(r"(?:(\d+ words?), )?(.*)", arm)
    return (found[1] or "", found[2]) if found else ("", arm)


def _contest(key: str, name: str, deciding: bool) -> Contest:
    return Contest(
        key, name, digits=2, scale=100, unit=" %", split=by_length, deciding=deciding, time="tuning"
    )


CONTESTS = (_contest("phones", "phone errors", True), _contest("words", "word errors", False))
_FORCED, _OWN = _contest("forced", "", False), _contest("own", "", False)
_ADDED = Contest("", "", digits=2, unit=" points")
_BASE, _LONGER = "teacher forcing", "teacher forcing, same time"


def read(trials: Trials, _paper: Paper) -> list[str]:
    groups = CONTESTS[0].groups(trials).items()
    return [sentence for group, scores in groups for sentence in _read(trials, group, scores)]


def _read(trials: Trials, group: str, scores: Scores) -> list[str]:
    soft = [arm for arm in scores if arm.startswith("soft beam")]
    others = [arm for arm in scores if arm != _BASE]
    return [
        _headed(group, against(CONTESTS[0], scores, _BASE, others)),
        _headed(group, against(CONTESTS[0], scores, _LONGER, soft)),
        _cost(trials, group, soft),
        _exposed(trials, group),
        along(CONTESTS[0], trials, "curve_phones", group),
        _claimed(scores, group, soft),
    ]


def _headed(group: str, sentence: str) -> str:
    return f"For {group}: {sentence[0].lower()}{sentence[1:]}" if group and sentence else sentence


def _cost(trials: Trials, group: str, soft: list[str]) -> str:
    """Of an update, by the median over the seeds."""
    before, seconds = f"{group}, " if group else "", {}
    for arm in (_BASE, *soft):
        tuning, updates = (trials.values(before + arm, key) for key in ("tuning", "updates"))
        each = [time / count for time, count in zip(tuning, updates, strict=True) if count]
        if each:
            seconds[arm] = statistics.median(each)
    if _BASE not in seconds or len(seconds) < 2:
        return ""
    ratios = [f"{seconds[arm] / seconds[_BASE]:.1f}" for arm in soft if arm in seconds]
    return f"An update through the search takes {listed(ratios)} times as long{starting(group)}."


def _exposed(trials: Trials, group: str) -> str:
    """What reading its own phones costs, which is all that training through a search could mend."""
    forced, own = (contest.groups(trials).get(group, {}).get(_BASE, {}) for contest in
                   (_FORCED, _OWN))  # fmt: skip
    if not forced:
        return ""
    added = {seed: own[seed] - forced[seed] for seed in forced}
    return (
        f"With teacher forcing {_FORCED.estimate(forced)} of the phones are wrong after the right "
        f"ones{starting(group)}, and reading its own adds {_ADDED.estimate(added)}."
    )


def _claimed(scores: Scores, group: str, soft: list[str]) -> str:
    """With as many updates, as in the paper."""
    if _BASE not in scores or not soft:
        return ""
    better, _, _, unclear = sides(CONTESTS[0], verdicts(scores, [(arm, _BASE) for arm in soft]))
    shown = None if len(unclear) == len(soft) else bool(better)
    words = f"training through the search gains over teacher forcing alone{starting(group)}"
    return claim(words, shown)

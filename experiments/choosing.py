"""Which method when: the best three of every comparison in experiments/results.

`python -m experiments.docs` writes it to docs/snippets/choosing.md, for docs/choosing.md.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.catalogue import get, names
from experiments.contest import Contest, Scores, Verdict, against_best
from experiments.experiment import Experiment
from experiments.paper import Paper
from experiments.reading import contests, is_sweep
from experiments.trials import RESULTS, Trials
from experiments.words import count, listed, named, quoted
from softorder.cli._table import Table, plain

SNIPPET = Path("docs", "snippets", "choosing.md")
_NOTE = "<!-- Written by `python -m experiments.docs` from experiments/results. Do not edit. -->"
_HEAD = """\
The best three by their means, with the 95 % interval of the mean where there are three seeds or
more. p is that of a paired t-test against the best over the seeds that both have, and behind it the
same times the number of others: below 0.05 the best beats it, and with 95 % certainty the one that
is best in truth is not among those beaten; above, the two cannot be told apart. Beside it stands
the p of Wilcoxon's signed-rank test, which cannot be below 0.05 with fewer than six seeds. Time is
the median over the seeds, on the machine of the run. "Ours" marks what the paper of the experiment
has no figure for."""
_BEST = 3
_NAMES = 6  #: are listed; more are counted


@dataclass(frozen=True)
class Comparison:
    """The methods of a group, in one preset, by one figure."""

    label: str
    contest: Contest
    scores: Scores
    best: str
    others: Mapping[str, Verdict]  #: the best of them first
    seconds: Mapping[str, float]  #: of a trial
    times: Mapping[str, str]  #: as shown
    ours: frozenset[str]  #: methods without a figure in the paper

    @property
    def enough(self) -> bool:
        """Something can be said of the best and another."""
        return any(not verdict.few for verdict in self.others.values())

    def unbeaten(self) -> set[str]:
        return {self.best, *(name for name, verdict in self.others.items() if not verdict.differ)}


def page(results: Path = RESULTS) -> str:
    """The whole snippet."""
    parts = [_NOTE, _HEAD]
    for experiment in map(get, names()):
        found = list(comparisons(experiment, results))
        if found:
            parts += [f"### {experiment.title}", plain(paragraph(found)), table(found).markdown()]
    return "\n\n".join(parts) + "\n"


def comparisons(experiment: Experiment, results: Path) -> Iterator[Comparison]:
    """Of all presets that have results; a sweep over temperatures compares no methods."""
    paper = Paper.of(experiment)
    for preset in experiment.presets:
        kept = results / experiment.name / f"{preset}.json"
        if kept.exists() and not is_sweep(trials := Trials.read(kept)):
            for contest in contests(experiment):
                if contest.deciding:
                    yield from _of(experiment, paper, preset, contest, trials)


def _of(
    experiment: Experiment, paper: Paper, preset: str, contest: Contest, trials: Trials
) -> Iterator[Comparison]:
    known = {arm for figures in (paper.figures, *paper.other_data.values()) for arm in figures}
    for group, scores in contest.groups(trials).items():
        if len(scores) < 2:
            continue
        arms = {contest.split(arm)[1]: arm for arm in trials.arms if contest.split(arm)[0] == group}
        arms = {method: arm for method, arm in arms.items() if method in scores}
        label = ", ".join(part for part in (preset, group, contest.name) if part)
        best, others = against_best(contest, scores)
        seconds = {} if experiment.timed else _seconds(trials, arms, contest.time)
        ours = frozenset(m for m, arm in arms.items() if known and arm not in known)
        times = _times(trials, arms, seconds)
        yield Comparison(label, contest, scores, best, others, seconds, times, ours)


def _seconds(trials: Trials, arms: Mapping[str, str], key: str) -> dict[str, float]:
    found = {method: trials.values(arm, key) for method, arm in arms.items()}
    return {method: statistics.median(values) for method, values in found.items() if values}


def _times(trials: Trials, arms: Mapping[str, str], seconds: Mapping[str, float]) -> dict[str, str]:
    """Of a step where it was measured, otherwise of a trial."""
    steps = {method: trials.values(arm, "step") for method, arm in arms.items()}
    shown = {
        method: f"{value:,.{0 if value >= 10 else 1}f} s a trial"
        for method, value in seconds.items()
    }
    return shown | {m: f"{statistics.median(v):.2f} ms a step" for m, v in steps.items() if v}


def table(found: Sequence[Comparison]) -> Table:
    """Columns that would be empty are left out."""
    timed, ours = (any(getattr(one, name) for one in found) for name in ("times", "ours"))
    more = [name for name, has in (("time", timed), ("", ours)) if has]
    shown = Table(["comparison", "best three", "mean", "p (corrected)", "Wilcoxon", *more])
    for one in found:
        label = one.label
        for method in [one.best, *one.others][:_BEST]:
            value, p = one.contest.estimate(one.scores[method]), _p(one.others.get(method))
            time = [one.times.get(method, "-")] if timed else []
            mark = ["ours" if method in one.ours else ""] if ours else []
            shown.add(label, method, value, *p, *time, *mark)
            label = ""
    return shown


def _p(verdict: Verdict | None) -> tuple[str, str]:
    """Of the t-test, and of Wilcoxon's."""
    if verdict is None:
        return "", ""
    if verdict.few:
        return "too few seeds", ""
    difference = verdict.difference
    return f"{difference.t:.2g} ({verdict.p:.2g})", f"{difference.wilcoxon:.2g}"


def paragraph(found: Sequence[Comparison]) -> str:
    """Who leads, who is not beaten, and which of these is the quickest."""
    leads = Counter(one.best for one in found).most_common()
    shown = [f"{quoted(method)} in {times} of {len(found)}" for method, times in leads]
    sentences = [f"Best by the mean: {listed(shown)}."]
    ours = any(one.ours for one in found)
    if ours:
        led = sum(one.best in one.ours for one in found)
        sentences.append(f"What is ours is the best in {led} of {len(found)}.")
    able = [one for one in found if one.enough]
    if not able:
        return " ".join([*sentences, "Nothing has three seeds: chance may turn all of this."])
    never = set.intersection(*(one.unbeaten() for one in able))
    first = able[0].contest.order(able[0].scores)
    ordered = [method for method in first if method in never]
    where = count(len(able), "comparison")
    who = named(ordered) if len(ordered) <= _NAMES else f"{len(ordered)} of {len(first)}"
    sentences.append(f"Not beaten by the best in {where} with enough seeds: {who or 'none'}.")
    timed = [m for m in ordered if all(m in one.seconds for one in able)]
    if len(timed) > 1:
        quickest = min(timed, key=lambda m: sum(one.seconds[m] for one in able))
        sentences.append(f"The quickest of these is {quoted(quickest)}.")
    return " ".join(sentences)

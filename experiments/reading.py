"""What the figures of an experiment say, in sentences that are computed from them.

A folder of an experiment has a module reading.py with `CONTESTS` and a function `read(trials,
paper)` that returns sentences. A word such as "beats" or "better" stands only where a paired t-test
over the seeds that both arms have, corrected for the comparisons of the sentence, is below 5 %.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

from experiments.contest import Contest, Pair, Scores, Verdict, against_best, mean, verdicts
from experiments.experiment import Experiment
from experiments.paper import Paper
from experiments.statistics import concordance
from experiments.trials import Trials
from experiments.words import (
    FEW_NAMES,
    count,
    few,
    listed,
    quoted,
    span,
    span_signed,
    starting,
    too_few,
)

Distance = Callable[[Contest, Trials, Paper], str]  #: from the paper's figures


def reading(experiment: Experiment, paper: Paper, trials: Trials) -> str:
    """All sentences; empty if the figures that they are about are not there."""
    read = part(experiment, "read", lambda trials, paper: [])
    return " ".join(sentence for sentence in read(trials, paper) if sentence)


def contests(experiment: Experiment) -> Sequence[Contest]:
    found: Sequence[Contest] = part(experiment, "CONTESTS", ())
    return found


def part(experiment: Experiment, name: str, otherwise: Any) -> Any:
    """Of the module reading.py of an experiment; one that is new may be without it."""
    module = f"experiments.{experiment.name}.reading"
    return getattr(import_module(module), name, otherwise) if find_spec(module) else otherwise


def leaders(contest: Contest, trials: Trials) -> list[str]:
    """A sentence for every group with several methods."""
    every = contest.groups(trials).items()
    return [leader(contest, scores, group) for group, scores in every if len(scores) > 1]


def leader(contest: Contest, scores: Scores, group: str = "") -> str:
    """Who is best, whom it beats, and from whom it cannot be told apart."""
    best, others = against_best(contest, scores)
    word = "Highest" if contest.higher else "Least"
    value = contest.estimate(scores[best])
    start = f"{word} {contest.name}{starting(group)}: {quoted(best)} ({value})"
    unclear = [name for name, verdict in others.items() if verdict.few]
    if len(unclear) == len(others):
        second = unclear[0]
        seeds = others[second].difference.seeds
        value = contest.estimate(scores[second])
        return f"{start}, then {quoted(second)} ({value}); {too_few(seeds)}."
    beaten = [name for name, verdict in others.items() if verdict.differ]
    alike = [name for name in others if name not in beaten and name not in unclear]
    parts = []
    if beaten:
        sizes = [abs(others[name].difference.mean) for name in beaten]
        parts.append(f"it beats {few(beaten, len(others))} by {span(contest, sizes)}")
    if alike:
        every = len(alike) == len(others) > FEW_NAMES
        whom = f"any of the {len(others)} others" if every else few(alike, len(others))
        parts.append(f"it cannot be told apart from {whom}")
    if unclear:
        parts.append(f"{few(unclear, len(others))}: too few seeds to tell")
    return f"{start}; {'; '.join(parts)}."


def against(
    contest: Contest,
    scores: Scores,
    base: str,
    others: Sequence[str],
    bases: Sequence[str] = (),
) -> str:
    """Each of the others against one that was chosen before: who is better, worse, neither.

    One that is the best of several `bases` was chosen by the same trials: then the correction is
    over all of these.
    """
    others = [name for name in others if name in scores and name != base]
    if base not in scores or not others:
        return ""
    every = verdicts(scores, [(name, one) for one in bases or [base] for name in others])
    found = {pair: verdict for pair, verdict in every.items() if pair[1] == base}
    better, worse, alike, unclear = sides(contest, found)
    total = len(others)
    parts = []
    for word, pairs in (("better", better), ("worse", worse)):
        if pairs:
            sizes = [abs(found[pair].difference.mean) for pair in pairs]
            who = few([name for name, _ in pairs], total)
            verb = "is" if len(pairs) == 1 else "are"
            parts.append(f"{who} {verb} {word} by {span(contest, sizes)}")
    if alike:
        parts.append(f"{few([name for name, _ in alike], total)} cannot be told apart from it")
    if unclear:
        gaps = [found[pair].difference for pair in unclear]
        who = few([name for name, _ in unclear], total)
        means = span_signed(contest, [gap.mean for gap in gaps if gap.seeds])
        verb = "differs" if len(unclear) == 1 else "differ"
        parts.append(f"{who} {verb} by {means}, but {too_few(max(gap.seeds for gap in gaps))}")
    value = contest.estimate(scores[base])
    start = f"{contest.name[0].upper()}{contest.name[1:]}, beside {quoted(base)} ({value})"
    return f"{start}: {'; '.join(parts)}."


def gains(contest: Contest, scores: Scores, base: str, group: str = "") -> str:
    """What each variant brings beside the base, the most first."""
    others = [name for name in contest.order(scores) if name != base]
    if base not in scores or not others:
        return ""
    found = verdicts(scores, [(name, base) for name in others])
    start = f"Beside {quoted(base)} ({contest.estimate(scores[base])}){starting(group)}"
    sure = [name for name in others if found[name, base].differ]
    unclear = [name for name in others if found[name, base].few]
    alike = [name for name in others if name not in sure and name not in unclear]
    parts = []
    for words, names in (
        ("more than chance is", sure),
        ("that it is more is not shown for", alike),
    ):
        means = [found[name, base].difference.mean for name in names]
        brought = [span_signed(contest, [mean_]) for mean_ in means]
        every = [f"{size} by {quoted(name)}" for size, name in zip(brought, names, strict=True)]
        if every:
            parts.append(f"{words} {listed(every)}")
    if unclear:
        seeds = max(found[name, base].difference.seeds for name in unclear)
        parts.append(f"{few(unclear, len(others))}: {too_few(seeds)}")
    return f"{start}: {'; '.join(parts)}."


class Sides(NamedTuple):
    """Pairs, by what can be said of their first."""

    better: list[Pair]
    worse: list[Pair]
    alike: list[Pair]
    unclear: list[Pair]  #: too few seeds


def sides(contest: Contest, found: Mapping[Pair, Verdict]) -> Sides:
    sorted_ = Sides([], [], [], [])
    for pair, verdict in found.items():
        if verdict.few:
            sorted_.unclear.append(pair)
        elif not verdict.differ:
            sorted_.alike.append(pair)
        else:
            first_wins = contest.cost(verdict.difference.mean) < 0
            (sorted_.better if first_wins else sorted_.worse).append(pair)
    return sorted_


def papers_order(contest: Contest, trials: Trials, paper: Paper) -> str:
    """How many pairs of methods stand as in the paper, and whether the others' turn is chance."""
    printed = contest.printed(trials, paper)
    turned: list[str] = []
    surely: list[str] = []
    same, able = 0, False
    for group, scores in contest.groups(trials).items():
        ours = {name: contest.cost(mean(scores[name])) for name in scores}
        theirs = {name: contest.cost(value) for name, value in printed.get(group, {}).items()}
        agree, differ = concordance(ours, theirs)
        same += agree
        found = verdicts(scores, differ)
        said = {(a, b): f"{quoted(b)} before {quoted(a)}{starting(group)}" for a, b in differ}
        turned += said.values()
        surely += [text for pair, text in said.items() if found[pair].differ]
        able |= any(not verdict.few for verdict in found.values())
    every = same + len(turned)
    if not every:
        return ""
    if not turned:
        return f"By the means {_all(every)} in the paper's order."
    tau = (same - len(turned)) / every
    text = f"By the means {same} of {count(every, 'pair')} are in the paper's order (τ = {tau:.2f})"
    text += f", but {listed(turned)}" if len(turned) <= FEW_NAMES // 2 else ""
    if not able:
        return f"{text}; too few seeds to tell whether that is more than chance."
    if not surely:
        return f"{text}; that this is more than chance is not shown."
    shown = listed(surely) if len(surely) <= FEW_NAMES else f"{len(surely)} of the others"
    return f"{text}; more than chance is {shown}."


def _all(pairs: int) -> str:
    return (
        "the one pair is" if pairs == 1 else f"{'both' if pairs == 2 else f'all {pairs}'} pairs are"
    )


def papers_ratio(contest: Contest, trials: Trials, paper: Paper) -> str:
    """Our means as multiples of the paper's figures."""
    ratios = {arm: ours / theirs for arm, (ours, theirs) in _both(contest, trials, paper).items()}
    if not ratios:
        return ""
    low, high = (pick(ratios, key=lambda arm: ratios[arm]) for pick in (min, max))
    ends = f"{ratios[low]:.2f} ({quoted(low)}) to {ratios[high]:.2f} ({quoted(high)})"
    times = ends if len(ratios) > 1 else f"{ratios[low]:.2f}"
    return f"The {contest.name} is {times} times the paper's."


def papers_gap(contest: Contest, trials: Trials, paper: Paper) -> str:
    """Our means minus the paper's figures."""
    gaps = {arm: ours - theirs for arm, (ours, theirs) in _both(contest, trials, paper).items()}
    if not gaps:
        return ""
    low, high = (pick(gaps, key=lambda arm: gaps[arm]) for pick in (min, max))
    ends = f"{span_signed(contest, [gaps[low]])} ({quoted(low)})"
    if len(gaps) > 1:
        ends = f"from {ends} to {span_signed(contest, [gaps[high]])} ({quoted(high)})"
    return f"Our {contest.name} minus the paper's: {ends}."


def _both(contest: Contest, trials: Trials, paper: Paper) -> dict[str, tuple[float, float]]:
    """Ours and theirs, of the arms that have both."""
    printed, found = contest.printed(trials, paper), {}
    for group, scores in contest.groups(trials).items():
        for name in scores:
            if name in printed.get(group, {}):
                arm = ", ".join(part for part in (group, name) if part)
                found[arm] = (mean(scores[name]), printed[group][name])
    return found


def claim(text: str, shown: bool | None) -> str:
    """Whether a claim of the paper shows in our figures; None if they are too few."""
    if shown is None:
        return f"That {text}, as the paper says, cannot be told from so few seeds."
    return f"That {text}, as the paper says, {'shows' if shown else 'does not show'} here."


def still_moving(contest: Contest, trials: Trials, key: str = "curve", unit: str = "epoch") -> str:
    """How much a curve changed at its end, as part of its value there."""
    changes = []
    for arm in trials.arms:
        curves = [curve for curve in trials.values(arm, key) if len(curve) > 1 and curve[-1]]
        changes += [100 * (curve[-1] / curve[-2] - 1) for curve in curves]
    if not changes:
        return ""
    low, middle, high = (f(changes) for f in (min, statistics.median, max))
    return (
        f"In the last {unit} the {contest.name} changed by {middle:+.1f} % in the median trial "
        f"({low:+.1f} to {high:+.1f} %)."
    )


_SWEPT = re.compile(r"(?P<line>.+), (?P<symbol>τ|α|m) = (?P<value>[\d.e+-]+)$")


def along(contest: Contest, trials: Trials, key: str, group: str = "") -> str:
    """Where the curves of a group's arms begin and end, in the mean over the seeds."""
    parts = []
    for arm in trials.arms:
        own, method = contest.split(arm)
        curves = [curve for curve in trials.values(arm, key) if len(curve) > 1]
        if own == group and curves:
            first, last = (
                contest.scale * statistics.mean(curve[end] for curve in curves) for end in (0, -1)
            )
            start = contest.shown(first).removesuffix(contest.unit)
            parts.append(f"{start} to {contest.shown(last)} with {quoted(method)}")
    if not parts:
        return ""
    return (
        f"On the validation part, from the first point of the curve to the last{starting(group)}: "
        f"{contest.name} {listed(parts)}."
    )


def swept(arm: str) -> Pair | None:
    """
    >>> swept("laplace, share, τ = 0.3")
    ('laplace, share', 'τ = 0.3')
    """
    found = _SWEPT.match(arm)
    return (found["line"], f"{found['symbol']} = {found['value']}") if found else None


def sweeps(contest: Contest, trials: Trials, where: Callable[[str], Pair | None] = swept) -> str:
    """The best value of every line, and how many others cannot be told from it; `where` finds line
    and value of an arm."""
    lines: dict[str, dict[str, dict[int, float]]] = {}
    for scores in contest.groups(trials).values():
        for arm, values in scores.items():
            if found := where(arm):
                lines.setdefault(found[0], {})[found[1]] = values
    parts = [_swept(contest, line, scores) for line, scores in lines.items() if len(scores) > 1]
    return f"Best for {contest.name}: {'; '.join(parts)}." if parts else ""


def _swept(contest: Contest, line: str, scores: Scores) -> str:
    best, others = against_best(contest, scores)
    alike = sum(not verdict.differ for verdict in others.values())
    near = f"not told apart from {alike} of {len(others)} others"
    if all(verdict.few for verdict in others.values()):
        near = "too few seeds to tell"
    return f"{quoted(line)} {best} ({contest.estimate(scores[best])}, {near})"


def is_sweep(trials: Trials) -> bool:
    """Most of the arms are, or all are variants of one method: no methods are compared."""
    if trials.config.get("variants"):
        return True
    return 2 * sum(bool(_SWEPT.match(arm)) for arm in trials.arms) > len(trials.arms)


def beside_table(contest: Contest, trials: Trials, paper: Paper, distance: Distance) -> list[str]:
    """For a table of a paper: who leads, whether the order is the paper's, how far we are off."""
    return [
        *leaders(contest, trials),
        papers_order(contest, trials, paper),
        distance(contest, trials, paper),
    ]

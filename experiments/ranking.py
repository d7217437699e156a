"""Average ranks of the methods over many cases, and the critical-difference diagrams of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.contest import Contest, Scores
from experiments.experiment import Experiment
from experiments.reading import contests, is_sweep, part
from experiments.statistics import Ranking, ranking
from experiments.trials import Trials
from softorder.cli._table import Table

_FEWEST_METHODS, _FEWEST_CASES = 3, 5
_INCH = 0.3  #: of a line with a name
_COLORS = {"alike": "black", "wilcoxon": "C1"}


@dataclass(frozen=True)
class Cases:
    """Values of several methods, each with one for every case."""

    title: str
    values: Mapping[str, Sequence[float]]
    higher: bool  #: is better
    kind: str = "seeds"  #: what the cases are


def cases(experiment: Experiment, trials: Trials) -> list[Cases]:
    """Those that are enough for a diagram."""
    of = part(experiment, "cases", None)
    if of is None:
        deciding = [] if is_sweep(trials) else _deciding(experiment)
        found = [of_contest(contest, trials) for contest in deciding]
    else:
        found = of(trials)
    return [one for one in found if _enough(one)]


def across(experiment: Experiment, kept: Mapping[str, Trials]) -> list[Cases]:
    """Over several presets, of the methods that all of them have."""
    found = []
    for contest in _deciding(experiment):
        groups = {
            f"{preset}, {group}": scores
            for preset, trials in kept.items()
            if not is_sweep(trials)
            for group, scores in contest.groups(trials).items()
        }
        found.append(of_groups(contest, groups, "presets and seeds"))
    return [one for one in found if _enough(one)] if len(kept) > 1 else []


def _deciding(experiment: Experiment) -> list[Contest]:
    return [contest for contest in contests(experiment) if contest.deciding]


def _enough(one: Cases) -> bool:
    enough = len(one.values) >= _FEWEST_METHODS
    return enough and len(next(iter(one.values.values()))) >= _FEWEST_CASES


def of_contest(contest: Contest, trials: Trials) -> Cases:
    groups = contest.groups(trials)
    return of_groups(contest, groups, "seeds" if len(groups) < 2 else "groups and seeds")


def of_groups(contest: Contest, groups: Mapping[str, Scores], kind: str) -> Cases:
    """A case is a seed of a group; a method takes part if it ran in every group, a case if all
    these methods have it."""
    every = dict.fromkeys(method for scores in groups.values() for method in scores)
    methods = [m for m in every if all(m in scores for scores in groups.values())]
    shared = [
        (group, seed)
        for group, scores in groups.items()
        for seed in sorted(set.intersection(*(set(scores[m]) for m in methods)) if methods else ())
    ]
    values = {m: [groups[group][m][seed] for group, seed in shared] for m in methods}
    return Cases(contest.name, values, contest.higher, kind)


def table(every: Sequence[Cases]) -> Table:
    """What the diagrams show: how many differ, and by how much they have to."""
    shown = Table(
        [
            "average ranks",
            "methods",
            "cases",
            "best",
            "worst",
            "Friedman's p",
            "critical difference",
            "others like the best",
        ]
    )
    for case in every:
        found = ranking(case.values, case.higher)
        first, last = (f"{name} ({found.ranks[name]:.1f})" for name in _ends(found))
        top = min(found.ranks.values())
        alike = sum(rank - top <= found.critical for rank in found.ranks.values()) - 1
        shown.add(
            case.title,
            str(len(found.ranks)),
            f"{found.cases} {case.kind}",
            first,
            last,
            f"{found.p:.2g}",
            f"{found.critical:.1f}",
            str(alike),
        )
    return shown


def _ends(found: Ranking) -> tuple[str, str]:
    names = list(found.ranks)
    return names[0], names[-1]


def note(every: Sequence[Cases]) -> str:
    """Where Wilcoxon's test draws no line."""
    found = [ranking(case.values, case.higher) for case in every]
    short = [ranks for ranks in found if ranks.cases < ranks.needed]
    if not short:
        return ""
    needed = max(ranks.needed for ranks in short)
    which = "here" if len(short) == len(found) else f"in {len(short)} of {len(found)}"
    return f"Wilcoxon's test for all pairs can tell nothing {which}: it needs {needed} cases."


def draw(every: Sequence[Cases], path: Path) -> None:
    """Demšar's diagram of each: the best on the right, and lines that join what cannot be told
    apart, black by Nemenyi's test, orange by Wilcoxon's with Holm's correction."""
    from matplotlib.figure import Figure

    found = [ranking(case.values, case.higher) for case in every]
    heights = [1.2 + _INCH * (len(r.ranks) / 2 + _bars(r) / 2) for r in found]
    figure = Figure(figsize=(9, sum(heights)), layout="constrained")
    panels = figure.subplots(len(every), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, case, ranks in zip(panels, every, found, strict=True):
        _panel(axes, case, ranks)
    figure.savefig(path, dpi=100)


def _bars(found: Ranking) -> int:
    return len(found.alike) + len(found.wilcoxon)


def _panel(axes, case: Cases, found: Ranking) -> None:  # type: ignore[no-untyped-def]
    """Depth grows downwards: the axis, the joining lines, then the names, half on each side."""
    names, worst = list(found.ranks), len(found.ranks)
    depth = 0.6
    for kind, color in _COLORS.items():
        for run in getattr(found, kind):
            ends = [found.ranks[run[-1]] + 0.05, found.ranks[run[0]] - 0.05]
            axes.plot(ends, [depth, depth], color=color, lw=3, solid_capstyle="butt")
            depth += 0.5
    half = (worst + 1) // 2
    for place, name in enumerate(names):
        right = place < half
        line = depth + (place if right else worst - 1 - place) + 0.5
        edge = 0.7 if right else worst + 0.3
        rank = found.ranks[name]
        axes.plot([rank, rank, edge], [0, line, line], color="0.5", lw=0.8)
        label = f" {name} ({rank:.1f})" if right else f"({rank:.1f}) {name} "
        axes.text(edge, line, label, ha="left" if right else "right", va="center", fontsize=8)
    axes.plot([1, 1 + found.critical], [-0.9, -0.9], color="black", lw=1, marker="|")
    axes.text(1 + found.critical / 2, -1.1, "critical difference", ha="center", fontsize=7)
    axes.set(xlim=(worst + 2.5, -1.5), ylim=(depth + half + 0.5, -2))
    axes.xaxis.set_ticks_position("top")
    axes.spines[["left", "right", "bottom"]].set_visible(False)
    axes.spines["top"].set(position=("data", 0), bounds=(1, worst))
    axes.set_xticks(range(1, worst + 1, 1 + worst // 16))  # more would run into each other
    axes.set_yticks([])
    axes.set_title(f"{case.title}, {found.cases} {case.kind}", fontsize=9)

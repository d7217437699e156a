"""What the figures say."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from experiments.contest import Contest
from experiments.paper import Paper
from experiments.ranking import Cases
from experiments.reading import claim
from experiments.runtime_memory.config import PARTS, PRESETS
from experiments.statistics import Ranking, ranking
from experiments.trials import Trials


def split(arm: str) -> tuple[str, str]:
    """The part, and the method."""
    part, _, method = arm.partition(": ")
    return part, method


_COMMON = f"n = {PRESETS['quick'].common:,}"
CONTESTS = (Contest("common_both", f"time at {_COMMON}", digits=3, unit=" ms", split=split),)
_OURS, _ITERATIONS, _RECURSION = "laplace", "200 Sinkhorn iterations", "SIMPLE's recursion"
_TOPK, _PERMUTATION, _SAMPLING = PARTS[:2], PARTS[2], PARTS[5]
_DRAWS = ("pareto", "pivotal", "systematic")
_CURVES = {
    "both_curve": "time of forward and backward",
    "memory_curve": "peak of memory",
    "error_curve": "error of Σ p = k",
}
Curve = Mapping[float, float]  #: by n


def read(trials: Trials, _paper: Paper) -> list[str]:
    found = {case.title: ranking(case.values, case.higher) for case in cases(trials)}
    return [
        *(_places(found, _CURVES[key]) for key in ("both_curve", "memory_curve")),
        _slower(trials),
        _drawing(trials),
        _topk_claim(found),
        _permutation_claim(found),
    ]


def cases(trials: Trials) -> list[Cases]:
    """Every n is a case, and who did not get so far is last in it."""
    found = []
    for part in (*_TOPK, _PERMUTATION):
        for key, name in _CURVES.items():
            if part == _PERMUTATION and key == "error_curve":
                continue  # NeuralSort and SoftSort make no permutation matrix
            lines = _lines(trials, part, key)
            sizes = sorted({n for line in lines.values() for n in line})
            if len(lines) > 2 and len(sizes) > 2:
                values = {m: [line.get(n, math.inf) for n in sizes] for m, line in lines.items()}
                found.append(Cases(f"{part}: {name}", values, False, "sizes"))
    return found


def _lines(trials: Trials, part: str, key: str) -> dict[str, Curve]:
    """Of the first seed that a method has."""
    found: dict[str, Curve] = {}
    for record in trials.records:
        group, method = split(record["arm"])
        if group == part and key in record and method not in found:
            found[method] = dict(zip(record["n_curve"], record[key], strict=True))
    return found


def _places(found: Mapping[str, Ranking], name: str) -> str:
    parts = []
    for title, ranks in found.items():
        if title.endswith(name) and _OURS in ranks.ranks:
            best = next(iter(ranks.ranks))
            lead = "" if best == _OURS else f", {best} leading with {ranks.ranks[best]:.1f}"
            parts.append(
                f"{ranks.ranks[_OURS]:.1f} of {len(ranks.ranks)} for {title.partition(': ')[0]} "
                f"({ranks.cases} sizes{lead})"
            )
    return f"Average rank of {_OURS} by {name}: {'; '.join(parts)}." if parts else ""


def _ratios(slow: Curve, fast: Curve) -> list[float]:
    return [slow[n] / fast[n] for n in slow if fast.get(n)]


def _range(ratios: Sequence[float]) -> str:
    low, high = (f"{float(f'{end:.2g}'):,.4g}" for end in (min(ratios), max(ratios)))
    return low if low == high else f"{low} to {high}"


def _slower(trials: Trials) -> str:
    """The published iterations against ours, where both have been."""
    parts = []
    for part in _TOPK:
        ratios = []
        for key in ("forward_curve", "both_curve"):
            lines = _lines(trials, part, key)
            ratios.append(_ratios(lines.get(_ITERATIONS, {}), lines.get(_OURS, {})))
        if all(ratios):
            forward, both = map(_range, ratios)
            parts.append(f"{forward} times as long for {part} ({both} with backward)")
    if not parts:
        return ""
    errors = [e for part in _TOPK for e in trials.values(f"{part}: {_ITERATIONS}", "log_error")]
    worst = f"; their sums are off by up to 10^{max(errors):.1f}" if errors else ""
    return f"At the n that both reach, {_ITERATIONS} take {'; '.join(parts)} as {_OURS}{worst}."


def _drawing(trials: Trials) -> str:
    lines = _lines(trials, _SAMPLING, "both_curve")
    slow = lines.get(_RECURSION, {})
    parts = []
    for method in _DRAWS:
        shared = [n for n in slow if n in lines.get(method, {})]
        if shared:
            n = max(shared)
            parts.append(
                f"{_range([slow[n] / lines[method][n]])} times that of {method}, which grows like "
                f"n^{growth(lines[method]):.1f}"
            )
    return f"At the largest n of {_RECURSION} its time is {'; '.join(parts)}." if parts else ""


def growth(line: Curve) -> float:
    """The slope of log time over log n, between the last n and that of a tenth of it."""
    last = max(line)
    first = min(line, key=lambda n: abs(math.log(n * 10 / last)))
    if first == last:
        return 0.0
    return math.log(line[last] / line[first]) / math.log(last / first)


def among_the_best(ranks: Ranking) -> bool:
    """Nemenyi's test does not tell ours from the first."""
    return ranks.ranks[_OURS] - min(ranks.ranks.values()) <= ranks.critical


def _topk_claim(found: Mapping[str, Ranking]) -> str:
    """For each part and figure whether it is so."""
    of = {t: r for t, r in found.items() if t.startswith(_TOPK) and _OURS in r.ranks}
    if not of:
        return ""
    text = "LapSum is among the fastest, the smallest and the nearest to Σ p = k for soft top-k"
    failed = [title for title, ranks in of.items() if not among_the_best(ranks)]
    where = f", but not for {'; '.join(failed)}" if 0 < len(failed) < len(of) else ""
    return claim(text, len(failed) < len(of)).removesuffix(".") + f"{where}."


def _permutation_claim(found: Mapping[str, Ranking]) -> str:
    of = [r for title, r in found.items() if title.startswith(_PERMUTATION) and _OURS in r.ranks]
    if not of:
        return ""
    text = "its soft permutations are faster and smaller than the others'"
    return claim(text, all(next(iter(r.ranks)) == _OURS for r in of))

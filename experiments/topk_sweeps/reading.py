"""What the figures say."""

from __future__ import annotations

from experiments.contest import Contest, Pair, Scores, mean, verdicts
from experiments.paper import Paper
from experiments.topk_sweeps.points import METHOD
from experiments.trials import Trials
from experiments.words import too_few


def parts(arm: str) -> Pair:
    """Sweep and curve, and the place on it.

    >>> parts("temperature = 0.3, laplace, k = 5")
    ('temperature, laplace, k = 5', '0.3')
    """
    place, _, curve = arm.partition(", ")
    sweep, _, x = place.partition(" = ")
    return f"{sweep}, {curve}", x


CONTESTS = (
    Contest("top1", "top-1 accuracy", True, 2, 100, " %", parts, deciding=False),
    Contest("top5", "top-5 accuracy", True, 2, 100, " %", parts, deciding=False),
)


def read(trials: Trials, _paper: Paper) -> list[str]:
    said = []
    for contest in CONTESTS:
        groups = contest.groups(trials)
        said += [
            *(_width(contest, name, scores) for name, scores in groups.items()),
            _share(contest, groups.get(f"share, {METHOD}", {})),
            _m(contest, groups.get(f"m, {METHOD}", {})),
        ]
    return said


def _width(contest: Contest, name: str, scores: Scores) -> str:
    """How far the temperature may be from the best one."""
    sweep, _, curve = name.partition(", ")
    if sweep != "temperature" or len(scores) < 2:
        return ""
    best = contest.order(scores)[0]
    found = verdicts(scores, [(x, best) for x in scores if x != best])
    alike = [x for (x, _), verdict in found.items() if not verdict.differ and not verdict.few]
    near = sorted(map(float, [best, *alike]))
    start = f'{contest.name[0].upper()}{contest.name[1:]} of "{curve}" is highest at τ = {best}'
    if all(verdict.few for verdict in found.values()):
        return f"{start}."
    return (
        f"{start} ({contest.estimate(scores[best])}); what cannot be told apart from it lies "
        f"within τ = {near[0]:g} to {near[-1]:g}."
    )


def _share(contest: Contest, scores: Scores) -> str:
    """Where the share of k = 5 is best, and what k = 5 alone costs."""
    if not {"0", "1"} < scores.keys():
        return ""
    best = contest.order(scores)[0]
    value = contest.estimate(scores[best])
    name = f"{contest.name[0].upper()}{contest.name[1:]}"
    start = f"{name} is highest with a share {best} of k = 5 ({value})"
    ends = [end for end in ("0", "1") if end != best]
    found = verdicts(scores, [(best, end) for end in ends])
    if any(verdict.few for verdict in found.values()):
        return f"{start}; {too_few(min(v.difference.seeds for v in found.values()))}."
    says = [
        f"{'beats' if verdict.differ else 'cannot be told apart from'} a share of {end} "
        f"({contest.shown(mean(scores[end]))})"
        for (_, end), verdict in found.items()
    ]
    return f"{start}, which {' and '.join(says)}."


def _m(contest: Contest, scores: Scores) -> str:
    """Whether m matters."""
    if len(scores) < 2:
        return ""
    means = {m: mean(scores[m]) for m in scores}
    low, high = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
    between = (
        f"{contest.shown(means[low])} (m = {low}) to {contest.shown(means[high])} (m = {high})"
    )
    return f"Over m it goes from {between}."

"""What the figures say."""

from __future__ import annotations

import math

from experiments.contest import Contest, mean
from experiments.estimators.cases import LOSSES
from experiments.paper import Paper
from experiments.reading import claim
from experiments.trials import Trials
from experiments.words import named, quoted

CONTESTS = tuple(
    Contest(
        f"{what}_{loss}",
        f"{what}, {loss} loss",
        digits=digits,
        deciding=what == "bias" and loss != "linear",
    )
    for loss in LOSSES
    for what, digits in (("bias", 3), ("deviation", 2))
)
_ROUNDING = 1e-6
Means = dict[str, dict[str, float]]  #: by arm and key


def read(trials: Trials, _paper: Paper) -> list[str]:
    found: Means = {}
    for contest in CONTESTS:
        for arm, values in contest.groups(trials).get("", {}).items():
            found.setdefault(arm, {})[contest.key] = mean(values)
    found = {arm: figures for arm, figures in found.items() if len(figures) == len(CONTESTS)}
    if not found:
        return []
    repetitions = trials.config.get("repetitions", 1)
    return [
        _unbiased(found, repetitions),
        _largest(found),
        _second_order(found),
        _proposition(found, repetitions),
        _hoped(found, repetitions, trials.config.get("k", 1)),
    ]


def visible(figures: dict[str, float], loss: str, repetitions: int) -> bool:
    """A bias that the mean of so many repetitions has by chance is not seen."""
    noise = figures[f"deviation_{loss}"] / math.sqrt(repetitions)
    return figures[f"bias_{loss}"] > noise + _ROUNDING


def _unbiased(found: Means, repetitions: int) -> str:
    free = {
        loss: [arm for arm in found if not visible(found[arm], loss, repetitions)]
        for loss in LOSSES
    }
    parts = [f"for a {loss} loss {named(arms) or 'none'}" for loss, arms in free.items()]
    return f"No bias that {repetitions:,} repetitions can show: {'; '.join(parts)}."


def _largest(found: Means) -> str:
    parts = []
    for loss in LOSSES:
        arm = max(found, key=lambda arm: found[arm][f"deviation_{loss}"])
        parts.append(f"for a {loss} loss {quoted(arm)} ({found[arm][f'deviation_{loss}']:.2f})")
    return f"Largest deviation: {'; '.join(parts)}."


def _second_order(found: Means) -> str:
    if not {"straight_through", "second_order"} <= found.keys():
        return ""
    first, second = found["straight_through"], found["second_order"]
    parts = []
    for loss in LOSSES:
        bias, deviation = (f"{what}_{loss}" for what in ("bias", "deviation"))
        if first[bias] > _ROUNDING and first[deviation] > _ROUNDING:
            parts.append(
                f"{100 * second[bias] / first[bias]:.0f} % of its bias for a {loss} loss, with "
                f"{second[deviation] / first[deviation]:.2f} times its deviation"
            )
    return f"Beside straight-through, second order has {'; '.join(parts)}." if parts else ""


def _proposition(found: Means, repetitions: int) -> str:
    if "straight_through" not in found or "linear" not in LOSSES:
        return ""
    shown = not visible(found["straight_through"], "linear", repetitions)
    return claim("straight-through has no bias where the loss is linear", shown)


def _hoped(found: Means, repetitions: int, k: int) -> str:
    """ReinMax has none for quadratics, of one-hot vectors."""
    if "second_order" not in found or "quadratic" not in LOSSES:
        return ""
    figures = found["second_order"]
    seen = visible(figures, "quadratic", repetitions)
    size = f"one of {figures['bias_quadratic']:.3f}" if seen else "none either"
    return f"ReinMax has no bias for quadratic losses at k = 1; second order, at k = {k}, {size}."

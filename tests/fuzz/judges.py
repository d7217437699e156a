"""Who judges an answer: another computation of it (here), and what holds of any (decent.py).

Two answers are compared in units of the stated accuracy (units.py); up to `ALLOWED` of them are
rounding. Where rounding decides more than that is told in excuses.py.
"""

import math
from dataclasses import dataclass, field

import torch

from tests.fuzz import excuses, units

ALLOWED = 4


@dataclass(frozen=True)
class Answer:
    """What a call gave: the result, and the gradients by name."""

    result: torch.Tensor
    gradients: dict
    room: dict = field(
        default_factory=dict
    )  # by name: this part in float64, how far off others may be

    def parts(self):
        yield "the result", self.result
        for name, gradient in self.gradients.items():
            yield f"the gradient of {name}", gradient


def agree(problem, one, other, whose):
    """What two answers to the same problem disagree about, in words, if anything."""
    if problem.name == "network" and excuses.swamped(problem):
        return ""
    if problem.name == "cauchy" and excuses.underflows(problem):
        return ""
    if problem.name == "sequential_softmax" and excuses.exhausted(problem):
        return ""
    for (name, found), (_, expected) in zip(one.parts(), other.parts(), strict=True):
        if (
            name != "the result"
            and problem.operator in units.LOGARITHMS
            and excuses.blurred(problem)
        ):
            return ""
        if name != "the result" and (
            excuses.flushed(problem) or excuses.shared(problem) or excuses.chained(problem)
        ):
            return ""
        if excuses.kinked(problem, name) or (
            name != "the result" and excuses.at_the_edge(problem, one, other)
        ):
            return ""
        if (found is None) != (expected is None):
            return f"{name} is there in one of two only, beside {whose}"
        if found is None or not found.numel() or _close(problem, name, found, expected, other.room):
            continue
        if found.shape != expected.shape:
            return f"{name} has the shape {found.shape}, but {expected.shape} in {whose}"
        found, expected = _held(problem, found, expected.double())
        if name == "the result" and (problem.operator, problem.name) == ("log_soft_topk", "cauchy"):
            expected = torch.where(expected < _faintest(problem), -math.inf, expected)
        if name == "the result" and excuses.ends(problem):
            far = excuses.furthest(problem)
            found, expected = found.clamp(-far, far), expected.clamp(-far, far)
        words = _apart(problem, name, found, expected, excuses.steepening(problem, other))
        if words:
            return f"{name} {words} in {whose}"
    return ""


def _close(problem, name, found, expected, room):
    """Whether all is finite and near: what most answers are, seen at once.

    What one answer allows others is kept with it: each SIMD level is compared with the same one.
    """
    if found.shape != expected.shape:
        return False
    if name not in room:
        wide = expected.double()
        beyond = ~(wide.abs() <= torch.finfo(found.dtype).max)
        unit = units.unit(problem, name, torch.where(beyond, 0.0, wide))
        room[name] = torch.where(beyond, math.nan, wide), ALLOWED * unit
    wide, allowed = room[name]
    return bool(((found.double() - wide).abs_() <= allowed).all())


def _held(problem, found, expected):
    """Both as the format holds them.

    At its end rounding decides between the largest number and an infinity.
    """
    most, slack = torch.finfo(found.dtype).max, 10 * units.accuracy(problem, units.VALUES)
    found = found.double()
    at_the_end = (expected.abs() >= most * (1 - slack)) & (expected.abs() / most <= 1 + slack)
    at_the_end &= (found.abs() >= most * (1 - slack)) & (found.sign() == expected.sign())
    expected = torch.where(expected.abs() > most, expected.sign() * math.inf, expected)
    ends = expected.sign() * most
    return torch.where(at_the_end, ends, found), torch.where(at_the_end, ends, expected)


def _faintest(problem):
    """log F(-u) of the largest u, a number of the format: what is beyond is infinite to it.

    Other tails are beyond the range of logarithms there, too; Cauchy's, 1/(πu), are not.
    """
    wide = torch.float64 if problem.scores.dtype is torch.float64 else torch.float32
    return -math.log(math.pi) - math.log(torch.finfo(wide).max)


def _apart(problem, name, found, expected, steepening=1.0):
    finite = expected.isfinite()
    other = (found != expected) & ~(found.isnan() & expected.isnan())
    odd = torch.where(finite, ~found.isfinite(), other)
    unit = steepening * units.unit(problem, name, torch.where(finite, expected, 0.0))
    odd &= ~(_lost(problem, unit) & ~found.isnan() & ~expected.isnan())
    if odd.any():
        return f"is {found[odd][0].item()}, but {expected[odd][0].item()}"
    apart = torch.where(finite & found.isfinite(), found - expected, 0.0)
    off = apart.abs() / unit
    at = off.flatten().argmax()
    if off.flatten()[at] <= ALLOWED:
        return ""
    pair = f"{found.flatten()[at].item():.9g}, but {expected.flatten()[at].item():.9g}"
    return f"is {off.max().item():.3g} units off: {pair}"


def _lost(problem, unit):
    """Where a rounding error may be more than the format holds: infinities of either sign, too."""
    return ALLOWED * unit >= torch.finfo(problem.scores.dtype).max

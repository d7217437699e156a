"""Where rounding alone decides, so that two right answers differ by more than any unit."""

import math

import torch

from tests.fuzz import units


def blurred(problem):
    """Whether rounding moves a threshold in a wide gap by many τ, and with it who is nearest."""
    return units.last_digit(problem) > 1e-3 * units.coldest(problem)


def underflows(problem):
    """Whether tails of 1/(π u), and with them what balances in a gap, are too small for float64."""
    finite = torch.where(problem.rows.isfinite(), problem.rows, 0.0)
    return problem.operator in units.LOGARITHMS and 1e-290 * units.most(finite) > units.coldest(
        problem
    )


def flushed(problem):
    """Whether a kink is between scores that compiled kernels, which flush denormals, see as one."""
    if problem.name not in ("softsort", "neuralsort"):
        return False
    least = torch.finfo(torch.promote_types(problem.scores.dtype, torch.float32)).tiny
    return bool(((problem.rows.abs() < least) & (problem.rows != 0)).any())


def swamped(problem):
    """Whether rounding the values on the wires, which mix all scores, is not small beside τ.

    u = (b - a)/τ is off by that, and the next comparators enlarge it. Sorted values are made in the
    format of the scores; rows of P, and so a soft top-k, from values in float64.
    """
    return units.wire_digit(problem) > 1e-3 * units.coldest(problem)


def shared(problem):
    """Whether a projected sort's places, 1/τ apart, are lost beside scores, and decide nothing."""
    if problem.operator != "soft_sort" or not problem.name.startswith("permutahedron"):
        return False
    finite = torch.where(problem.rows.isfinite(), problem.rows, 0.0)
    return (
        units.most(finite) * torch.finfo(torch.float64).eps * units.most(problem.temperature) > 1e-3
    )


def exhausted(problem):
    """Whether there are as many softmaxes as scores: the last ones share what rounding left.

    Or whether rounding what one took from the scores is not small in the last one.
    """
    if units.rounds_digit(problem) > 1e-3:
        return True
    k = torch.as_tensor(problem.options["k"], dtype=torch.float64)
    return bool((k.ceil() >= (problem.rows > -math.inf).sum(-1)).any())


def chained(problem):
    """Whether a gradient through k rounds, each divided by τ, is too large for the format."""
    if problem.name != "sequential_softmax":
        return False
    k = torch.as_tensor(problem.options["k"], dtype=torch.float64)
    room = math.log10(torch.finfo(problem.scores.dtype).max) - 3
    return -math.log10(units.coldest(problem)) * (units.most(k) + 1) > room


def kinked(problem, name):
    """Whether scores that may meet again do so where a comparator's slope has no bound but 1e10.

    The slope of "logistic_phi" is that of |u|^(1 - λ): rounding u, at a tie, decides what it is.
    The result moves by that rounding to the power of 1 - λ.
    """
    if getattr(problem.method, "comparator", None) != "logistic_phi":
        return False
    if not (problem.rows.sort(-1).values.diff(dim=-1) == 0).any():
        return False
    rounding = units.wire_digit(problem) / units.coldest(problem)
    power = 1 - (problem.method.art_lambda or 0.25)
    return name != "the result" or rounding**power > units.accuracy(problem, units.VALUES)


def ends(problem):
    """Whether p is 0 from some score on, so that log p has no accuracy near the end."""
    return problem.name == "uniform" and problem.operator in units.LOGARITHMS


def furthest(problem):
    """|log p| from where on p is 0 to the stated accuracy."""
    return -math.log(units.accuracy(problem, units.VALUES))


def cut_off(problem, logarithm):
    """log p, or -log p, with an infinity there."""
    far = logarithm.abs() > furthest(problem)
    return torch.where(far, logarithm.sign() * math.inf, logarithm)


def steepening(problem, answer):
    """1/p of the smallest p, by which an error of p counts more in its logarithm."""
    if not ends(problem):
        return 1.0
    cut = cut_off(problem, answer.result.double())
    return math.exp(units.most(torch.where(cut.isfinite(), cut, 0.0)))


def at_the_edge(problem, *answers):
    """Whether some log p is such an infinity, to one of two: its slope is 1/p."""
    if not ends(problem):
        return False
    cut = [cut_off(problem, answer.result.double()) for answer in answers]
    return any(
        (c.isinf() & answer.result.isfinite()).any() for c, answer in zip(cut, answers, strict=True)
    )

"""What must hold of any answer by itself."""

import math
from functools import lru_cache

import torch

import softorder as so
from tests.fuzz import excuses, units


def decent(problem, answer):
    """What is wrong with an answer by itself, in words, if anything."""
    if not problem.scores.numel() or problem.operator not in _DECENT:
        return ""
    rows = problem.rows
    spoiled = rows.isnan().any(-1)
    found = answer.result.double()
    if problem.operator != "soft_permutation":
        found = found.movedim(problem.dim, -1)
    if found[~spoiled].isnan().any():
        return "NaN in a row without one"
    if not found[spoiled].isnan().all() and problem.operator != "permutation_cross_entropy":
        return "a number in a row with a NaN"
    words = _DECENT[problem.operator](problem, rows[~spoiled], found[~spoiled], ~spoiled)
    return words or _decent_gradients(problem, answer, rows, spoiled)


def _decent_gradients(problem, answer, rows, spoiled):
    gradient = answer.gradients["scores"]
    if gradient is None:
        return ""
    gradient = gradient.movedim(problem.dim, -1)
    if (gradient[spoiled] != 0).any():
        return "a row with a NaN has a gradient"
    room = math.log10(torch.finfo(problem.scores.dtype).max) - 3
    ordinary = _steepest(problem, rows) < room and not excuses.chained(problem)
    finite = (rows.isfinite() | (rows == -math.inf)).all(-1) & ~spoiled
    if ordinary and not gradient[finite].isfinite().all():
        return "a gradient of finite scores is not finite"
    return ""


def _steepest(problem, rows):
    """The decimal logarithm of what no slope exceeds by much: n/τ.

    That of a logarithm of the normal density's tails is as large as u/τ.
    """
    slope = math.log10(rows.shape[-1]) - math.log10(units.coldest(problem))
    if problem.operator not in units.LOGARITHMS or problem.name != "normal":
        return slope
    reach = units.most(torch.where(rows.isfinite(), rows, 0.0))
    return slope + math.log10(2 + reach) - min(math.log10(units.coldest(problem)), 0)


def _decent_weights(problem, rows, found, kept):
    slack = 100 * units.accuracy(problem, units.VALUES)
    most = 1 if _keeps(problem, "stays_between_zero_and_one") else math.inf
    if (found < -slack).any() or (found > most + slack).any():
        return f"weights from {found.min().item():.9g} to {found.max().item():.9g}"
    if found[rows == -math.inf].any():
        return "what takes no part has a weight"
    if not _keeps(problem, "too_few_available_are_all_taken"):
        return ""
    k = torch.as_tensor(problem.options["k"], dtype=torch.float64).expand(kept.shape)[kept]
    goal = torch.minimum(k, (rows > -math.inf).sum(-1).double())
    lost = (found.sum(-1) - goal).abs() / (1 + goal)
    return f"the sum is off by {units.most(lost):.3g}" if (lost > 10 * slack).any() else ""


def _decent_logarithms(problem, rows, found, kept):
    return (
        "a logarithm above 0" if (found > 100 * units.accuracy(problem, units.VALUES)).any() else ""
    )


def _decent_ranks(problem, rows, found, kept):
    n, slack = rows.shape[-1], 100 * units.accuracy(problem, units.VALUES) * rows.shape[-1]
    if problem.name in ("softsort", "neuralsort"):  # whose columns do not sum to one
        return ""
    if (found < 1 - slack).any() or (found > n + slack).any():
        return f"ranks from {found.min().item():.9g} to {found.max().item():.9g}"
    return ""


def _decent_sorts(problem, rows, found, kept):
    if problem.name == "network":  # whose order holds in the limit only
        return ""
    steps = found.diff(dim=-1) * (-1 if problem.options["descending"] else 1)
    size = units.most(torch.where(found.isfinite(), found, 0.0))
    slack = 10 * units.accuracy(problem, units.VALUES) * (1 + size)
    return "a sort that is not in order" if (steps < -slack).any() else ""


def _decent_permutations(problem, rows, found, kept):
    slack = 100 * units.accuracy(problem, units.VALUES)
    lost = units.most(found.sum(-1) - 1)
    if (found < -slack).any() or (found > 1 + slack).any():
        return f"entries from {found.min().item():.9g} to {found.max().item():.9g}"
    return f"a row of the permutation sums to 1 but for {lost:.3g}" if lost > 10 * slack else ""


def _decent_losses(problem, rows, found, kept):
    return "a loss below 0" if (found < -100 * units.accuracy(problem, units.VALUES)).any() else ""


_DECENT = {
    "soft_topk": _decent_weights,
    "log_soft_topk": _decent_logarithms,
    "soft_rank": _decent_ranks,
    "soft_sort": _decent_sorts,
    "soft_permutation": _decent_permutations,
    "permutation_cross_entropy": _decent_losses,
}


def _keeps(problem, law):
    """Whether the method is bound by a law."""
    return law not in _breaks().get((problem.operator, problem.name), ())


@lru_cache
def _breaks():
    return {(row.operator, row.name): row.breaks for row in so.methods()}

"""Who judges an answer: another computation of it, and what must hold of any.

Two answers are compared in units of the accuracy that is stated for the format; up to `ALLOWED` of
them are rounding. A unit is relative to the scale of the result, or to the slopes of which a
gradient is a sum: these may cancel.
"""

import math
from dataclasses import dataclass, field
from functools import lru_cache

import torch

import softorder as so

ALLOWED = 4
_VALUES = {torch.float64: 1e-11, torch.float32: 5e-6}
_GRADIENTS = {torch.float64: 1e-10, torch.float32: 2e-5}
#: Layer after layer, or iteration after iteration, enlarges what rounding does.
_HARSH = {"network": 1e3, "sinkhorn": 1e3, "sinkhorn_sort": 1e3, "sorted_soft": 1e3, "soft": 10}


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


# ---- two answers ---------------------------------------------------------------------------------


def agree(problem, one, other, whose):
    """What two answers to the same problem disagree about, in words, if anything."""
    if problem.name == "network" and _swamped(problem):
        return ""
    if problem.name == "cauchy" and _underflows(problem):
        return ""
    if problem.name == "sequential_softmax" and _exhausted(problem):
        return ""
    for (name, found), (_, expected) in zip(one.parts(), other.parts(), strict=True):
        if name != "the result" and problem.operator in _LOGARITHMS and _blurred(problem):
            return ""
        if name != "the result" and (_flushed(problem) or _shared(problem) or _chained(problem)):
            return ""
        if _kinked(problem, name) or (name != "the result" and _at_the_edge(problem, one, other)):
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
        if name == "the result" and _ends(problem):
            found, expected = _cut_off(problem, found), _cut_off(problem, expected)
        words = _apart(problem, name, found, expected, _steepening(problem, other))
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
        unit = _unit(problem, name, torch.where(beyond, 0.0, wide))
        room[name] = torch.where(beyond, math.nan, wide), ALLOWED * unit
    wide, allowed = room[name]
    return bool(((found.double() - wide).abs_() <= allowed).all())


def _held(problem, found, expected):
    """Both as the format holds them.

    At its end rounding decides between the largest number and an infinity.
    """
    most, slack = torch.finfo(found.dtype).max, 10 * _accuracy(problem, _VALUES)
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


_LOGARITHMS = ("log_soft_topk", "top_k_cross_entropy", "permutation_cross_entropy")


def _blurred(problem):
    """Whether rounding moves a threshold in a wide gap by many τ, and with it who is nearest."""
    return _last_digit(problem) > 1e-3 * _coldest(problem)


def _last_digit(problem):
    """Of the largest score, in the format in which thresholds are."""
    finite = torch.where(problem.rows.isfinite(), problem.rows, 0.0)
    eps = torch.finfo(torch.float64 if problem.scores.dtype is torch.float64 else torch.float32).eps
    return _most(finite) * eps


def _underflows(problem):
    """Whether tails of 1/(π u), and with them what balances in a gap, are too small for float64."""
    finite = torch.where(problem.rows.isfinite(), problem.rows, 0.0)
    return problem.operator in _LOGARITHMS and 1e-290 * _most(finite) > _coldest(problem)


def _flushed(problem):
    """Whether a kink is between scores that compiled kernels, which flush denormals, see as one."""
    if problem.name not in ("softsort", "neuralsort"):
        return False
    least = torch.finfo(torch.promote_types(problem.scores.dtype, torch.float32)).tiny
    return bool(((problem.rows.abs() < least) & (problem.rows != 0)).any())


def _swamped(problem):
    """Whether rounding the values on the wires, which mix all scores, is not small beside τ.

    u = (b - a)/τ is off by that, and the next comparators enlarge it. Sorted values are made in the
    format of the scores; rows of P, and so a soft top-k, from values in float64.
    """
    return _wire_digit(problem) > 1e-3 * _coldest(problem)


def _wire_digit(problem):
    """The last digit of values on the wires of a network."""
    finite = torch.where(problem.rows.isfinite(), problem.rows, 0.0)
    narrow = problem.operator == "soft_sort" and problem.scores.dtype is not torch.float64
    return _most(finite) * torch.finfo(torch.float32 if narrow else torch.float64).eps


def _shared(problem):
    """Whether a projected sort's places, 1/τ apart, are lost beside scores, and decide nothing."""
    if problem.operator != "soft_sort" or not problem.name.startswith("permutahedron"):
        return False
    finite = torch.where(problem.rows.isfinite(), problem.rows, 0.0)
    return _most(finite) * torch.finfo(torch.float64).eps * _most(problem.temperature) > 1e-3


def _exhausted(problem):
    """Whether there are as many softmaxes as scores: the last ones share what rounding left."""
    k = torch.as_tensor(problem.options["k"], dtype=torch.float64)
    return bool((k.ceil() >= (problem.rows > -math.inf).sum(-1)).any())


def _chained(problem):
    """Whether a gradient through k rounds, each divided by τ, is too large for the format."""
    if problem.name != "sequential_softmax":
        return False
    k = torch.as_tensor(problem.options["k"], dtype=torch.float64)
    room = math.log10(torch.finfo(problem.scores.dtype).max) - 3
    return -math.log10(_coldest(problem)) * (_most(k) + 1) > room


def _kinked(problem, name):
    """Whether scores that may meet again do so where a comparator's slope has no bound but 1e10.

    The slope of "logistic_phi" is that of |u|^(1 - λ): rounding u, at a tie, decides what it is.
    The result moves by that rounding to the power of 1 - λ.
    """
    if getattr(problem.method, "comparator", None) != "logistic_phi":
        return False
    if not (problem.rows.sort(-1).values.diff(dim=-1) == 0).any():
        return False
    rounding = _wire_digit(problem) / _coldest(problem)
    power = 1 - (problem.method.art_lambda or 0.25)
    return name != "the result" or rounding**power > _accuracy(problem, _VALUES)


def _ends(problem):
    """Whether p is 0 from some score on, so that log p has no accuracy near the end."""
    return problem.name == "uniform" and problem.operator in _LOGARITHMS


def _cut_off(problem, logarithm):
    """log p, or -log p, with an infinity where p is 0 to the stated accuracy."""
    far = logarithm.abs() > -math.log(_accuracy(problem, _VALUES))
    return torch.where(far, logarithm.sign() * math.inf, logarithm)


def _steepening(problem, answer):
    """1/p of the smallest p, by which an error of p counts more in its logarithm."""
    if not _ends(problem):
        return 1.0
    cut = _cut_off(problem, answer.result.double())
    return math.exp(_most(torch.where(cut.isfinite(), cut, 0.0)))


def _at_the_edge(problem, *answers):
    """Whether some log p is such an infinity, to one of two: its slope is 1/p."""
    if not _ends(problem):
        return False
    cut = [_cut_off(problem, answer.result.double()) for answer in answers]
    return any(
        (c.isinf() & answer.result.isfinite()).any() for c, answer in zip(cut, answers, strict=True)
    )


def _coldest(problem):
    """The least τ of all rows; 1 where there is none."""
    return problem.temperature.min().item() if problem.temperature.numel() else 1.0


def _apart(problem, name, found, expected, steepening=1.0):
    finite = expected.isfinite()
    other = (found != expected) & ~(found.isnan() & expected.isnan())
    odd = torch.where(finite, ~found.isfinite(), other)
    unit = steepening * _unit(problem, name, torch.where(finite, expected, 0.0))
    odd &= ~(_lost(problem, unit) & ~found.isnan() & ~expected.isnan())
    if odd.any():
        return f"is {found[odd][0].item()}, but {expected[odd][0].item()}"
    apart = torch.where(finite & found.isfinite(), found - expected, 0.0)
    units = apart.abs() / unit
    at = units.flatten().argmax()
    if units.flatten()[at] <= ALLOWED:
        return ""
    pair = f"{found.flatten()[at].item():.9g}, but {expected.flatten()[at].item():.9g}"
    return f"is {units.max().item():.3g} units off: {pair}"


def _unit(problem, name, expected):
    if name == "the result":
        unit = _accuracy(problem, _VALUES) * _scale_of_result(problem, expected)
        if problem.operator in _LOGARITHMS:  # where b is no better than its last digit
            unit = unit + _slope_far_out(problem, expected) * _last_digit(problem) / _coldest(
                problem
            )
    else:
        unit = _accuracy(problem, _GRADIENTS) * _scale_of_gradient(problem, expected)
        unit = unit + _smallest(problem) / _coldest(problem)  # f(u), which is divided by τ
    return unit + _least(problem) + torch.zeros_like(expected)


def _slope_far_out(problem, logarithm):
    """Of log F(u) in u, by its value: 1 at the most, but |u| for the normal density's -u²/2."""
    return (2 * logarithm.abs()).sqrt().clamp(min=1) if problem.name == "normal" else 1.0


def _smallest(problem):
    """The smallest normal number of the format in which F and f are."""
    wide = torch.float64 if problem.scores.dtype is torch.float64 else torch.float32
    return torch.finfo(wide).tiny


def _lost(problem, unit):
    """Where a rounding error may be more than the format holds: infinities of either sign, too."""
    return ALLOWED * unit >= torch.finfo(problem.scores.dtype).max


def _accuracy(problem, stated):
    dtype = problem.scores.dtype
    computed = stated[dtype if dtype is torch.float64 else torch.float32]
    rounded = torch.finfo(dtype).eps if dtype.itemsize == 2 else 0
    if problem.name == "network":  # u is off by the last digit of values, in units of τ
        rounded += _wire_digit(problem) / _coldest(problem)
    return computed * _HARSH.get(problem.name, 1) + rounded


def _least(problem):
    """What the format cannot hold, and what underflows on the way."""
    tiny = {torch.float64: 1e-290, torch.float16: 1e-7}
    return tiny.get(problem.scores.dtype, 1e-30)


def _scale_of_result(problem, expected):
    n = problem.scores.shape[problem.dim]
    if problem.operator in ("soft_topk", "soft_permutation"):
        return 1.0
    if problem.operator in ("soft_rank", "fsum", "laplace_sum"):
        return float(max(n, 1))
    if problem.operator in ("soft_sort", "soft_quantile", "fsum_inverse"):
        finite = torch.where(problem.scores.isfinite(), problem.scores.double(), 0.0)
        largest = _most(finite) + _most(problem.temperature) * math.log(n + 2)
        return expected.abs().clamp(min=largest)  # their sum may overflow
    return 1 + expected.abs()


def _scale_of_gradient(problem, expected):
    """The largest one; and 1/τ, wherever a score has others or the threshold near it."""
    rows, tau = problem.rows, problem.temperature
    if problem.operator in ("soft_sort", "soft_quantile", "fsum_inverse"):
        return _most(expected) + 1  # shares of one
    gaps = torch.where(rows.isfinite(), rows, math.nan).sort(-1).values.diff(dim=-1)
    near = (gaps < 100 * tau.unsqueeze(-1)).any(-1)
    alone = rows.isfinite().sum(-1) == 1
    if problem.operator in ("soft_rank", "fsum"):  # a score is near itself
        alone = near | True
    if "k" in problem.options:  # where k is not whole, some p is neither 0 nor 1
        alone = alone | (torch.as_tensor(problem.options["k"]) % 1 != 0)
    slopes = torch.where(near | alone, 1 / tau, 0.0)
    if problem.name == "network":  # some comparators have slopes of τ/gap² far out
        least = gaps.abs().nan_to_num(nan=math.inf, posinf=math.inf)
        least = least.amin(-1) if gaps.shape[-1] else torch.full_like(tau, math.inf)
        slopes = torch.maximum(slopes, 1 / (tau * (1 + (least / tau) ** 2)))
    return _most(expected) + _most(slopes)


def _most(values):
    return values.abs().amax().item() if values.numel() else 0.0


# ---- one answer ----------------------------------------------------------------------------------


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
    ordinary = _steepest(problem, rows) < room and not _chained(problem)
    finite = (rows.isfinite() | (rows == -math.inf)).all(-1) & ~spoiled
    if ordinary and not gradient[finite].isfinite().all():
        return "a gradient of finite scores is not finite"
    return ""


def _steepest(problem, rows):
    """The decimal logarithm of what no slope exceeds by much: n/τ.

    That of a logarithm of the normal density's tails is as large as u/τ.
    """
    slope = math.log10(rows.shape[-1]) - math.log10(_coldest(problem))
    if problem.operator not in _LOGARITHMS or problem.name != "normal":
        return slope
    reach = _most(torch.where(rows.isfinite(), rows, 0.0))
    return slope + math.log10(2 + reach) - min(math.log10(_coldest(problem)), 0)


def _decent_weights(problem, rows, found, kept):
    slack = 100 * _accuracy(problem, _VALUES)
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
    return f"the sum is off by {_most(lost):.3g}" if (lost > 10 * slack).any() else ""


def _decent_logarithms(problem, rows, found, kept):
    return "a logarithm above 0" if (found > 100 * _accuracy(problem, _VALUES)).any() else ""


def _decent_ranks(problem, rows, found, kept):
    n, slack = rows.shape[-1], 100 * _accuracy(problem, _VALUES) * rows.shape[-1]
    if problem.name in ("softsort", "neuralsort"):  # whose columns do not sum to one
        return ""
    if (found < 1 - slack).any() or (found > n + slack).any():
        return f"ranks from {found.min().item():.9g} to {found.max().item():.9g}"
    return ""


def _decent_sorts(problem, rows, found, kept):
    if problem.name == "network":  # whose order holds in the limit only
        return ""
    steps = found.diff(dim=-1) * (-1 if problem.options["descending"] else 1)
    size = _most(torch.where(found.isfinite(), found, 0.0))
    slack = 10 * _accuracy(problem, _VALUES) * (1 + size)
    return "a sort that is not in order" if (steps < -slack).any() else ""


def _decent_permutations(problem, rows, found, kept):
    slack = 100 * _accuracy(problem, _VALUES)
    lost = _most(found.sum(-1) - 1)
    if (found < -slack).any() or (found > 1 + slack).any():
        return f"entries from {found.min().item():.9g} to {found.max().item():.9g}"
    return f"a row of the permutation sums to 1 but for {lost:.3g}" if lost > 10 * slack else ""


def _decent_losses(problem, rows, found, kept):
    return "a loss below 0" if (found < -100 * _accuracy(problem, _VALUES)).any() else ""


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

"""How far apart two answers may be: units of the accuracy that is stated for the format.

A unit is relative to the scale of the result, or to the slopes of which a gradient is a sum: these
may cancel.
"""

import math

import torch

VALUES = {torch.float64: 1e-11, torch.float32: 5e-6}
GRADIENTS = {torch.float64: 1e-10, torch.float32: 2e-5}
#: Layer after layer, or iteration after iteration, enlarges what rounding does.
HARSH = {"network": 1e3, "sinkhorn": 1e3, "sinkhorn_sort": 1e3, "sorted_soft": 1e3, "soft": 10}
_TRANSPORT = ("sinkhorn", "sinkhorn_sort", "sorted_soft")
_MISSED = 1e-12  # of its number, by the scores up to a place of a plan: the tolerance of the solver
LOGARITHMS = ("log_soft_topk", "top_k_cross_entropy", "permutation_cross_entropy")
POINTS = ("soft_sort", "soft_quantile", "fsum_inverse")  # on the line of the scores


def unit(problem, name, expected):
    """One unit of a part of an answer, entry by entry.

    A threshold b in a wide gap is no better than its last digit, and logarithms far from it follow:
    log p by that digit in units of τ, and the shares that both sides of the gap have in moving b,
    or a point of a soft sort, which by normal change with the distance to its edges in units of τ.
    """
    logarithms = problem.operator in LOGARITHMS
    digit = last_digit(problem) / coldest(problem) if logarithms else 0.0
    if name == "the result":
        one = accuracy(problem, VALUES) * scale_of_result(problem, expected)
        slope = slope_far_out(problem, expected)
        if problem.operator == "permutation_cross_entropy":  # of what is between two thresholds
            slope = slope + 1 / thinnest(problem)
        one = one + slope * digit if logarithms else one
        if problem.operator == "soft_rank" and problem.name.startswith("permutahedron"):
            one = one + last_digit(problem) / coldest(problem)  # scores/τ are projected
    else:
        if problem.operator in POINTS and problem.name == "normal":
            digit = float64_digit(problem) / coldest(problem)
        digit = digit * max(1.0, widest(problem) / 2) if problem.name == "normal" else digit
        one = (accuracy(problem, GRADIENTS) + digit) * scale_of_gradient(problem, name, expected)
        # f(u), which is divided by τ, and for the gradient of τ multiplied by u
        factor = 1 + reach(problem) if name == "the gradient of temperature" else 1.0
        one = one + smallest(problem) / coldest(problem) * factor
        if problem.options.get("top1") == "softmax":  # whose slopes, 1 less a share of 1, cancel
            one = one + penalty_digit(problem)
        if problem.name == "neuralsort":
            # Whose shares, and so the sums of distances that they weigh, cancel to a digit of 1.
            n = problem.scores.shape[problem.dim]
            one = one + logit_digit(problem) * most(expected)
            one = one + n * penalty_digit(problem) / coldest(problem)
        if problem.name in _TRANSPORT:
            # What should be 0 or 1 may be as far from it, with slopes of as much over τ. These
            # cancel, and so do those of Σ_a g_a (x_i - middle) ∂P_ai/∂x_i where scores are tied.
            terms = _MISSED / coldest(problem)
            terms = terms + reach(problem) if problem.operator == "soft_sort" else terms
            one = one + torch.finfo(torch.float64).eps * terms * factor
    return one + least(problem) + torch.zeros_like(expected)


def slope_far_out(problem, logarithm):
    """Of log F(u) in u, by its value: 1 at the most, but |u| for the normal density's -u²/2."""
    return (2 * logarithm.abs()).sqrt().clamp(min=1) if problem.name == "normal" else 1.0


def thinnest(problem):
    """No two thresholds of neighbouring levels are nearer in τ, as no density is above 1."""
    return 1 / max(problem.scores.shape[problem.dim], 1)


def widest(problem):
    """Of the gaps between neighbouring scores, in units of τ."""
    sorted_rows = torch.where(problem.rows.isfinite(), problem.rows, math.nan).sort(-1).values
    return min(most(sorted_rows.diff(dim=-1).nan_to_num(nan=0.0)) / coldest(problem), 1e300)


def smallest(problem):
    """The smallest normal number of the format in which F and f are."""
    wide = torch.float64 if problem.scores.dtype is torch.float64 else torch.float32
    return torch.finfo(wide).tiny


def accuracy(problem, stated):
    dtype = problem.scores.dtype
    computed = stated[dtype if dtype is torch.float64 else torch.float32]
    rounded = torch.finfo(dtype).eps if dtype.itemsize == 2 else 0
    if problem.name == "network":  # u is off by the last digit of values, once a layer
        layers = problem.scores.shape[problem.dim].bit_length()  # at the least
        rounded += layers * wire_digit(problem) / coldest(problem)
    if problem.name == "sequential_softmax":
        rounded += rounds_digit(problem)
    return computed * HARSH.get(problem.name, 1) + rounded


def least(problem):
    """What the format cannot hold, and what underflows on the way."""
    tiny = {torch.float64: 1e-290, torch.float16: 1e-7}
    return tiny.get(problem.scores.dtype, 1e-30)


def scale_of_result(problem, expected):
    n = problem.scores.shape[problem.dim]
    if problem.operator in ("soft_topk", "soft_permutation"):
        return 1.0
    if problem.operator in ("soft_rank", "fsum", "laplace_sum"):
        return float(max(n, 1))
    if problem.operator in POINTS:
        finite = torch.where(problem.scores.isfinite(), problem.scores.double(), 0.0)
        largest = most(finite) + most(problem.temperature) * math.log(n + 2)
        return expected.abs().clamp(min=largest)  # their sum may overflow
    return 1 + expected.abs()


def scale_of_gradient(problem, name, expected):
    """The largest one; and 1/τ, wherever a score has others or the threshold near it."""
    rows, tau = problem.rows, problem.temperature
    if problem.operator in POINTS:
        if name == "the gradient of temperature" and problem.name == "cauchy":
            # Σ f u/Σ f, and far away all u are much alike, on both sides of t
            return most(expected) + 1 + reach(problem)
        heat = name == "the gradient of temperature" and problem.operator != "soft_sort"
        # (t - middle)/τ in a wide gap, where t is no better than its last digit
        lost = float64_digit(problem) / coldest(problem) / GRADIENTS[torch.float64] if heat else 0.0
        return most(expected) + 1 + lost  # shares of one
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
    return most(expected) + most(slopes)


def last_digit(problem):
    """Of the largest score, in the format in which thresholds are."""
    finite = torch.where(problem.rows.isfinite(), problem.rows, 0.0)
    return most(finite) * penalty_digit(problem)


def penalty_digit(problem):
    """Of 1 there: log(1 - p), which is added to scores of any size, is of this order."""
    wide = problem.scores.dtype is torch.float64
    return torch.finfo(torch.float64 if wide else torch.float32).eps


def wire_digit(problem):
    """The last digit of values on the wires of a network."""
    narrow = problem.operator == "soft_sort" and problem.scores.dtype is not torch.float64
    return last_digit(problem) if narrow else float64_digit(problem)


def float64_digit(problem):
    """Of the largest score."""
    finite = torch.where(problem.rows.isfinite(), problem.rows, 0.0)
    return most(finite) * torch.finfo(torch.float64).eps


def logit_digit(problem):
    """The last digit of NeuralSort's logits: distances from n scores, n times, in units of τ.

    Shares are as good as that.
    """
    n = problem.scores.shape[problem.dim]
    return min(n * n * float64_digit(problem) / coldest(problem), 1e300)


def rounds_digit(problem):
    """What rounding log(1 - p) makes of the last of k softmaxes.

    It is divided by τ in the next one, and in the one after that again: a slope of p is 1/(4τ) at
    the most.
    """
    k = torch.as_tensor(problem.options["k"], dtype=torch.float64)
    growth, rounds = max(1.0, 0.25 / coldest(problem)), math.ceil(most(k)) - 1
    return penalty_digit(problem) * 10 ** min(max(rounds, 0) * math.log10(growth), 300)


def reach(problem):
    """What no |u| exceeds by much."""
    finite = torch.where(problem.rows.isfinite(), problem.rows, 0.0)
    apart = finite.amax(-1) - finite.amin(-1) if finite.numel() else finite
    return min(most(apart) / coldest(problem), 1e305)


def coldest(problem):
    """The least τ of all rows; 1 where there is none."""
    return problem.temperature.min().item() if problem.temperature.numel() else 1.0


def most(values):
    return values.abs().amax().item() if values.numel() else 0.0

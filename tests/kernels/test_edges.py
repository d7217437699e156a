"""Roots in gaps where the slope of FSum underflows: both sides move them, by shares (60 digits)."""

import mpmath
import pytest
import torch

import softorder as so
from softorder.kernels import threshold

_TAU = 0.05
_WIDE = 100.0  # 2,000 τ, and 1,000 from its middle: e^-1000 is no number
_TAILS = {
    "laplace": lambda d: -d - mpmath.log(2),
    "logistic": lambda d: -mpmath.log1p(mpmath.exp(d)),
    "normal": lambda d: mpmath.log(mpmath.erfc(d / mpmath.sqrt(2)) / 2),
}
_SIDES = {
    "ties": ([0.0, 0.0, -0.5, 0.0], [0.0, 0.0]),
    "crowds": ([0.0, -0.01, -0.04, -0.3], [0.02, 0.0, 0.1]),
}


def _rows(kind):
    low, high = _SIDES[kind]
    return [_WIDE + v for v in high] + low, len(low)


def _root(law, scores, low, tau):
    """Where the tails of the `low` smallest scores and those of the others are equal."""
    ordered = sorted(scores)

    def log_sum(side, t):
        logs = [_TAILS[law](abs(x - t) / tau) for x in side]
        return max(logs) + mpmath.log(sum(mpmath.exp(v - max(logs)) for v in logs))

    middle = (ordered[low - 1] + ordered[low]) / 2
    return mpmath.findroot(
        lambda t: log_sum(ordered[low:], t) - log_sum(ordered[:low], t),
        (middle, middle + tau / 10),
        tol=mpmath.mpf(10) ** -50,
        verify=False,
    )


def _slopes(law, scores, low):
    """∂t/∂x for every score, and ∂t/∂τ."""
    h = mpmath.mpf(10) ** -20
    given = [*map(mpmath.mpf, scores), mpmath.mpf(_TAU)]

    def root(j, by):
        moved = [*given]
        moved[j] += by
        return _root(law, moved[:-1], low, moved[-1])

    return [float((root(j, h) - root(j, -h)) / (2 * h)) for j in range(len(given))]


def close(found, expected):
    expected = torch.tensor(expected, dtype=torch.float64)
    size = expected.abs().max().item()
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-9 * size)


@pytest.mark.parametrize("rows", [*_SIDES])
@pytest.mark.parametrize("law", [*_TAILS])
def test_points_move_with_both_sides(kernel, law, rows):
    """Ties have equal shares: a difference quotient is symmetric, and so is what it is taken of."""
    scores, low = _rows(rows)
    with mpmath.workdps(60):
        expected = _slopes(law, scores, low)
    x = torch.tensor(scores, dtype=torch.float64, requires_grad=True)
    tau = torch.tensor(_TAU, dtype=torch.float64, requires_grad=True)
    # more levels than are found without a sort
    levels = torch.tensor([0.4, 0.5, float(low), low + 0.5, low + 0.6], dtype=torch.float64)
    t = so.fsum_inverse(x, levels, method=law, temperature=tau)[2]
    found = torch.autograd.grad(t, (x, tau))
    close(torch.cat([v.flatten() for v in found]), expected)


@pytest.mark.parametrize("rows", [*_SIDES])
@pytest.mark.parametrize("law", [*_TAILS])
def test_losses_move_with_both_sides(kernel, law, rows):
    """A score of the upper side in the last place of the lower one: -log of its tail at t."""
    scores, low = _rows(rows)
    places = torch.tensor(scores).sort(stable=True).indices.argsort()
    first = int((places == len(scores) - 1).nonzero())  # the largest
    places = torch.where(places == low - 1, len(scores) - 1, places)
    places[first] = low - 1
    x = torch.tensor(scores, dtype=torch.float64, requires_grad=True)
    options = {"method": law, "temperature": _TAU, "reduction": "none"}
    loss = so.losses.permutation_cross_entropy(x, places, **options)[first]
    (found,) = torch.autograd.grad(loss, x)
    with mpmath.workdps(60):
        slopes = _slopes(law, scores, low)[:-1]
        distance = (scores[first] - _root(law, [*map(mpmath.mpf, scores)], low, _TAU)) / _TAU
        rate = -mpmath.diff(_TAILS[law], distance) / _TAU
        expected = [float(rate * ((i == first) - v)) for i, v in enumerate(slopes)]
    close(found, expected)


@pytest.mark.parametrize("many", [1, 3], ids=["one_row", "rows"])
@pytest.mark.parametrize("law", [*_TAILS])
def test_thresholds_balance_both_sides(kernel, law, many):
    """b of a whole k, where every b in the gap gives k, is the one whose tails are equal."""
    scores, low = _rows("ties")
    with mpmath.workdps(60):
        expected = float((_root(law, [*map(mpmath.mpf, scores)], low, _TAU) - _WIDE / 2) / _TAU)
    x = torch.tensor([scores] * many, dtype=torch.float64)
    k = torch.full((many,), float(len(scores) - low), dtype=torch.float64)
    tau = torch.full((many,), _TAU, dtype=torch.float64)
    centre, rest = threshold.solve(x, k, tau, so.densities.BUILT_IN[law]).b
    found = ((centre - _WIDE / 2) + rest) / _TAU
    torch.testing.assert_close(found, torch.full_like(found, expected), rtol=0, atol=1e-12)

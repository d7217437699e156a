"""log P of Pareto sampling, an integral over the level where the last unit lies."""

from itertools import combinations

import mpmath
import pytest
import torch

from softorder.kernels import _native
from softorder.kernels.pareto import reference
from softorder.kernels.pareto.levels import Levels
from softorder.kernels.subsets.circle import tilt
from softorder.sampling._levels import log_prob

_ROWS = {
    "usual": ([1.3, 0.2, -0.4, -1.1, 0.6, -0.1], 2),
    "wide": ([9.0, 5.0, 2.0, -1.0, -3.0, -6.0, 0.5], 3),
    "nearly certain": ([9.0, 9.0, 9.0, 9.0, 9.0, -9.0, -9.0], 5),
    "rare": ([-8.0] * 7, 1),
    "all but one": ([12.0, 11.0, 10.0, 9.0, 3.0, 2.0, 1.0], 6),
    "a gap": ([20.0, 20.0, -20.0, -20.0], 2),
    "all": ([1.0, 0.0, -3.0], 3),
}
_ERRORS = {torch.float64: 3e-14, torch.float32: 3e-12}


def _row(name):
    """Logits that sum to k as chances, k, and all subsets."""
    logits, k = _ROWS[name]
    u = tilt(torch.tensor(logits, dtype=torch.float64), torch.tensor(k).double())
    every = [
        [float(i in chosen) for i in range(len(u))] for chosen in combinations(range(len(u)), k)
    ]
    return u, torch.tensor(k), torch.tensor(every, dtype=torch.float64)


def _density(u, x):
    """Of the level s where the last of x lies, while the others are below it."""

    def at(s):
        chances = [1 / (1 + mpmath.exp(-ui - s)) for ui in u]
        inside = mpmath.fprod(c if xi else 1 - c for c, xi in zip(chances, x, strict=True))
        return inside * mpmath.fsum(1 - c for c, xi in zip(chances, x, strict=True) if xi)

    return at


@pytest.mark.parametrize("precision", _ERRORS)
@pytest.mark.parametrize("name", _ROWS)
def test_all_subsets_together_have_probability_one(name, precision):
    u, k, every = _row(name)
    for kind in (_native.kind(), "torch"):
        with _native.use(kind):
            total = log_prob(u, k, every, precision).logsumexp(0)
        assert abs(total) < _ERRORS[precision]


@pytest.mark.parametrize("name", ["usual", "wide", "nearly certain", "rare", "all but one"])
def test_is_the_integral(name):
    u, k, every = _row(name)
    for x in every[[0, len(every) // 2, -1]]:
        with mpmath.workdps(30):
            ends = [-80, -40, -20, -10, -5, -2, 0, 2, 5, 10, 20, 40, 80]
            right = float(mpmath.log(mpmath.quad(_density(u.tolist(), x.tolist()), ends)))
        assert abs(log_prob(u, k, x, torch.float64) - right) < 1e-13 * max(1, abs(right))


@pytest.mark.parametrize("name", _ROWS)
def test_the_gradient_is_that_of_the_formula(name):
    u, k, every = _row(name)
    u.requires_grad_()
    upstream = torch.linspace(-1, 2, len(every), dtype=torch.float64)
    found = log_prob(u, k, every, torch.float64)
    plain, _ = reference.formula(u, k, every, Levels.of(u, k, torch.float64).weights())
    kept = found.detach().clone()
    for result in (found, plain):
        torch.testing.assert_close(result, kept, rtol=1e-13, atol=1e-13)
    first, second = (torch.autograd.grad(v, u, upstream)[0] for v in (found, plain))
    torch.testing.assert_close(first, second, rtol=1e-11, atol=1e-14)


def test_small_gradients_keep_their_digits():
    u = torch.tensor([30.0, 1.0, 0.0, -30.0], dtype=torch.float64)
    u = tilt(u, torch.tensor(2).double()).requires_grad_()
    x = torch.tensor([1.0, 1.0, 0.0, 0.0], dtype=torch.float64)
    (found,) = torch.autograd.grad(log_prob(u, torch.tensor(2), x, torch.float64), u)
    step = 1e-2
    for i in (0,):

        def value(change, i=i):
            moved = [v + (change if j == i else 0) for j, v in enumerate(u.tolist())]
            ends = [-80, -40, -20, -10, -5, -2, 0, 2, 5, 10, 20, 40, 80]
            return mpmath.log(mpmath.quad(_density(moved, x.tolist()), ends))

        with mpmath.workdps(40):
            near, far = ((value(s) - value(-s)) / (2 * s) for s in (step, 2 * step))
            right = float((4 * near - far) / 3)
        assert abs(right) < 1e-11
        assert abs(found[i] / right - 1) < 1e-6


def test_rows_do_not_depend_on_how_many_are_worked_on_at_once(monkeypatch):
    u = tilt(
        torch.randn(7, 40, generator=torch.Generator().manual_seed(0)), torch.full((7,), 3).double()
    )
    x = torch.zeros(2, 7, 40, dtype=torch.float64)
    x[0, :, :3], x[1, :, 5:8] = 1, 1
    found = []
    for number in (1 << 19, 1):
        monkeypatch.setattr(reference, "_AT_ONCE", number)
        of = u.clone().requires_grad_()
        with _native.use("torch"):
            value = log_prob(of, torch.full((7,), 3), x, torch.float64)
            value.sum().backward()
        found.append((value.detach(), of.grad))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-13, atol=1e-14)

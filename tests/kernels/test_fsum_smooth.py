"""Logistic, normal and Cauchy F-sums of rows too long for all pairs, against direct sums."""

import time

import numpy as np
import pytest
import torch

from softorder.densities import BUILT_IN
from softorder.kernels import _native, fsum
from softorder.relaxations.roots import roots
from tests import bank
from tests.oracles.densities import DENSITIES
from tests.runtime.processes import run

_N = 3000
_SMOOTH = pytest.mark.parametrize("density", ["logistic", "normal", "cauchy"])
_FIRST = ("normal", "ties", "outlier", "shifted")
_FAMILIES = pytest.mark.parametrize(
    "family",
    [
        *_FIRST,
        *(pytest.param(f, marks=pytest.mark.slow) for f in bank.FAMILIES if f not in _FIRST),
    ],
)
_TEMPERATURES = (1e-6, 1e-3, 0.1, 10.0, 1e6)
_MOST = {"logistic": 1e3, "normal": 1e3, "cauchy": 1e60}  # further out, u would overflow


def _derivatives(density, a):
    """F less its step, f, f' and f'' at a = |u|, the odd ones for u < 0."""
    if density == "logistic":
        e = np.exp(-a)
        pdf = e / (1 + e) ** 2
        return e / (1 + e), pdf, pdf * (1 - e) / (1 + e), pdf * (1 - 4 * e + e * e) / (1 + e) ** 2
    law = DENSITIES[density]
    tail, pdf = law.tail(a), law.pdf(a)
    if density == "normal":
        return tail, pdf, a * pdf, (a * a - 1) * pdf
    h = 1 / (1 + a * a)
    return tail, pdf, 2 * a * h * pdf, (6 - 8 * h) * h * pdf


def _terms(density, u, derivative, moment):
    u = np.clip(u, -_MOST[density], _MOST[density])
    value = _derivatives(density, abs(u))[derivative]
    sign = np.where(u < 0, 1, -1) if derivative % 2 == 0 else 1
    return np.where(value == 0, 0.0, sign * value * u**moment)


def _row(family):
    return torch.from_numpy(np.sort(bank.row(family, _N)))


def _some(n):
    return np.unique(np.r_[0, 1, n - 2, n - 1, np.random.default_rng(0).integers(0, n, 10)])


def _offsets(x, t, temperature, rest=0.0):
    return ((t.numpy()[:, None] - x.numpy()) + np.reshape(rest, (-1, 1))) / temperature


@_SMOOTH
@_FAMILIES
def test_ranks(density, family):
    x = _row(family)
    for temperature in _TEMPERATURES:
        with _native.use("native"):
            found = fsum.fsum(x, x, None, torch.tensor(temperature, dtype=torch.float64), density)
        some = _some(_N)
        u = _offsets(x, x[some], temperature)
        expected = (u >= 0).sum(1) + _terms(density, u, 0, 0).sum(1)
        np.testing.assert_allclose(found.numpy()[some], expected, rtol=1e-13)


@_SMOOTH
@_FAMILIES
@pytest.mark.parametrize(("derivative", "moment"), [(1, 0), (1, 1), (2, 1), (3, 3)])
def test_weighted_sums(density, family, derivative, moment):
    x, w = _row(family), torch.linspace(-1, 2, _N).double().sin()
    for temperature in _TEMPERATURES:
        t = torch.cat([x[:1] - 7 * temperature, x[::2] + 0.3 * temperature]).sort().values
        orders = {"derivative": derivative, "moment": moment}
        with _native.use("native"):
            found = fsum.fsum(
                x, t, w, torch.tensor(temperature, dtype=torch.float64), density, **orders
            )
        bound = 1e-12 if derivative == 3 else 1e-13
        some = _some(len(t))
        u = _offsets(x, t[some], temperature)
        around = [abs(_terms(density, u + by, derivative, moment)) for by in (-1, 0, 1)]
        scale = (abs(w.numpy()) * np.max(around, axis=0)).sum(1)
        expected = (w.numpy() * _terms(density, u, derivative, moment)).sum(1)
        assert (abs(found.numpy()[some] - expected) <= bound * scale + 1e-300).all(), temperature


@_SMOOTH
@_FAMILIES
@pytest.mark.parametrize("shift", [0.5, 1.0])
def test_roots(density, family, shift):
    """Where the sum misses its level by a rounding, or a rounding of t would do as much."""
    x, levels = _row(family), torch.arange(_N - 1) + shift
    for temperature in _TEMPERATURES:
        with _native.use("native"):
            centre, rest = fsum.invert(
                x, levels, torch.tensor(temperature, dtype=torch.float64), density
            )
        some = _some(len(levels))
        u = _offsets(x, centre[some], temperature, rest[some].numpy())
        tails = _terms(density, u, 0, 0)
        missed = abs((u >= 0).sum(1) - levels[some].numpy() + tails.sum(1))
        slope = _terms(density, u, 1, 0).sum(1)
        assert (missed <= 1e-13 * _N + 1e-14 * abs(u).min(1) * slope).all(), temperature
        if shift == 1.0:  # on a plateau the tails of both sides are equal
            above = np.where(u < 0, tails, 0).sum(1)
            below = np.where(u >= 0, -tails, 0).sum(1)
            flat = (abs(u).min(1) > 8) & (above > 1e-290) & (np.maximum(above, below) < 0.2)
            assert (abs(above - below)[flat] <= 1e-10 * above[flat]).all(), temperature
        assert ((centre + rest).diff() >= -1e-12 * (1 + abs(centre[1:]))).all()


@_SMOOTH
def test_a_root_on_a_plateau_beside_a_crowd_has_its_gradient(density):
    """Its share of the slope is huge, and meets tails as small."""
    half = torch.linspace(0, 1, 2000, dtype=torch.float64)
    x = torch.cat([half, half + 8]).requires_grad_()
    levels = torch.arange(4000).double()
    with _native.use("native"):
        centre, _ = roots(x, levels, torch.tensor(0.2, dtype=torch.float64), BUILT_IN[density])
        (found,) = torch.autograd.grad(centre[2000], x)
    u = (4.5 - x.detach()) / 0.2
    weight = torch.from_numpy(_terms(density, u.numpy(), 1, 0))
    torch.testing.assert_close(found, weight / weight.sum(), rtol=1e-10, atol=1e-18)


@_SMOOTH
@pytest.mark.parametrize("temperature", [1e-4, 1e-2, 1.0])
def test_floats(density, temperature):
    """Sums and roots of float32 are those of float64, rounded."""
    x, tau = _row("normal").float(), torch.tensor(temperature, dtype=torch.float64)
    levels, w = torch.arange(_N) + 0.5, torch.linspace(-1, 2, _N).double().sin()
    with _native.use("native"):
        for weights, derivative in ((None, 0), (w, 1), (w, 3)):
            arguments = tau, density
            wide = None if weights is None else weights.float().double()
            exact = fsum.fsum(x.double(), x.double(), wide, *arguments, derivative=derivative)
            narrow = None if weights is None else weights.float()
            found = fsum.fsum(x, x, narrow, *arguments, derivative=derivative)
            torch.testing.assert_close(
                found.double(), exact, rtol=1e-7, atol=1e-7 * exact.abs().max()
            )
        centre, rest = fsum.invert(x.double(), levels, tau, density)
        short = fsum.invert(x, levels, tau, density)
    missed = short.centre.double() + short.rest.double() - centre - rest
    assert (missed.abs() <= 2e-7 * torch.maximum(tau, rest.abs())).all()


@pytest.mark.parametrize("temperature", [1e-9, 1e-4])
def test_cauchy_rows_with_a_crowd(temperature):
    """Half of the scores are equal and a quarter is within 1e-6: boxes are halved down to them."""
    n, rng = 40_000, np.random.default_rng(0)
    x = np.concatenate([np.zeros(n // 2), 0.3 + 1e-6 * rng.random(n // 4), rng.random(n // 4)])
    x = torch.from_numpy(np.sort(x))
    began = time.process_time()
    with _native.use("native"):
        found = fsum.fsum(x, x, None, torch.tensor(temperature, dtype=torch.float64), "cauchy")
    assert time.process_time() - began < 1  # all pairs take four
    some = _some(n)
    u = _offsets(x, x[some], temperature)
    expected = (u >= 0).sum(1) + _terms("cauchy", u, 0, 0).sum(1)
    np.testing.assert_allclose(found.numpy()[some], expected, rtol=1e-13)


_LONG = """
import torch
from softorder.kernels import fsum
torch.set_num_threads({threads})
torch.manual_seed(0)
x = torch.randn(40_000, dtype=torch.float64).sort().values
tau, levels = torch.tensor(0.05, dtype=torch.float64), torch.arange(40_000) + 0.5
for density in ("logistic", "normal", "cauchy"):
    centre, rest = fsum.invert(x, levels, tau, density)
    back = fsum.fsum(x, centre, None, tau, density, target_rest=rest)
    torch.testing.assert_close(back, levels.double(), rtol=0, atol=1e-9)
    short = fsum.invert(x.float(), levels, tau, density)
    torch.testing.assert_close(short.centre + short.rest, (centre + rest).float())
"""


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.slow
def test_long_rows_at_every_simd_level_and_number_of_threads(level, threads):
    run(_LONG.format(threads=threads), SOFTORDER_SIMD=level)


@_SMOOTH
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("clusters", [(5, 5, 2, 4), (4, 4, 1), (7, 7, 3, 1)], ids=str)
def test_roots_between_ties(density, dtype, clusters):
    """Half way between two alike the tails cancel but for those of others: no step ends there."""
    levels = torch.arange(sum(clusters)).double() + 0.5
    for gap in (1.5, 2.0, 3.1, 4.5, 6.0, 7.9, 9.0):
        x = (gap * torch.arange(len(clusters))).repeat_interleave(torch.tensor(clusters)).to(dtype)
        centre, rest = fsum.invert(x, levels, torch.tensor(1.0).double(), density)
        u = (centre.double() + rest.double()).unsqueeze(-1) - x.double()
        tail, above = DENSITIES[density].tail(u.abs().numpy()), (u > 0).numpy()
        found = np.where(above, 1 - tail, tail).sum(-1)
        atol = 1e-10 if dtype is torch.float64 else 2e-5
        np.testing.assert_allclose(found, levels.numpy(), rtol=0, atol=atol, err_msg=f"{gap} τ")

"""Soft ranks and sorts in one go: direct sums, and the plain path where rows are long."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
import torch

import softorder as so
from softorder.densities import BUILT_IN
from softorder.kernels import _native, order
from softorder.kernels._density_numbers import number_of
from tests import bank
from tests.kernels.fused import vjp
from tests.runtime.processes import run

_DTYPES = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
_FAMILIES = pytest.mark.parametrize("family", bank.FAMILIES)
_LAPLACE, _UNIFORM = (number_of(BUILT_IN[name]) for name in ("laplace", "uniform"))
_TOLERANCE = {torch.float64: 1e-11, torch.float32: 1e-5}
_N = 90


def _tau(value):
    return torch.tensor(value, dtype=torch.float64)


def _problem(family, dtype):
    scores = torch.from_numpy(bank.row(family, _N)).to(dtype)
    upstream = torch.linspace(-1, 2, _N, dtype=torch.float64).sin().to(dtype)
    return scores, upstream


def _tails(x, t, temperature):
    """e^-|u|/2, and whether u >= 0, for u = (t_j - x_i)/τ; targets in front."""
    u = (np.asarray(t, np.float64)[:, None] - np.asarray(x, np.float64)) / temperature
    return 0.5 * np.exp(-np.abs(u)), u >= 0


def _moments(x, t, temperature):
    """u f(u)/τ: what ∂F/∂τ is made of."""
    u = (np.asarray(t, np.float64)[:, None] - np.asarray(x, np.float64)) / temperature
    return u * 0.5 * np.exp(-np.abs(u)) / temperature


def _assert_heat(heat, terms, tolerance=1e-10):
    """Sums in float64 for every dtype."""
    assert abs(heat.item() - terms.sum()) <= tolerance * np.abs(terms).sum() + 1e-300


@_DTYPES
@_FAMILIES
def test_ranks(family, dtype):
    x, v = _problem(family, dtype)
    for temperature, descending in itertools.product(bank.TEMPERATURES, (False, True)):
        found = order.rank.forward(x, _tau(temperature), descending, _LAPLACE)
        tails, above = _tails(x, x, temperature)
        ranks = 0.5 + np.where(above, 1 - tails, tails).sum(1)
        expected = _N + 1 - ranks if descending else ranks
        np.testing.assert_allclose(found[0].double(), expected, rtol=_TOLERANCE[dtype])
        settings = _tau(temperature), descending, _LAPLACE
        gradient, heat = vjp(order.rank, v, x, found, *settings, by_temperature=True)
        g = v.double().numpy()
        terms = (g[:, None] - g) * tails / temperature * (-1 if descending else 1)
        allowed = _TOLERANCE[dtype] * np.abs(terms).sum(1) + torch.finfo(dtype).tiny
        assert (np.abs(gradient.double().numpy() - terms.sum(1)) <= allowed).all()
        _assert_heat(heat, -g[:, None] * _moments(x, x, temperature) * (-1 if descending else 1))


@_DTYPES
@_FAMILIES
def test_sorted(family, dtype):
    x, v = _problem(family, dtype)
    for temperature in bank.TEMPERATURES:
        found = order.sort.forward(x, _tau(temperature), False, _LAPLACE)
        t, values, places, segment, rest, slope = found
        assert (t.diff() >= 0).all()
        values, upper = values.double().numpy(), np.signbit(rest.numpy())
        centre = values[segment.numpy() - ~upper]
        u = ((centre[:, None] - values) + rest.double().numpy()[:, None]) / temperature
        tails = 0.5 * np.exp(-np.abs(u))
        total = np.where(u >= 0, 1 - tails, tails).sum(1)
        levels = np.arange(_N) + 0.5
        np.testing.assert_allclose(total, levels, rtol=_TOLERANCE[dtype] / 10)
        np.testing.assert_allclose(slope, tails.sum(1), rtol=_TOLERANCE[dtype])
        np.testing.assert_allclose(
            t.double(),
            centre + rest.double().numpy(),
            rtol=torch.finfo(dtype).eps,
            atol=torch.finfo(dtype).eps * temperature,
        )
        gradient = torch.empty(_N, dtype=torch.float64)
        terms = v.double().numpy()[:, None] * tails / tails.sum(1, keepdims=True)
        gradient[places.long()] = torch.from_numpy(terms.sum(0))
        by_scores, heat = vjp(
            order.sort, v, x, found, _tau(temperature), False, _LAPLACE, by_temperature=True
        )
        scale = np.abs(terms).sum(0).max()
        assert (by_scores.double() - gradient).abs().max() <= _TOLERANCE[dtype] * scale
        rounded = 1e-10 if dtype == torch.float64 else 1e-6  # the slopes, and where the roots are
        _assert_heat(heat, terms * u, rounded)


@pytest.mark.parametrize("density", [_LAPLACE, _UNIFORM])
@_DTYPES
def test_descending_mirrors(dtype, density):
    x, v = _problem("normal", dtype)
    up = order.sort.forward(x, _tau(0.3), False, density)
    down = order.sort.forward(x, _tau(0.3), True, density)
    assert torch.equal(down[0], up[0].flip(-1))
    mirrored = vjp(order.sort, v.flip(-1), x, down, _tau(0.3), True, density, by_temperature=True)
    expected = vjp(order.sort, v, x, up, _tau(0.3), False, density, by_temperature=True)
    assert all(map(torch.equal, mirrored, expected))


@pytest.mark.parametrize("descending", [False, True])
@_DTYPES
def test_infinities_and_nan(dtype, descending):
    inf, nan = math.inf, math.nan
    rows = [
        [1, inf, -inf, 2, inf, -inf, 0.5],
        [1, 2, nan, 3, 4, inf, -inf],
        [-inf] * 7,
        [inf] * 7,
        [nan] * 7,
        [3, 1, 2, 5, 4, 7, 6],
    ]
    answers = []
    for kind in _native.KINDS:
        x = torch.tensor(rows, dtype=dtype, requires_grad=True)
        with _native.use(kind):
            for operator in (so.soft_rank, so.soft_sort):
                y = operator(x, temperature=0.3, descending=descending)
                upstream = torch.linspace(1, 2, 7, dtype=dtype).expand(y.shape)
                (gradient,) = torch.autograd.grad(y, x, upstream)
                answers.append((y.detach(), gradient[[0, 2, 3, 5]]))
    for native_one, torch_one in zip(answers[:2], answers[2:], strict=True):
        torch.testing.assert_close(native_one, torch_one, equal_nan=True)


_LONG = """
import torch
import softorder as so
from softorder.kernels import _native
torch.set_num_threads({threads})
for n, dtype in ((30, torch.float64), (50_000, torch.float64), (50_000, torch.float32)):
    torch.manual_seed(n)
    x, v = torch.randn(2, n, dtype=dtype, requires_grad=True), torch.randn(2, n, dtype=dtype)
    cases = [(operator, t, "laplace") for operator in (so.soft_rank, so.soft_sort)
             for t in ((1e-5, 1e-2, 10.0) if {threads} > 1 else (1e-2,))]
    cases += [(operator, 1e-2, "uniform") for operator in (so.soft_rank, so.soft_sort)]
    for operator, temperature, method in cases:
            answers = []
            for kind in _native.KINDS:
                with _native.use(kind):
                    y = operator(x, temperature=temperature, method=method)
                    answers.append((y.detach(), torch.autograd.grad(y, x, v)[0]))
            (y, g), (z, h) = answers
            close = 1e-9 if dtype == torch.float64 else 1e-4
            assert (y - z).abs().max() <= close * z.abs().max()
            assert (g - h).abs().max() <= close * max(h.abs().max(), 1e-3)
"""


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.slow
def test_long_rows_at_every_simd_level_and_number_of_threads(level, threads):
    run(_LONG.format(threads=threads), SOFTORDER_SIMD=level)


# ---- the uniform density ------------------------------------------------------------------------


def _clustered(dtype, shift):
    """Clusters of scores around far outliers, and everything shifted."""
    rng = np.random.default_rng(0)
    n = 3000
    x = np.concatenate([rng.random(n // 2) * n, rng.random(n // 2) * 20 + 4 * n]) + shift
    x[:3] = -1e30, 1e30, -1e25
    return torch.from_numpy(rng.permutation(x)).to(dtype)


@_DTYPES
@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_uniform_windows_do_not_cancel(dtype, shift):
    """Ranks, gradients and roots behind thousands of scores that are far away."""
    x = _clustered(dtype, shift)
    v = torch.linspace(-1, 2, len(x), dtype=torch.float64).sin().to(dtype)
    temperature = 4.0
    found = order.rank.forward(x, _tau(temperature), False, _UNIFORM)
    wide = x.double().numpy()
    u = (wide[:, None] - wide) / temperature
    ranks = 0.5 + np.clip(u + 0.5, 0, 1).sum(1)
    close = 1e-14 if dtype == torch.float64 else 1e-7
    np.testing.assert_allclose(found[0].double(), ranks, rtol=close)
    settings = _tau(temperature), False, _UNIFORM
    gradient, heat = vjp(order.rank, v, x, found, *settings, by_temperature=True)
    near, g = abs(u) < 0.5, v.double().numpy()
    terms = (g[:, None] - g) * near / temperature
    assert (
        abs(gradient.double().numpy() - terms.sum(1)) <= close * abs(terms).sum(1) + 1e-30
    ).all()
    _assert_heat(heat, -g[:, None] * u * near / temperature, 1e-12)

    t, values, _, segment, rest, slope = order.sort.forward(x, *settings)
    assert (t.diff() >= 0).all()
    centre = values.double().numpy()[segment]
    u = ((centre[:, None] - values.double().numpy()) + rest.double().numpy()[:, None]) / temperature
    levels = np.arange(len(x)) + 0.5
    assert (
        abs(np.clip(u + 0.5, 0, 1).sum(1) - levels) <= 20 * close * slope.double().numpy()
    ).all()
    near = abs(u) < 0.5
    edge = abs(abs(u) - 0.5).min(1) > 1e-4  # else rounding decides who is in the window
    np.testing.assert_array_equal(slope.numpy()[edge], near.sum(1)[edge])


@_DTYPES
def test_a_uniform_root_on_a_plateau_is_in_the_middle(dtype):
    """Where no window holds a score: thresholds of a permutation, at whole levels."""
    x = torch.tensor([0.0, 10.0, 10.1, 30.0], dtype=dtype)
    p = so.soft_permutation(x, method="uniform", temperature=1.0)
    target = torch.arange(4)
    losses = so.losses.permutation_cross_entropy(
        x, target, method="uniform", temperature=1.0, reduction="none"
    )
    torch.testing.assert_close(losses, -p.diagonal().log(), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("density", [_LAPLACE, _UNIFORM])
@pytest.mark.parametrize("n", [0, 1])
def test_hardly_anything(n, density):
    x = torch.ones(3, n)
    settings = _tau(1.0), False, density
    ranks, sorted_ = order.rank.forward(x, *settings), order.sort.forward(x, *settings)
    assert torch.equal(ranks[0], x)
    assert torch.equal(sorted_[0], x)
    assert not vjp(order.rank, x, x, ranks, *settings)[0].any()
    assert torch.equal(vjp(order.sort, x, x, sorted_, *settings)[0], x)


def _loss(scores):
    target = torch.arange(scores.shape[-1]).expand_as(scores)
    return so.losses.permutation_cross_entropy(scores, target)


def test_eager_calls_run_fused():
    x = torch.randn(4, 9, requires_grad=True)
    calls = {
        so.soft_rank: ("soft_rank_forward", "soft_rank_backward"),
        so.soft_sort: ("soft_sort_forward", "soft_sort_backward"),
        so.soft_permutation: ("permutation_forward", "permutation_backward"),
        partial(so.soft_rank, method="uniform"): ("soft_rank_forward", "soft_rank_backward"),
        partial(so.soft_sort, method="uniform"): ("soft_sort_forward", "soft_sort_backward"),
        _loss: ("placement_forward", "placement_backward"),
    }
    for operator, names in calls.items():
        before = [_native.calls[name] for name in names]
        with _native.use("native"):
            operator(x).square().sum().backward()
        assert [_native.calls[name] for name in names] == [b + 1 for b in before]
        with _native.use("torch"):
            operator(x).square().sum().backward()
        assert [_native.calls[name] for name in names] == [b + 1 for b in before]

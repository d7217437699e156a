"""The Triton F-sums and their roots, in Triton's interpreter, against direct sums."""

import itertools
import math

import numpy as np
import pytest
import torch

from softorder.densities import BUILT_IN
from softorder.kernels import _native, _triton, fsum
from softorder.kernels._density_numbers import number_of
from tests import bank
from tests.kernels import test_fsum as direct
from tests.kernels.interpreted import triton_serves  # noqa: F401
from tests.kernels.watched import Watched
from tests.oracles.densities import DENSITIES

pytest.importorskip("triton", reason="Triton is not installed")
pytestmark = pytest.mark.usefixtures("triton_serves")

_LINEAR = pytest.mark.parametrize("density", ["laplace", "uniform"])
_DTYPES = pytest.mark.parametrize(
    "dtype", [torch.float32, pytest.param(torch.float64, marks=pytest.mark.slow)], ids=str
)
_TOLERANCE = direct._TOLERANCE
_ORDERS = [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (3, 0)]


def _rows(n, dtype, families=bank.FAMILIES):
    """The bank, sorted, a row for every temperature."""
    labels = list(itertools.product(families, bank.TEMPERATURES))
    rows = [np.sort(bank.row(family, n)) for family, _ in labels]
    return (
        labels,
        torch.from_numpy(np.stack(rows)).to(dtype),
        torch.from_numpy(_temperatures(labels)),
    )


def _temperatures(labels):
    return np.array([temperature for _, temperature in labels])


def _assert_sums(found, x, t, w, labels, density, derivative, moment):
    dtype = x.dtype
    for i, (family, temperature) in enumerate(labels):
        u = direct._offsets(x[i], t[i], temperature)
        weights = np.ones(x.shape[-1]) if w is None else w[i].double().numpy()
        terms = weights * _terms(density, u, derivative, moment)
        scale = np.abs(terms).sum(1) + (derivative > 1) * np.abs(weights).max()
        error = np.abs(found[i].double().numpy() - terms.sum(1))
        allowed = _TOLERANCE[dtype] * scale + torch.finfo(dtype).tiny
        assert (error <= allowed).all(), (family, temperature, derivative, moment)


def _terms(density, u, derivative, moment):
    if derivative < 3:
        return direct._terms(density, u, derivative, moment)
    with np.errstate(under="ignore"):
        pdf = DENSITIES[density].pdf(np.abs(u))
    return pdf if density == "laplace" else np.zeros_like(pdf)


@_DTYPES
@_LINEAR
def test_ranks(density, dtype):
    for n in (1, 2, 90):
        labels, x, tau = _rows(n, dtype)
        found = fsum.fsum(x, x, None, tau, density).double().numpy()
        for i, (_, temperature) in enumerate(labels):
            expected = _terms(density, direct._offsets(x[i], x[i], temperature), 0, 0).sum(1)
            np.testing.assert_allclose(found[i], expected, rtol=_TOLERANCE[dtype])


@_DTYPES
@_LINEAR
def test_weighted_sums_at_other_targets(density, dtype):
    labels, x, tau = _rows(60, dtype)
    w = direct._weights(60, dtype).expand(x.shape)
    t = torch.cat([x[:, ::2], x[:, ::3] + 0.3 * tau[:, None], x[:, :1] - 7 * tau[:, None]], -1)
    t = t.to(dtype).sort().values
    for derivative, moment in _ORDERS:
        for targets, weights in ((t, w), (x, w), (t, None)):
            if weights is None or derivative > 0:
                found = fsum.fsum(
                    x, targets, weights, tau, density, derivative=derivative, moment=moment
                )
                _assert_sums(found, x, targets, weights, labels, density, derivative, moment)


@_DTYPES
@_LINEAR
def test_roots(density, dtype):
    n = 60
    levels = torch.cat([torch.arange(2 * n + 1) / 2, torch.tensor([1e-3, n - 1e-3])]).double()
    levels = levels.sort().values
    labels, x, tau = _rows(n, dtype)
    centre, rest = fsum.invert(x, levels, tau, density)
    assert centre.dtype == rest.dtype == dtype
    assert (centre[:, 0] == -math.inf).all()
    assert (centre[:, -1] == math.inf).all()
    for i, (family, temperature) in enumerate(labels):
        u = direct._offsets(x[i], centre[i, 1:-1], temperature, rest[i, 1:-1])
        error = np.abs(_terms(density, u, 0, 0).sum(1) - levels[1:-1].numpy()).max()
        assert error <= n * (1e-12 if dtype == torch.float64 else 1e-6), (family, temperature)
    t = (centre.double() + rest.double())[:, 1:-1]
    slack = 1e-6 if dtype == torch.float32 else 1e-12
    assert (t.diff() >= -slack * t.abs()[:, 1:]).all()


@_LINEAR
def test_split_and_empty_rows_as_on_the_cpu(density):
    direct.test_split_places(None, density)
    direct.test_empty(None, density)


def test_vmap_and_compile():
    direct.test_vmap_and_compile(None)


@pytest.mark.parametrize(
    "dtype", [torch.float32, pytest.param(torch.float64, marks=pytest.mark.slow)], ids=str
)
@_LINEAR
def test_counts_and_plateaus_as_on_the_cpu(density, dtype):
    direct.test_counts_cut_rows_off(None, density, dtype)
    direct.test_a_root_on_a_plateau_is_inside_the_gap(None, density, dtype)


@_LINEAR
def test_what_is_outside_of_its_window_says_nothing(density):
    """Where F ends, so do the weights that are infinite or not a number."""
    x = torch.linspace(0, 50, 51, dtype=torch.float64)
    w = torch.ones_like(x)
    w[10], w[40] = math.inf, math.nan
    tau = torch.tensor(3.0).double()
    found = fsum.fsum(x, x, w, tau, density, derivative=1)
    if density == "uniform":
        assert (found[[8, 12, 20, 38, 42]] == 3).all()
        assert found[9:12].isinf().all()
    assert found[39:42].isnan().all()


# ---- longer rows --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("density", "split", "kernel"),
    [
        ("laplace", 10**6, "laplace_scan"),
        ("laplace", 128, "laplace_pieces"),
        pytest.param("uniform", 10**6, "uniform_tree", marks=pytest.mark.slow),
    ],
    ids=["laplace, streamed", "laplace, in pieces", "uniform"],
)
def test_rows_that_are_longer_than_a_tile(monkeypatch, density, split, kernel):
    from softorder.kernels.fsum import triton_given

    n, tile = 150, 32
    monkeypatch.setattr(triton_given, "INTERPRETED", tile)
    monkeypatch.setattr(triton_given, "SPLIT", split)
    before = _triton.calls[kernel]
    labels = [("normal", 0.01), ("normal", 1.0)]
    x = torch.from_numpy(np.sort(bank.row("normal", n))).expand(2, n).contiguous()
    tau, w = torch.from_numpy(_temperatures(labels)), direct._weights(n, x.dtype).expand(2, n)
    t = torch.linspace(-4, 4, 20, dtype=torch.float64).expand(2, 20)
    ranks = fsum.fsum(x, x, None, tau, density)
    _assert_sums(ranks, x, x, None, labels, density, 0, 0)
    for targets, moment in ((x, 0), (t, 1)):
        found = fsum.fsum(x, targets, w, tau, density, derivative=1, moment=moment)
        _assert_sums(found, x, targets, w, labels, density, 1, moment)
    levels = torch.arange(1, n, 7) + 0.25
    centre, rest = fsum.invert(x, levels, tau, density, count=torch.tensor([n, n - 10]))
    for i, m in enumerate((n, n - 10)):
        u = direct._offsets(x[i, :m], centre[i], tau[i].item(), rest[i])
        inside = levels < m
        error = _terms(density, u, 0, 0).sum(1) - levels.numpy()
        assert np.abs(error[inside.numpy()]).max() < 1e-11 * n
    assert _triton.calls[kernel] >= before + 4


@pytest.mark.slow
@_LINEAR
@pytest.mark.parametrize("temperature", [1e-5, 1e-2, 10.0])
def test_long_rows_agree_with_plain_torch(density, temperature):
    n, tau = 40_000, torch.tensor(temperature, dtype=torch.float64)
    x = torch.from_numpy(np.sort(bank.row("normal", n)))
    w, levels = direct._weights(n, x.dtype), torch.arange(0, n, 7) + 0.5
    answers = []
    for kind in ("triton", "torch"):
        with _native.use(kind):
            roots = fsum.invert(x, levels, tau, density)
            ranks = fsum.fsum(x, x, None, tau, density)
            slopes = fsum.fsum(x, x[::5], w, tau, density, derivative=1, moment=1)
            answers.append((roots.centre + roots.rest, ranks, slopes))
    torch.testing.assert_close(*answers, rtol=1e-9, atol=1e-9)


# ---- the operators ------------------------------------------------------------------------------


@_LINEAR
def test_what_plain_torch_serves(density):
    x, w, tau = torch.randn(9).sort().values.double(), torch.rand(9).double(), direct._tau(0.5)
    answers = []
    for kind in ("triton", "torch"):
        with _native.use(kind):
            second = fsum.fsum(x, x, w, tau, density, derivative=3, moment=2)
            answers.append((second, fsum.fsum(x, x, w, tau, density)))
    torch.testing.assert_close(*answers, rtol=0, atol=0)
    fsum.fsum(x, x, None, tau, density)  # the fixture wants a kernel


@_LINEAR
def test_launches_ask_nothing_and_take_linear_memory(density):
    """With numbers on the device of the scores, as a CUDA graph needs it."""
    from softorder.kernels.fsum import triton as launches

    n, number = 500, number_of(BUILT_IN[density])
    x = torch.randn(2, n, generator=torch.Generator().manual_seed(0)).sort().values
    tau = torch.tensor([0.5, 1.0], dtype=torch.float64)
    counts = torch.tensor([n, n - 9])
    levels = (torch.arange(n) + 0.5).double().expand(2, n)
    with Watched() as watched:
        launches.fsum(x, None, x, None, None, tau, counts, counts, number, 0, 0)
        launches.fsum(x, None, x, None, x, tau, counts, counts, number, 1, 1)
        launches.invert(x, levels, tau, counts, number)
    assert x.nbytes < watched.largest <= 64 * x.numel()

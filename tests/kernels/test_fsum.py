"""F-sums and their inverse against direct sums in float64, on the bank of rows."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from softorder.kernels import _native, fsum
from tests import bank
from tests.oracles.densities import BUILT_IN, DENSITIES
from tests.runtime.processes import run
from tests.user_density import Student

_LINEAR = ("laplace", "uniform")
_DTYPES = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
_ORDERS = [(a, m) for a in range(3) for m in range(a + 1)]
_TOLERANCE = {torch.float64: 1e-11, torch.float32: 1e-5}
_LOG_SLOPE = {
    "laplace": lambda u: -np.sign(u),
    "logistic": lambda u: -np.tanh(u / 2),
    "normal": lambda u: -u,
    "cauchy": lambda u: -2 * u / (1 + u * u),
    "uniform": np.zeros_like,
}


def _terms(density, u, derivative, moment):
    """u^moment F^(derivative)(u), with nothing taken from the library."""
    law = DENSITIES[density]
    if derivative == 0:
        tail = law.tail(np.abs(u))
        return np.where(u < 0, tail, 1 - tail)
    with np.errstate(under="ignore"):
        values = law.pdf(np.abs(u))
    if derivative == 2:
        values = values * _LOG_SLOPE[density](u)
    return np.where(values == 0, 0.0, values * u**moment)


def _offsets(x, t, temperature, rest=0.0):
    x, t, rest = (np.asarray(v, dtype=np.float64) for v in (x, t, rest))
    return ((t[:, None] - x) + np.broadcast_to(rest, t.shape)[:, None]) / temperature


def _tau(value):
    return torch.tensor(value, dtype=torch.float64)


def _row(family, n, dtype):
    return torch.from_numpy(np.sort(bank.row(family, n))).to(dtype)


def _weights(n, dtype):
    return torch.linspace(-1, 2, n, dtype=torch.float64).sin().to(dtype)


@pytest.mark.one_of(3)
@_DTYPES
@pytest.mark.parametrize("family", bank.FAMILIES)
@pytest.mark.parametrize("density", BUILT_IN)
def test_ranks(kernel, density, family, dtype):
    for n, temperature in itertools.product((1, 2, 7, 150), bank.TEMPERATURES):
        x = _row(family, n, dtype)
        found = fsum.fsum(x, x, None, _tau(temperature), density).double().numpy()
        expected = _terms(density, _offsets(x, x, temperature), 0, 0).sum(1)
        np.testing.assert_allclose(found, expected, rtol=_TOLERANCE[dtype])


@pytest.mark.one_of(3)
@_DTYPES
@pytest.mark.parametrize("family", bank.FAMILIES)
@pytest.mark.parametrize("density", BUILT_IN)
def test_weighted_sums_at_other_targets(kernel, density, family, dtype):
    x = _row(family, 120, dtype)
    w = _weights(120, dtype)
    for temperature in bank.TEMPERATURES:
        between = x + 0.3 * temperature
        t = torch.cat([x[::2], between[::3], x[:1] - 7 * temperature]).to(dtype).sort().values
        u = _offsets(x, t, temperature)
        for derivative, moment in _ORDERS:
            found = fsum.fsum(
                x, t, w, _tau(temperature), density, derivative=derivative, moment=moment
            )
            terms = w.double().numpy() * _terms(density, u, derivative, moment)
            scale = np.abs(terms).sum(1) + (derivative == 2) * np.abs(w.double().numpy()).max()
            error = np.abs(found.double().numpy() - terms.sum(1))
            assert (error <= _TOLERANCE[dtype] * scale + torch.finfo(dtype).tiny).all(), (
                temperature,
                derivative,
            )


@_DTYPES
@pytest.mark.parametrize("family", bank.FAMILIES)
@pytest.mark.parametrize("density", BUILT_IN)
def test_roots(kernel, density, family, dtype):
    n = 60
    levels = torch.cat([torch.arange(2 * n + 1) / 2, torch.tensor([1e-3, n - 1e-3])]).double()
    levels = levels.sort().values
    for temperature in bank.TEMPERATURES:
        x = _row(family, n, dtype)
        centre, rest = fsum.invert(x, levels, _tau(temperature), density)
        assert centre.dtype == rest.dtype == dtype
        assert centre[0] == -math.inf
        assert centre[-1] == math.inf
        u = _offsets(x, centre[1:-1], temperature, rest[1:-1])
        found = _terms(density, u, 0, 0).sum(1)
        tolerance = 1e-12 if dtype == torch.float64 else 1e-6
        np.testing.assert_allclose(found, levels[1:-1].numpy(), rtol=0, atol=tolerance * n)
        t = (centre.double() + rest.double())[1:-1]
        slack = 1e-6 if dtype == torch.float32 else 1e-12
        assert (t.diff() >= -slack * t.abs()[1:]).all()


@_DTYPES
@pytest.mark.parametrize("density", BUILT_IN)
def test_a_root_on_a_plateau_is_inside_the_gap(kernel, density, dtype):
    x = torch.tensor([0.0, 0.25, 10.0, 11.0], dtype=dtype)
    centre, rest = fsum.invert(x, torch.tensor([2.0]).double(), _tau(1e-4), density)
    assert 0.3 < centre + rest < 9.9
    if density == "laplace":  # two on the left pull as much as two on the right
        np.testing.assert_allclose((centre + rest).item(), 5.125, rtol=1e-4)


@pytest.mark.parametrize("density", BUILT_IN)
def test_split_places(kernel, density):
    """Near 10^6 with τ = 10^-6 only an unevaluated sum says where a target or a source is."""
    x = torch.from_numpy(np.sort(bank.row("shifted", 80)))
    tau = 1e-6
    levels = torch.arange(80) + 0.37
    t, rest = fsum.invert(x, levels, _tau(tau), density)
    w = _weights(80, torch.float64)
    u = _offsets(x, t, tau, rest)
    slopes = fsum.fsum(x, t, w, _tau(tau), density, derivative=1, target_rest=rest)
    terms = w.numpy() * _terms(density, u, 1, 0)
    assert (np.abs(slopes.numpy() - terms.sum(1)) <= 1e-11 * np.abs(terms).sum(1)).all()
    back = fsum.fsum(t, x, w, _tau(tau), density, derivative=1, source_rest=rest)
    terms = w.numpy()[:, None] * _terms(density, u, 1, 0)
    assert (np.abs(back.numpy() - terms.sum(0)) <= 1e-11 * np.abs(terms).sum(0)).all()


@_DTYPES
@pytest.mark.parametrize("density", [*BUILT_IN, Student()], ids=[*BUILT_IN, "student"])
def test_counts_cut_rows_off(kernel, density, dtype):
    torch.manual_seed(0)
    sizes = torch.tensor([[0, 1, 9], [5, 3, 2]])
    x = torch.randn(2, 3, 9).sort().values.to(dtype)
    t, w = torch.randn(2, 3, 6).sort().values.to(dtype), torch.randn(2, 3, 9).to(dtype)
    tau, targets = torch.rand(2, 1).double() + 0.5, torch.tensor([[6], [3]])
    spoiled = torch.where(torch.arange(9) < sizes[..., None], x, math.nan)
    spoiled_w = torch.where(torch.arange(9) < sizes[..., None], w, math.inf)
    found = fsum.fsum(spoiled, t, spoiled_w, tau, density, source_count=sizes, target_count=targets)
    levels = torch.arange(9) + 0.25
    roots = fsum.invert(spoiled, levels, tau, density, count=sizes)
    for i, j in itertools.product(range(2), range(3)):
        m, n = sizes[i, j], targets[i, 0]
        alone = fsum.fsum(x[i, j, :m], t[i, j, :n], w[i, j, :m], tau[i, 0], density)
        torch.testing.assert_close(found[i, j, :n], alone)
        assert not found[i, j, n:].any()
        one = fsum.invert(x[i, j, :m], levels, tau[i, 0], density)
        torch.testing.assert_close(roots.centre[i, j] + roots.rest[i, j], one.centre + one.rest)


@pytest.mark.parametrize("density", BUILT_IN)
def test_empty(kernel, density):
    tau, none = _tau(1.0), torch.empty(3, 0)
    assert fsum.fsum(none, none, None, tau, density).shape == (3, 0)
    assert not fsum.fsum(none, torch.zeros(3, 2), None, tau, density).any()
    assert fsum.fsum(torch.zeros(3, 2), none, None, tau, density).shape == (3, 0)
    assert fsum.fsum(torch.empty(0, 4), torch.empty(0, 2), None, tau, density).shape == (0, 2)
    assert fsum.invert(torch.zeros(3, 2), none.double(), tau, density).centre.shape == (3, 0)
    assert fsum.invert(torch.empty(0, 2), torch.ones(5), tau, density).rest.shape == (0, 5)


@pytest.mark.parametrize("density", _LINEAR)
@given(
    rows=st.lists(st.lists(st.floats(-5, 5), min_size=4, max_size=4), min_size=1, max_size=3),
    temperature=st.floats(1e-6, 1e6),
)
def test_kernels_agree(density, rows, temperature):
    x = torch.tensor(rows, dtype=torch.float64).sort().values
    answers = []
    for kind in _native.KINDS:
        with _native.use(kind):
            ranks = fsum.fsum(x, x, None, _tau(temperature), density)
            roots = fsum.invert(x, torch.arange(4) + 0.5, _tau(temperature), density)
            answers.append((ranks, (roots.centre + roots.rest) / max(temperature, 1.0)))
    torch.testing.assert_close(*answers, rtol=1e-11, atol=1e-11)


_LONG = """
import torch
from softorder.kernels import fsum, _native
torch.set_num_threads({threads})
torch.manual_seed(0)
x = torch.randn(100_000, dtype=torch.float64).sort().values
t, w = torch.randn(50_000).double().sort().values, torch.rand(100_000).double()
for tau in (1e-6, 1e-2, 10.0) if {threads} > 1 else (1e-2,):
    tau, levels = torch.tensor(tau, dtype=torch.float64), torch.arange(100_000) + 0.5
    answers = []
    for kind in ("native", "torch"):
        with _native.use(kind):
            roots = fsum.invert(x, levels, tau, "laplace")
            answers.append((
                fsum.fsum(x, x, None, tau, "laplace"),
                fsum.fsum(x, t, w, tau, "laplace", derivative=2, moment=1),
                fsum.fsum(x, roots.centre, w, tau, "laplace", target_rest=roots.rest),
                roots.centre + roots.rest,
            ))
    torch.testing.assert_close(*answers, rtol=1e-9, atol=1e-9)
"""


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.slow
def test_long_rows_at_every_simd_level_and_number_of_threads(level, threads):
    run(_LONG.format(threads=threads), SOFTORDER_SIMD=level)


@pytest.mark.parametrize(
    "temperature",
    [1e-3, pytest.param(1e-9, marks=pytest.mark.slow), pytest.param(1e3, marks=pytest.mark.slow)],
)
def test_ten_million(temperature):
    n = 10**7
    x = torch.arange(n, dtype=torch.float64) / n
    with _native.use("native"):
        ranks = fsum.fsum(x, x, None, _tau(temperature), "laplace")
    places = torch.tensor([0, 1, n // 3, n // 2, n - 1])
    u = (x[places, None] - x) / temperature
    tail = 0.5 * torch.exp(-u.abs())
    expected = torch.where(u < 0, tail, 1 - tail).sum(1)
    torch.testing.assert_close(ranks[places], expected, rtol=1e-11, atol=0)


@pytest.mark.parametrize("density", _LINEAR)
def test_the_intended_kernel_runs(density):
    x = torch.randn(5).sort().values
    for kind, times in (("native", 1), ("torch", 0)):
        with _native.use(kind):
            for name, call in (
                ("fsum", lambda: fsum.fsum(x, x, None, _tau(1.0), density)),
                ("fsum_invert", lambda: fsum.invert(x, torch.ones(1), _tau(1.0), density)),
            ):
                before = _native.calls[name]
                call()
                assert _native.calls[name] - before == times


@pytest.mark.parametrize(("derivative", "moment"), [(4, 0), (0, 1), (1, 2), (1, -1)])
def test_orders_out_of_range(derivative, moment):
    x = torch.zeros(2)
    with pytest.raises(ValueError, match=f"moment = {moment} and derivative = {derivative}"):
        fsum.fsum(x, x, None, _tau(1.0), "laplace", derivative=derivative, moment=moment)


def test_vmap_and_compile(kernel):
    x, tau = torch.randn(3, 4, 5).sort().values, torch.rand(3).double() + 0.5
    levels = torch.arange(5) + 0.5

    def both(x, tau):
        roots = fsum.invert(x, levels, tau, "laplace")
        return fsum.fsum(x, roots.centre, x, tau, "laplace", target_rest=roots.rest, derivative=1)

    expected = both(x, tau[:, None])
    torch.testing.assert_close(torch.vmap(both)(x, tau), expected)
    compiled = torch.compile(both, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(x, tau[:, None]), expected)

"""The Triton kernels of the soft top-k, in Triton's interpreter."""

import math

import numpy as np
import pytest
import torch

import softorder as so
from softorder.kernels import _native, _triton, threshold
from tests import bank
from tests.laws.all_laws import EAGER
from tests.laws.registry import cases
from tests.oracles import bisection
from tests.oracles.densities import BUILT_IN
from tests.test_accuracy import _LONG

pytest.importorskip("triton", reason="Triton is not installed")

_DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
_DENSITIES = pytest.mark.parametrize("density", BUILT_IN)
_BOUND = {np.float64: 1e-12, np.float32: 2e-6}
_MOST_PASSES = 12


@pytest.fixture(autouse=True)
def _interpreted():
    """Triton serves, and a test whose kernels did not run fails."""
    before = sum(_triton.calls.values())
    with _native.use("triton"):
        yield
    assert sum(_triton.calls.values()) > before, "no Triton kernel ran"


# ---- against the oracle -------------------------------------------------------------------------


def _in_turn():
    """By default every density in one precision."""
    for place, density in enumerate(BUILT_IN):
        for turn, dtype in enumerate(_BOUND):
            marks = [] if (place + turn) % 2 else [pytest.mark.slow]
            yield pytest.param(density, dtype, marks=marks, id=f"{density}-{dtype.__name__}")


@pytest.mark.parametrize(("density", "dtype"), list(_in_turn()))
@pytest.mark.parametrize("n", [5, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 40))])
@pytest.mark.slow
def test_short_rows(density, dtype, n):
    _assert_solved(*bank.problems(bank.FAMILIES, n, dtype), density)


_SOME = [
    pytest.param(density, marks=[] if density in ("laplace", "normal") else [pytest.mark.slow])
    for density in BUILT_IN
]


@pytest.mark.parametrize("density", _SOME)
@pytest.mark.parametrize("n", [300, pytest.param(4096, marks=pytest.mark.slow)])
def test_rows_on_chip(density, n):
    rows = [_one(family, n, np.float32, k(n), temperature) for family, k, temperature in _LONG]
    labels, *problem = zip(*rows, strict=True)
    _assert_solved(labels, *(np.concatenate(parts) for parts in problem), density)


@pytest.mark.parametrize("density", _SOME)
def test_a_longer_row_is_streamed(density):
    family, k, temperature = _LONG[3 * BUILT_IN.index(density) % len(_LONG)]
    _assert_solved(*_one(family, 9000, np.float32, k(9000), temperature), density)


def _in_pieces():
    """By default an ordinary row, which three passes solve. The others they do not."""
    for density in BUILT_IN:
        for family in ("normal", "two_modes", "cauchy", "ties"):
            first = (density, family) == ("laplace", "normal")
            yield pytest.param(density, family, marks=[] if first else [pytest.mark.slow])


@pytest.mark.parametrize(("density", "family"), list(_in_pieces()))
def test_few_long_rows_are_split(density, family):
    before = _triton.calls["topk_sweep_pieces"]
    n = 40_000
    labels, scores, k, temperature = _one(family, n, np.float32, n / 100, 1.0)
    _assert_solved(labels, scores, k, temperature, density)
    assert _triton.calls["topk_sweep_pieces"] > before
    x, size, tau = (torch.from_numpy(v).requires_grad_() for v in (scores, k, temperature))
    upstream = torch.linspace(-1, 1, n)[None]
    found = torch.autograd.grad(
        so.soft_topk(x, size, method=density, temperature=tau), (x, size, tau), upstream
    )
    with _native.use("torch"):
        p = so.soft_topk(x.double(), size, method=density, temperature=tau)
        truth = torch.autograd.grad(p, (x, size, tau), upstream.double())
    # the numbers of a row are sums over all of its scores
    for one, other, rounding in zip(found, truth, (1e-6, 1e-4, 1e-4), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=rounding)


@pytest.mark.slow
@_DENSITIES
@_DTYPES
@pytest.mark.parametrize("n", [64, 65, 100, 1000])
def test_the_whole_bank(density, dtype, n):
    _assert_solved(*bank.problems(bank.FAMILIES, n, dtype), density)


@pytest.mark.slow
@_DENSITIES
@_DTYPES
@pytest.mark.parametrize("family", bank.FAMILIES)
def test_long_rows(density, dtype, family):
    problems = bank.problems([family], 10_000, dtype, temperatures=(1e-3, 1.0))
    _assert_solved(*problems, density)


def _one(family, n, dtype, k, temperature):
    label = (family, k, temperature)
    return [label], bank.row(family, n, dtype)[None], np.array([k]), np.array([temperature])


def _assert_solved(labels, scores, k, temperature, density):
    bound = _BOUND[scores.dtype.type]
    truth = bisection.soft_topk(scores, k, temperature, density).p
    x, size, tau = (torch.from_numpy(v) for v in (scores, k, temperature))
    p = so.soft_topk(x, size, method=density, temperature=tau).numpy()
    error = abs(p - truth).max(axis=1)
    assert error.max() <= bound, (error.max(), labels[error.argmax()])
    mass = abs(p.sum(axis=1, dtype=np.longdouble) - k) / np.maximum(k, 1)
    assert mass.max() <= bound, (mass.max(), labels[mass.argmax()])
    passes = threshold.solve(x, size, tau, density).sweeps.numpy()
    assert passes.max() <= _MOST_PASSES, (passes.max(), labels[passes.argmax()])
    assert passes[(k > 0) & (k < scores.shape[1])].min() > 0


@pytest.mark.parametrize("density", ["laplace", "logistic"])
@pytest.mark.parametrize("n", [64, 1000])
def test_a_bell_takes_four_passes(density, n):
    scores = torch.randn(40, n, generator=torch.Generator().manual_seed(n))
    temperature = torch.tensor([0.03, 0.1, 0.3, 1.0, 10.0] * 8, dtype=torch.float64)
    k = torch.tensor([1.0, n / 100, n / 10, n / 2] * 10, dtype=torch.float64)
    passes = threshold.solve(scores, k, temperature, density).sweeps
    assert passes.median() <= 4


# ---- special rows -------------------------------------------------------------------------------


@_DENSITIES
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("n", [6, 70, pytest.param(9000, marks=pytest.mark.slow)])
def test_rows_without_a_finite_threshold(density, dtype, n):
    """The table of threshold/contract.py."""
    inf, nan = math.inf, math.nan
    scores = torch.linspace(-1, 1, n, dtype=dtype).repeat(7, 1)
    scores[1, 0] = -inf
    scores[2, :2], scores[3, :3], scores[4, 1], scores[5] = inf, inf, nan, -inf
    k = torch.tensor([0, n - 1, 2, 1.5, 2, 2, n], dtype=torch.float64)
    tau = torch.full((7,), 0.7, dtype=torch.float64)
    b = threshold.solve(scores, k, tau, density)
    half = torch.tensor(0.5, dtype=dtype)
    shared = -0.7 * so.densities.BUILT_IN[density].anchored.quantile(half)
    centre = torch.tensor([inf, -inf, inf, inf, nan, -inf, -inf], dtype=dtype)
    torch.testing.assert_close(b.centre, centre, equal_nan=True, rtol=0, atol=0)
    torch.testing.assert_close(b.rest[:3], torch.tensor([inf, 0, -inf], dtype=dtype))
    torch.testing.assert_close(b.rest[3], shared.to(dtype), rtol=0, atol=1e-6)

    scores.requires_grad_()
    p = so.soft_topk(scores, k, method=density, temperature=tau)
    assert (p[0] == 0).all()
    assert (p[1, 1:] == 1).all()
    assert p[2].tolist() == [1, 1] + [0] * (n - 2)
    torch.testing.assert_close(p[3, :3], torch.full((3,), 0.5, dtype=dtype))
    assert p[4].isnan().all()
    assert (p[5] == 0).all()
    assert (p[6] == 1).all()
    (gradient,) = torch.autograd.grad(p.sum(), scores)
    assert (gradient[4] == 0).all()  # nothing passes a NaN
    assert (gradient[[0, 1, 2, 3, 5, 6]] == 0).all()


@_DENSITIES
def test_a_wide_gap_is_balanced(density):
    """Any b in the gap fits Σ p = k; one fits log p."""
    scores = torch.tensor([[5000.0, 4990.0, 10.0, 0.0, -5.0]], dtype=torch.float64)
    one = threshold.solve(scores, torch.tensor(2.0).double(), torch.tensor(1.0).double(), density)
    with _native.use("torch"):
        other = threshold.solve(scores, torch.tensor(2.0), torch.tensor(1.0).double(), density)
    b, expected = (t.centre + t.rest for t in (one, other))
    if density == "uniform":
        assert 10 < b < 4989
    else:
        torch.testing.assert_close(b, expected, rtol=1e-9, atol=0)


def test_masked_and_empty_rows():
    assert so.soft_topk(torch.empty(0, 5), 2).shape == (0, 5)
    scores = torch.randn(3, 9, generator=torch.Generator().manual_seed(1))
    mask = torch.arange(9) < 6
    p = so.soft_topk(scores, 2, mask=mask)
    torch.testing.assert_close(p[:, :6], so.soft_topk(scores[:, :6].contiguous(), 2))
    assert (p[:, 6:] == 0).all()


# ---- gradients ----------------------------------------------------------------------------------


@pytest.mark.one_of(3)
@_DENSITIES
@_DTYPES
@pytest.mark.parametrize("n", [7, pytest.param(300, marks=pytest.mark.slow)])
def test_gradients(density, dtype, n):
    """Against plain torch in float64, of scores, k and temperature."""
    families = ("normal", "exponential", "two_modes", "shifted")
    labels, *problem = bank.problems(families, n, dtype, temperatures=(0.1, 1.0, 100.0))
    upstream = torch.from_numpy(np.random.default_rng(n).standard_normal(problem[0].shape))
    found = _gradients(density, upstream.to(torch.from_numpy(problem[0]).dtype), *problem)
    with _native.use("torch"):
        truth = _gradients(density, upstream, *(v.astype(np.float64) for v in problem))
    unit = torch.from_numpy(1 / problem[2])
    for one, other, scale in zip(found, truth, (unit[:, None], 1, unit), strict=True):
        error = ((one - other).abs() / scale).reshape(len(labels), -1).amax(1)
        if density == "uniform":  # a score may fall on a corner of its CDF in one of the two
            error = error.sort().values[: int(0.95 * len(error))]
        assert error.max() <= (1e-10 if dtype is np.float64 else 1e-4), labels[error.argmax()]


def _gradients(density, upstream, *inputs):
    inputs = [torch.from_numpy(v).requires_grad_() for v in inputs]
    p = so.soft_topk(inputs[0], inputs[1], method=density, temperature=inputs[2])
    return torch.autograd.grad(p, inputs, upstream)


@pytest.mark.parametrize("by_temperature", [False, True])
@pytest.mark.parametrize("n", [7, 70, pytest.param(9000, marks=pytest.mark.slow)])
def test_an_upstream_of_one_entry(n, by_temperature):
    rng = np.random.default_rng(5)
    scores = torch.from_numpy(rng.normal(size=(4, n)))
    scores[2, 1] = torch.nan
    k = torch.tensor([1.0, 2.5, 3.0, n], dtype=torch.float64)
    temperature = torch.tensor([0.1, 1.0, 10.0, 1.0], dtype=torch.float64)
    index, weight = torch.tensor([0, 1, 2, n - 1]), torch.from_numpy(rng.normal(size=4))
    b = threshold.solve(scores, k, temperature, "logistic").b
    upstream = torch.zeros_like(scores).scatter_(-1, index[:, None], weight[:, None])
    rest, choices = (scores, temperature, b), (BUILT_IN.index("logistic"), by_temperature)
    dense = threshold.backward(upstream, *rest, None, *choices)
    sparse = threshold.backward_of_one(weight, index, *rest, *choices)
    for one, other in zip(sparse, dense, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-13, atol=1e-13, equal_nan=True)


@pytest.mark.slow
def test_both_orders_by_finite_differences():
    scores = torch.randn(2, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    k, tau = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (1.5, 0.8))

    def topk(x, k, tau):
        return so.soft_topk(x, k, method="logistic", temperature=tau)

    inputs = (scores.requires_grad_(), k, tau)
    assert torch.autograd.gradcheck(topk, inputs, fast_mode=True)
    assert torch.autograd.gradgradcheck(topk, inputs, fast_mode=True)


# ---- the operators ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("n", [20, 9000])
def test_half_precision_is_read_and_written(dtype, n):
    """By the kernels themselves."""
    from softorder.kernels.threshold import triton as kernels

    scores = torch.randn(3, n, generator=torch.Generator().manual_seed(0)).to(dtype)
    k, tau = torch.tensor(3.0).double(), torch.tensor(0.5).double()
    p, b = kernels.forward(scores, k, tau, None, 0)
    assert p.dtype == dtype
    assert b.dtype == torch.float32
    exact, _ = kernels.forward(scores.float(), k, tau, None, 0)
    rounding = {"rtol": torch.finfo(dtype).eps, "atol": 1e-7}  # the interpreter may round down
    torch.testing.assert_close(p, exact.to(dtype), **rounding)
    upstream = torch.randn(3, n, generator=torch.Generator().manual_seed(1)).to(dtype)
    found, _ = kernels.backward(upstream, scores, tau, b, None, 0, False)
    wanted, _ = kernels.backward(upstream.float(), scores.float(), tau, b, None, 0, False)
    torch.testing.assert_close(found, wanted.to(dtype), **rounding)


def test_the_operators_agree_with_their_fakes():
    scores = torch.randn(3, 20, generator=torch.Generator().manual_seed(0))
    k, tau = torch.tensor(3.0).double(), torch.tensor(0.5).double()
    forward, solve = torch.ops.softorder.soft_topk_forward, torch.ops.softorder.threshold
    torch.library.opcheck(forward, (scores, k, tau, None, 0), test_utils="test_faketensor")
    torch.library.opcheck(solve, (scores, k, tau, 0), test_utils="test_faketensor")
    b = threshold.solve(scores, k, tau, "laplace").b
    arguments = (torch.ones_like(scores), scores, tau, b, None, 0, True)
    backward = torch.ops.softorder.soft_topk_backward
    torch.library.opcheck(backward, arguments, test_utils="test_faketensor")


@pytest.mark.parametrize(
    "change", [lambda x: x.mT, lambda x: x[:, ::2], lambda x: x.expand(2, 5, 6)]
)
def test_strides(change):
    scores = change(torch.randn(5, 6, generator=torch.Generator().manual_seed(2)))
    dense = scores.clone(memory_format=torch.contiguous_format)
    torch.testing.assert_close(so.soft_topk(scores, 2), so.soft_topk(dense, 2))


# ---- the laws -----------------------------------------------------------------------------------


def _laws():
    """By default every eighth law meets the density whose steps are the quickest here.

    Two laws are about no scores at all, for which nothing is launched.
    """
    for number, law in enumerate(EAGER):
        for case in cases():
            concerned = case.name in BUILT_IN and "topk" in case.operator and law.binds(case)
            if concerned and "empty" not in str(law):
                turn = number % 8 == 2 and str(case) == "soft_topk-laplace"
                yield pytest.param(law, case, marks=[] if turn else [pytest.mark.slow])


@pytest.mark.parametrize(("law", "case"), list(_laws()), ids=str)
@pytest.mark.slow
def test_law(law, case):
    law.hold(case.call, examples=min(law.examples, 4))

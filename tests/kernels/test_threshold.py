"""The solver: few passes over a row, and both kernels find the same threshold."""

import numpy as np
import pytest
import torch

import softorder as so
from softorder.kernels import _native, threshold
from tests import bank
from tests.oracles.densities import BUILT_IN

_DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])


# Partial passes over lists, the look at the row before the first guess, and selection count too.
_MOST = 12


@pytest.mark.one_of(3)
@pytest.mark.parametrize("density", BUILT_IN)
@_DTYPES
@pytest.mark.parametrize("n", [1, 2, 3, 5, 10, 17, 40, 64, 100, 1000, 10_000])
def test_passes(kernel, density, dtype, n):
    labels, *arguments = bank.problems(bank.FAMILIES, n, dtype)
    scores, k, temperature = (torch.from_numpy(v) for v in arguments)
    sweeps = threshold.solve(scores, k, temperature, density).sweeps
    worst = sweeps.argmax()
    assert sweeps[worst] <= _MOST, (sweeps[worst].item(), labels[worst])
    assert sweeps[worst] > 0, "the passes were not counted"


def _in_turn():
    """Every density and family; by default every family with one density, and every density."""
    for i, family in enumerate(bank.FAMILIES):
        for j, density in enumerate(BUILT_IN):
            turn = i % len(BUILT_IN) == j
            yield pytest.param(density, family, marks=[] if turn else [pytest.mark.slow])


@pytest.mark.one_of(3)
@_DTYPES
@pytest.mark.parametrize(("density", "family"), list(_in_turn()))
def test_passes_over_a_million(kernel, density, dtype, family):
    row = torch.from_numpy(bank.row(family, 10**6, dtype))[None]
    for k, temperature in ((1.0, 1e-6), (10**6 / 2, 1e-3), (10**6 / 100, 1.0)):
        arguments = (torch.tensor([v], dtype=torch.float64) for v in (k, temperature))
        sweeps = threshold.solve(row, *arguments, density).sweeps.item()
        assert sweeps <= _MOST, (sweeps, k, temperature)


@pytest.mark.parametrize("density", BUILT_IN)
@_DTYPES
@pytest.mark.parametrize("n", [3, 40, 3000])
def test_native_agrees_with_torch(density, dtype, n):
    labels, *arguments = bank.problems(bank.FAMILIES, n, dtype)
    scores, k, temperature = (torch.from_numpy(v) for v in arguments)
    answers = []
    for kernel in ("native", "torch"):
        with _native.use(kernel):
            answers.append(so.soft_topk(scores, k, method=density, temperature=temperature))
    error = (answers[0] - answers[1]).abs().amax(-1)
    assert error.max() <= (2e-12 if dtype is np.float64 else 2e-6), labels[error.argmax()]


@pytest.mark.one_of(3)
@pytest.mark.parametrize("density", BUILT_IN)
@_DTYPES
def test_a_row_alone_is_solved_as_well(kernel, density, dtype):
    labels, *arguments = bank.problems(bank.FAMILIES, 60, dtype)
    scores, k, temperature = (torch.from_numpy(v) for v in arguments)
    together = so.soft_topk(scores, k, method=density, temperature=temperature)
    for i, label in enumerate(labels):
        row = slice(i, i + 1)
        b = threshold.solve(scores[row], k[row], temperature[row], density)
        assert b.sweeps.item() <= _MOST, label
        alone = so.soft_topk(scores[i], k[i], method=density, temperature=temperature[i])
        error = (alone - together[i]).abs().max()
        assert error <= (2e-12 if dtype is np.float64 else 2e-6), label


@pytest.mark.parametrize("density", ["logistic", "normal", "cauchy"])
@pytest.mark.parametrize("n", [1000, 1003])
def test_shifted_tails_keep_their_digits(density, n):
    """The last step shifts p, which must not cost the smallest ones their relative accuracy."""
    scores = torch.randn(40, n, generator=torch.Generator().manual_seed(n))
    scores[:, :60] = torch.linspace(-12, 9, 60)
    scores[:, 60] = -torch.inf
    k, temperature = torch.full((40,), 100.0).double(), torch.ones(40, dtype=torch.float64)
    with _native.use("native"):
        b = threshold.solve(scores, k, temperature, density).b.double()
        p = so.soft_topk(scores, 100, method=density, temperature=1.0).double()
    u = (scores.double() - b[0, :, None]) - b[1, :, None]
    exact = {
        "logistic": torch.sigmoid(u),
        "normal": torch.special.erfc(-u / 2**0.5) / 2,
        "cauchy": torch.atan2(torch.ones_like(u), -u) / torch.pi,
    }[density]
    assert (p[:, 60] == 0).all()
    # normal's tail shows how u was rounded
    allowed = 3e-6 * (1 + u.clamp(-20, 20).abs()) * exact
    assert ((p - exact).abs() <= allowed + 1e-37).all()


@_DTYPES
@pytest.mark.parametrize("n", [8, 100, 1000])
def test_certain_scores_stay_certain(kernel, dtype, n):
    """The last step of a logistic row shifts odds, and those of p = 1 are infinite."""
    row = np.random.default_rng(3).normal(size=n).astype(dtype)
    row[:2] = np.inf
    for k in np.linspace(2.1, n / 2, 20):
        p = so.soft_topk(torch.from_numpy(row), k, method="logistic", temperature=0.5)
        assert (p[:2] == 1).all(), k
        assert (p <= 1).all(), k


@pytest.mark.parametrize("density", BUILT_IN)
@_DTYPES
@pytest.mark.parametrize("n", [7, 40, 3000])
@pytest.mark.parametrize("by_temperature", [False, True])
def test_an_upstream_of_one_entry(kernel, density, dtype, n, by_temperature):
    """One number per row does what a row with zeros around it does; NaN and flat rows included."""
    rng = np.random.default_rng(5)
    scores = torch.from_numpy(rng.normal(size=(6, n)).astype(dtype))
    scores[3, 1], scores[4] = torch.nan, 0.0
    k = torch.tensor([1.0, 2.5, n / 2, 1.0, 3.0, n], dtype=torch.float64)
    temperature = torch.tensor([0.1, 1.0, 10.0, 1.0, 1.0, 1.0], dtype=torch.float64)
    number, index = list(BUILT_IN).index(density), torch.tensor([0, 1, 2, 3, 4, 5])
    weight = torch.from_numpy(rng.normal(size=6).astype(dtype))
    b = threshold.solve(scores, k, temperature, density).b
    upstream = torch.zeros_like(scores).scatter_(-1, index[:, None], weight[:, None])
    rest, choices = (scores, temperature, b), (number, by_temperature)
    dense = threshold.backward(upstream, *rest, None, *choices)
    sparse = threshold.backward_of_one(weight, index, *rest, *choices)
    tolerance = 1e-13 if dtype is np.float64 else 1e-5
    for one, other in zip(sparse, dense, strict=True):
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.mark.parametrize("density", BUILT_IN)
@pytest.mark.parametrize("rows", [1, 6])
def test_a_k_next_to_a_whole_number_above_a_wide_gap(kernel, density, rows):
    """As sums of float32 are: float32 does not tell such a k from the whole number."""
    row = torch.tensor([-39.8, 114.6, -85.0, -8.9, 3.7, -128.6, -31.3, 83.5, -13.1, -72.2, 127.8])
    for k in (3 - 1e-7, 3 - 7e-9, 3 + 7e-9, 3 + 1e-7, 11 - 7e-9):
        p = so.soft_topk(row.expand(rows, 11), k, method=density, temperature=0.7)
        torch.testing.assert_close(p.sum(-1), torch.full((rows,), float(k)), rtol=1e-6, atol=0)


@pytest.mark.parametrize("level", _native.LEVELS)
@pytest.mark.parametrize("density", BUILT_IN)
@_DTYPES
@pytest.mark.parametrize("special", ["none", "mask", "far", "nan", "inf"])
def test_rows_go_back_together_as_alone(level, density, dtype, special):
    """Rows of whole packs are summed as one stretch of memory, unless one of a group is special."""
    if level not in _native.usable_levels():
        pytest.skip("not on this machine")
    generator = torch.Generator().manual_seed(7)
    scores, upstream = torch.randn(2, 37, 64, generator=generator, dtype=torch.float64)
    mask = torch.rand(37, 64, generator=generator) > 0.2 if special == "mask" else None
    dtype = torch.from_numpy(np.zeros(0, dtype)).dtype
    scores, upstream = scores.to(dtype), upstream.to(dtype)
    if special == "far":
        scores[19] = torch.finfo(dtype).max * (1 + scores[19].clamp(-1, 1) / 8) / 2
    elif special != "none":
        scores[19, 5] = {"nan": torch.nan, "inf": torch.inf, "mask": -torch.inf}[special]

    def gradient(rows):
        x = scores[rows].clone().requires_grad_()
        p = so.soft_topk(
            x, 6, method=density, temperature=0.4, mask=None if mask is None else mask[rows]
        )
        return torch.autograd.grad(p, x, upstream[rows])[0]

    with _native.use_level(level):
        together = gradient(slice(None))
        alone = torch.cat([gradient(slice(i, i + 1)) for i in range(37)])
    assert together.abs().amax(-1).gt(0).sum() > 30, "there is nothing to compare"
    error = (together - alone).abs().amax(-1, keepdim=True)
    assert (error <= 8 * torch.finfo(dtype).eps * alone.abs().amax(-1, keepdim=True)).all()

"""soft_quantile as torch's: interpolation, staying inside, weights, and rows of any length."""

import math

import numpy as np
import pytest
import torch

import softorder as so
from softorder.kernels.shards import WHOLE
from softorder.ops import _cut
from tests.oracles import ordering

_TORCHS = ("linear", "lower", "higher", "nearest", "midpoint")
_Q = torch.tensor([0.0, 0.1, 0.25, 0.5, 0.77, 0.9, 1.0], dtype=torch.float64)
_COLD = 1e-7


def _slow(method):
    return pytest.param(method, marks=pytest.mark.slow)


def _scores(*shape):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("interpolation", _TORCHS)
def test_cold_ones_are_torchs(interpolation):
    for n in (1, 2, 5, 10, 11):
        x = _scores(3, n)
        expected = torch.quantile(x, _Q, dim=-1, interpolation=interpolation)
        hard = so.hard.quantile(x, _Q, interpolation=interpolation)
        torch.testing.assert_close(hard, expected, rtol=0, atol=1e-14)
        for within in (False, True):
            options = {"interpolation": interpolation, "within": within, "temperature": _COLD}
            many = so.soft_quantile(x, _Q, **options)  # sorted
            torch.testing.assert_close(many, expected, rtol=0, atol=1e-5)
            few = so.soft_quantile(x, _Q[2:4], **options)  # by thresholds
            torch.testing.assert_close(few, expected[2:4], rtol=0, atol=1e-5)


@pytest.mark.parametrize("method", ["laplace", "uniform"])
def test_they_are_made_of_the_sorted_values(method):
    x, options = _scores(2, 10), {"method": method, "temperature": 0.3}
    for within in (False, True):
        s = so.soft_sort(x, within=within, **options)
        for interpolation, low in (("lower", 3), ("higher", 4), ("nearest", 4)):
            found = so.soft_quantile(x, 0.4, interpolation=interpolation, within=within, **options)
            torch.testing.assert_close(found, s[:, low])
    s = so.soft_sort(x, **options)
    linear = so.soft_quantile(x, 0.4, interpolation="linear", **options)
    torch.testing.assert_close(linear, s[:, 3] + 0.6 * (s[:, 4] - s[:, 3]))


@pytest.mark.parametrize(
    "method", ["laplace", "uniform", *map(_slow, ("logistic", "normal", "cauchy"))]
)
def test_a_few_without_a_sort_are_as_many_with_one(kernel, method):
    x = _scores(2, 3, 40)
    x[0, 0, 5] = math.inf
    mask = torch.rand(2, 3, 40, generator=torch.Generator().manual_seed(1)) < 0.8
    for temperature in (1e-3, 0.3, 20.0):
        options = {"method": method, "temperature": temperature, "mask": mask}
        many = so.soft_quantile(x, _Q, **options)
        few = torch.cat([so.soft_quantile(x, q, **options) for q in (_Q[:3], _Q[3:])])
        torch.testing.assert_close(few, many, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("method", ["laplace", _slow("uniform"), _slow("cauchy")])
@pytest.mark.parametrize("form", ["linear", "within", "weights"])
def test_derivatives(method, form):
    x, q = _scores(1, 4).requires_grad_(), torch.tensor([0.3, 0.85], dtype=torch.float64)
    temperature = torch.tensor([0.6], dtype=torch.float64, requires_grad=True)
    inputs = [x, q.requires_grad_(), temperature]
    if form == "weights":
        inputs.append(torch.tensor([0.5, 1, 2, 1.5], dtype=torch.float64, requires_grad=True))

    def function(x, q, temperature, weights=None):
        options = {"method": method, "temperature": temperature, "weights": weights}
        if form != "weights":
            options |= {"interpolation": "linear", "within": form == "within"}
        return so.soft_quantile(x, q, **options)

    assert torch.autograd.gradcheck(function, inputs, check_forward_ad=True, fast_mode=True)
    assert torch.autograd.gradgradcheck(function, inputs, fast_mode=True)


def test_finite_at_the_ends():
    x = _scores(3, 6).requires_grad_()
    for within in (False, True):
        options = {"interpolation": "linear", "within": within, "temperature": 0.5}
        ends = so.soft_quantile(x, [0.0, 1.0], **options)
        ordered = so.soft_sort(x, within=within, temperature=0.5)
        torch.testing.assert_close(ends, ordered[:, [0, -1]].T)
        (gradient,) = torch.autograd.grad(ends.sum(), x)
        assert (gradient != 0).all()


@pytest.mark.parametrize("method", ["laplace", "logistic", "normal", "cauchy", "uniform"])
def test_within_stays_inside_and_errs_no_more_than_it_says(method):
    spread = {"laplace": 1, "logistic": 2 * math.log(2), "uniform": 0.25}
    spread |= {"normal": math.sqrt(2 / math.pi), "cauchy": math.inf}
    x = torch.cat([_scores(50), torch.full((50,), 0.7, dtype=torch.float64)])
    hard = x.sort().values
    for temperature in (1e-3, 0.1, 1.0, 30.0):
        found = so.soft_sort(x, within=True, method=method, temperature=temperature)
        assert x.min() <= found.min()
        assert found.max() <= x.max()
        torch.testing.assert_close(found.sum(), x.sum(), rtol=0, atol=1e-9)
        assert found.var() <= x.var() + 1e-12
        assert (found - hard).abs().mean() <= 2 * temperature * spread[method]
        if method != "cauchy":
            assert (found.diff() >= -1e-12).all()
    assert so.soft_sort(torch.full((1000,), 0.1), within=True).unique().tolist() == [
        torch.tensor(0.1).item()
    ]


def test_weights_are_repetitions(kernel):
    x, counts = _scores(6), torch.tensor([1, 3, 0, 2, 5, 1])
    repeated = torch.repeat_interleave(x, counts)
    for method in ("laplace", "normal", "uniform"):
        for temperature in (1e-6, 0.1, 5.0):
            slack = 0.5 * temperature if temperature < 0.1 else 0.0  # where levels are plateaus
            options = {"method": method, "temperature": temperature}
            found = so.soft_quantile(x, [0.1, 0.25, 0.5, 0.9], weights=counts, **options)
            expected = so.soft_quantile(repeated, [0.1, 0.25, 0.5, 0.9], **options)
            torch.testing.assert_close(found, expected, rtol=0, atol=1e-9 + slack)
    hard = so.hard.quantile(x, _Q, weights=counts)
    torch.testing.assert_close(hard, so.hard.quantile(repeated, _Q))


def test_weights_by_bisection():
    x, w = _scores(2, 7), torch.rand(2, 7, generator=torch.Generator().manual_seed(2)).double()
    found = so.soft_quantile(x, 0.3, weights=w, temperature=0.4)
    for row in range(2):
        low, high = -50.0, 50.0
        for _ in range(200):
            middle = (low + high) / 2
            share = [
                ordering.fsum(x[row, i : i + 1], [middle], 0.4, "laplace")[0] for i in range(7)
            ]
            below = float(np.dot(share, w[row].numpy())) < 0.3 * w[row].sum().item()
            low, high = (middle, high) if below else (low, middle)
        np.testing.assert_allclose(found[row].item(), low, rtol=0, atol=1e-12)


def test_weights_along_axes_with_masks_and_zeros():
    x, w = _scores(3, 4), torch.tensor([1.0, 2.0, 0.0, 1.0])
    mask = torch.ones(3, 4, dtype=torch.bool)
    mask[1] = False
    options = {"weights": w, "temperature": 0.2}
    both = so.soft_quantile(x, 0.5, dim=(0, 1), mask=mask, **options)
    rows = x[[0, 2]].flatten()
    again = so.soft_quantile(rows, 0.5, weights=w.repeat(2), temperature=0.2)
    torch.testing.assert_close(both, again)
    found = so.soft_quantile(x, [0.0, 0.5, 1.0], mask=mask, **options)
    assert found[:, 1].isnan().all()
    assert found[0, 0] == -math.inf
    assert found[2, 2] == math.inf
    nothing = so.soft_quantile(x, 0.5, weights=torch.zeros(4))
    assert nothing.isnan().all()
    assert so.hard.quantile(x, 0.5, weights=torch.zeros(4)).isnan().all()


def test_a_weighted_plateau_moves_with_its_neighbours():
    x = torch.tensor([0.0, 1.0, 4.0, 9.0], dtype=torch.float64, requires_grad=True)
    w = torch.tensor([1.0, 2.0, 2.0, 1.0])
    for method in ("laplace", "normal", "uniform"):
        t = so.soft_quantile(x, 0.5, weights=w, temperature=1e-3, method=method)
        torch.testing.assert_close(t.item(), 2.5, rtol=0, atol=1e-9)
        (gradient,) = torch.autograd.grad(t, x)
        expected = torch.tensor([0.0, 0.5, 0.5, 0.0], dtype=torch.float64)
        torch.testing.assert_close(gradient, expected, rtol=0, atol=1e-6)


@pytest.mark.slow
def test_twenty_million():
    x = torch.randn(20_000_000, generator=torch.Generator().manual_seed(0), requires_grad=True)
    with pytest.raises(RuntimeError, match="too large"):
        torch.quantile(x, 0.9)
    t = so.soft_quantile(x, 0.9, temperature=0.01, interpolation="linear")
    torch.testing.assert_close(t.item(), 1.2816, rtol=0, atol=2e-3)
    (gradient,) = torch.autograd.grad(t, x)
    torch.testing.assert_close(gradient.double().sum().item(), 1.0, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"interpolation": "liner"}, ValueError, r"interpolation must be one of.*mean 'linear'"),
        ({"within": True}, ValueError, r"within must be False with interpolation 'inverse'"),
        ({"within": 1}, TypeError, r"within must be True or False, but got int"),
        ({"weights": torch.tensor([-1.0])}, ValueError, r"weights must be finite and >= 0.*-1"),
        ({"weights": torch.ones(2)}, ValueError, r"weights must broadcast to the shape of scores"),
        ({"weights": [1, 2, 3]}, TypeError, r"weights must be a tensor or None, but got list"),
        (
            {"weights": torch.ones(3), "interpolation": "lower"},
            ValueError,
            r"weights must be None with interpolation 'lower'",
        ),
        ({"q": [0.5, "half"]}, TypeError, r"q must be a number, a list of them or a tensor"),
        ({"q": [0.5, 1.5]}, ValueError, r"q must be between 0 and 1, but got 1.5"),
    ],
)
def test_wrong_calls(options, error, message):
    arguments = {"q": 0.5, **options}
    with pytest.raises(error, match=message):
        so.soft_quantile(torch.randn(3), **arguments)


def test_rows_that_are_cut_among_ranks_have_one_kind_of_quantile():
    options = {"method": "laplace", "temperature": 1.0, "dim": -1, "mask": None, "shards": WHOLE}
    with pytest.raises(TypeError, match=r"must be 'inverse'.*got interpolation 'lower'"):
        _cut.quantile(_scores(3), 0.5, interpolation="lower", **options)
    with pytest.raises(TypeError, match=r"weights None.*but got weights"):
        _cut.quantile(_scores(3), 0.5, weights=torch.ones(3), **options)
    with pytest.raises(TypeError, match=r"within must be False.*but got True"):
        _cut.order("soft_sort", _scores(3), descending=False, within=True, **options)

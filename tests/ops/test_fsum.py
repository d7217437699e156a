"""fsum and fsum_inverse: against direct sums and bisection, in every argument."""

import math

import mpmath
import numpy as np
import pytest
import torch

import softorder as so
from tests.oracles import ordering
from tests.oracles.densities import BUILT_IN, DENSITIES
from tests.user_density import Student

_BOTH = pytest.mark.parametrize("operator", [so.fsum, so.fsum_inverse], ids=["fsum", "inverse"])
_METHODS = {**{name: name for name in BUILT_IN}, "student": Student()}
_DENSITIES = pytest.mark.parametrize("density", _METHODS)


def _random(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def _at(operator, *shape, n, seed=1):
    """Points, or levels of n scores."""
    at = _random(*shape, seed=seed)
    return 2 * at if operator is so.fsum else n * torch.sigmoid(at)


# ---- values --------------------------------------------------------------------------------------


@_DENSITIES
@pytest.mark.parametrize("temperature", [1e-3, 0.3, 20.0])
def test_sums_are_direct_sums(kernel, density, temperature):
    x, points = _random(4, 50), 3 * _random(30, seed=1)
    found = so.fsum(x, points, method=_METHODS[density], temperature=temperature)
    expected = [ordering.fsum(row, points, temperature, density) for row in x.numpy()]
    np.testing.assert_allclose(found, np.stack(expected), rtol=0, atol=1e-13 * 50)


@pytest.mark.parametrize("density", ["laplace", "logistic", "normal", "cauchy"])
def test_small_sums_are_small_to_the_last_digits(kernel, density):
    """Below all scores, where FSum is a sum of tails."""
    x, points = [0.3, 1.7, 2.0], [-2.0, -9.0, -30.0]
    found = so.fsum(*(torch.tensor(v, dtype=torch.float64) for v in (x, points)), method=density)
    with mpmath.workdps(50):
        tail = DENSITIES[density].exact_tail
        expected = [float(sum(tail(mpmath.mpf(v) - t) for v in x)) for t in points]
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@_DENSITIES
@pytest.mark.parametrize("temperature", [0.05, 1.0, 20.0])
def test_inverses_are_found_by_bisection(kernel, density, temperature):
    x, levels = _random(4, 20), torch.tensor([13.3, 0.01, 19.97, 7.5], dtype=torch.float64)
    found = so.fsum_inverse(x, levels, method=_METHODS[density], temperature=temperature)
    high, low = ordering.inverse(x.numpy(), levels.numpy(), np.full(4, temperature), density)
    # the level has 20·ε of rounding, and moves the root by τ/f of that
    slope = [
        (
            ordering.fsum(r, t + 1e-6, temperature, density)
            - ordering.fsum(r, t, temperature, density)
        )
        for r, t in zip(x.numpy(), high, strict=True)
    ]
    unit = 20 * 2.3e-16 / (np.stack(slope) / 1e-6) + 1e-14
    assert (abs(found.numpy() - (high + low)) <= 20 * unit).all()


@pytest.mark.parametrize("density", BUILT_IN)
def test_quantiles_and_sorts_are_inverses(density):
    x, options = _random(3, 8), {"method": density, "temperature": 0.4}
    q = torch.tensor([0.9, 0.2], dtype=torch.float64)
    assert torch.equal(so.fsum_inverse(x, 8 * q, **options), so.soft_quantile(x, q, **options).T)
    places = torch.arange(8) + 0.5
    torch.testing.assert_close(so.fsum_inverse(x, places, **options), so.soft_sort(x, **options))


def test_a_million_points_among_a_million_scores(kernel):
    """In O(n + m): a table of all pairs would have 8 TB."""
    x, points = _random(10**6), 2 * _random(10**6, seed=1)
    found = so.fsum(x, points, temperature=1e-3)
    some = [0, 77, 999_999]
    expected = ordering.fsum(x.numpy(), points[some].numpy(), 1e-3, "laplace")
    np.testing.assert_allclose(found[some], expected, rtol=0, atol=1e-9)
    back = so.fsum_inverse(x, found[some], temperature=1e-3)
    torch.testing.assert_close(back, points[some], rtol=0, atol=1e-9)


# ---- derivatives ---------------------------------------------------------------------------------


@_BOTH
@pytest.mark.parametrize(
    "density",
    ["laplace", "uniform", "normal"]
    + [pytest.param(name, marks=pytest.mark.slow) for name in ("logistic", "cauchy", "student")],
)
@pytest.mark.slow
def test_derivatives_in_scores_points_and_temperature(kernel, operator, density):
    x, at = _random(2, 4), _at(operator, 2, 2, n=4)
    leaves = [v.requires_grad_() for v in (x, at, torch.tensor(0.7, dtype=torch.float64))]

    def function(x, at, temperature):
        return operator(x, at, method=_METHODS[density], temperature=temperature)

    options = {"check_forward_ad": True, "check_batched_grad": True}
    assert torch.autograd.gradcheck(function, leaves, **options)
    assert torch.autograd.gradgradcheck(function, leaves, check_fwd_over_rev=True)


@_BOTH
@pytest.mark.parametrize("density", ["laplace", "normal"])
def test_second_derivatives_in_torch_func(operator, density):
    x, at = _random(5), _at(operator, 3, n=5)

    def loss(at):
        return operator(x, at, method=density, temperature=0.7).square().sum()

    hessian = torch.func.hessian(loss)(at)
    torch.testing.assert_close(hessian, torch.func.jacrev(torch.func.jacrev(loss))(at))
    assert torch.equal(hessian, torch.diag(hessian.diag()))  # no point knows of another


@_BOTH
def test_vmap_takes_scores_or_points_alone(operator):
    x, at = _random(4, 5), _at(operator, 4, 3, n=5)
    together = operator(x, at)
    torch.testing.assert_close(torch.vmap(operator)(x, at), together)
    over_points = torch.vmap(lambda at: operator(x[0], at))(at)
    torch.testing.assert_close(over_points, operator(x[:1].expand(4, -1), at))
    over_scores = torch.vmap(lambda x: operator(x, at[0]))(x)
    torch.testing.assert_close(over_scores, operator(x, at[0]))


@_BOTH
@pytest.mark.parametrize("density", ["laplace", "logistic"])
@pytest.mark.slow
def test_compiles_with_points_that_learn(operator, density):
    x, at = _random(2, 5), _at(operator, 2, 3, n=5)

    def loss(x, at):
        result = operator(x, at, method=density, temperature=0.7)
        return (result * result.detach().cumsum(-1)).sum()

    torch.compiler.reset()
    gradients = []
    for function in (loss, torch.compile(loss, fullgraph=True, backend="aot_eager")):
        leaves = [v.clone().requires_grad_() for v in (x, at)]
        gradients.append(torch.autograd.grad(function(*leaves), leaves))
    torch.testing.assert_close(*gradients)


@_BOTH
def test_the_ends_take_no_gradient(operator):
    x = torch.tensor([0.0, 1.0, -math.inf, math.inf], dtype=torch.float64, requires_grad=True)
    ends = [-math.inf, math.inf, math.nan] if operator is so.fsum else [0.0, 2.0, 4.0]
    at = torch.tensor(ends, dtype=torch.float64, requires_grad=True)
    result = operator(x, at)
    for gradient in torch.autograd.grad(result.nan_to_num().sum(), (x, at)):
        assert (gradient == 0).all()


@_BOTH
@pytest.mark.parametrize("method", BUILT_IN)
def test_the_graph_keeps_no_table(kernel, operator, method):
    n = m = 400
    sizes = {}

    def pack(tensor):
        sizes[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    x, at = _random(n).requires_grad_(), _at(operator, m, n=n).requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        operator(x, at, method=method)
    assert sizes
    assert sum(sizes.values()) <= 200 * (n + m)


# ---- shapes and dtypes ---------------------------------------------------------------------------


@_BOTH
@pytest.mark.parametrize("dim", [0, 1, 2, -1, -2, -3])
def test_points_take_the_place_of_scores(operator, dim):
    block, at = _random(2, 3, 5), _at(operator, 2, 3, 4, n=5)
    temperature = torch.tensor([0.3, 0.5, 0.7])
    expected = operator(block, at, temperature=temperature)
    x, moved = (v.movedim(-1, dim).contiguous() for v in (block, at))
    found = operator(x, moved, dim=dim, temperature=temperature)
    assert found.shape == moved.shape
    torch.testing.assert_close(found.movedim(dim, -1), expected)
    shared = operator(x, at[0, 0], dim=dim)
    torch.testing.assert_close(shared.movedim(dim, -1), operator(block, at[0, 0]))


@_BOTH
def test_points_broadcast_over_rows(operator):
    block = _random(2, 3, 5)
    for shape in ((3, 4), (1, 4), (2, 1, 4), (1, 1, 4)):
        at = _at(operator, *shape, n=5)
        expected = operator(block, at.expand(2, 3, 4))
        torch.testing.assert_close(operator(block, at), expected)


@_BOTH
def test_no_scores_no_points_no_rows(operator):
    none = torch.zeros(2, 0, requires_grad=True)
    result = operator(none, torch.zeros(3))
    assert result.requires_grad
    assert (result == 0).all() if operator is so.fsum else result.isnan().all()
    assert operator(_random(2, 5), torch.zeros(0)).shape == (2, 0)
    assert operator(_random(0, 5), torch.zeros(3)).shape == (0, 3)


@_BOTH
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_the_result_has_the_dtype_of_the_scores(operator, dtype):
    x, at = _random(3, 5).to(dtype), _at(operator, 4, n=5).to(dtype)
    found = operator(x, at)
    assert found.dtype == dtype
    expected = operator(x.double(), at.double())
    torch.testing.assert_close(
        found, expected.to(dtype), rtol=4 * torch.finfo(dtype).eps, atol=1e-6
    )
    wide = operator(x, at.double())
    assert wide.dtype == dtype
    torch.testing.assert_close(wide, expected.to(dtype))


def test_points_are_as_exact_as_they_are():
    """float64 points among float32 scores are not rounded to float32."""
    points = torch.tensor([1 + 1e-9, 1 - 1e-9], dtype=torch.float64)
    found = so.fsum(torch.ones(1), points, temperature=1e-9, method="uniform")
    assert found.tolist() == [1, 0]


# ---- what takes no part, and what is wrong -------------------------------------------------------


def test_infinities_and_nan():
    rows = [[1, math.inf, -math.inf], [1, 2, math.nan], [-math.inf] * 3, [math.inf, 2, 1]]
    x = torch.tensor(rows, dtype=torch.float64)
    found = so.fsum(x, torch.tensor([math.inf, 1.5, -math.inf]), temperature=1e-3)
    nan = [math.nan] * 3
    expected = [[1.5, 1, 0], nan, [0, 0, 0], [2.5, 1, 0]]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    found = so.fsum_inverse(x, torch.tensor([0.0, 0.5, 1.0]), temperature=1e-3)
    expected = [[-math.inf, 1, math.inf], nan, nan, [-math.inf, 1, 1.5]]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    mask = x.isfinite()
    found = so.fsum(x, torch.tensor([math.inf, 1.5]), temperature=1e-3, mask=mask)
    np.testing.assert_allclose(found, [[1, 1], [2, 1], [0, 0], [2, 1]], atol=1e-12)


@pytest.mark.parametrize("wrong", [-0.1, 3.5, math.nan])
def test_a_level_that_no_sum_has(wrong):
    with pytest.raises(ValueError, match=rf"levels must be between 0 and 3, .* dim -1.* {wrong}"):
        so.fsum_inverse(_random(3), torch.tensor([1.0, wrong]))


@_BOTH
def test_shapes_that_do_not_fit(operator):
    name = "points" if operator is so.fsum else "levels"
    for shape, dim in (((), -1), ((3, 4), -1), ((4, 2), -1), ((2, 4), 0), ((1, 2, 4), -1)):
        message = rf"{name} must .* but got .*shape \({', '.join(map(str, shape))}"
        with pytest.raises(ValueError, match=message):
            operator(_random(2, 5), torch.ones(shape), dim=dim)


@_BOTH
def test_wrong_types(operator):
    name = "points" if operator is so.fsum else "levels"
    with pytest.raises(TypeError, match=f"{name} must be a tensor, but got float"):
        operator(_random(3), 0.5)
    with pytest.raises(TypeError, match=rf"{name} must .* bool"):
        operator(_random(3), torch.tensor([True]))
    with pytest.raises(ValueError, match=r"method must be one of cauchy, laplace, .* 'neuralsort'"):
        operator(_random(3), torch.ones(1), method="neuralsort")

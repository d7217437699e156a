"""torch's own calls: its results to the last bit, gradients of the soft ones, and their laws."""

import math

import pytest
import torch

import softorder as so
from tests.oracles import ordering
from tests.oracles.densities import BUILT_IN

_NAN = math.nan
_OTHERS = ("uniform", "logistic", "cauchy")
_ONE_FAST = ["laplace", *(pytest.param(name, marks=pytest.mark.slow) for name in _OTHERS)]


def _scores(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


def _ties(*shape, dtype=torch.float64):
    generator = torch.Generator().manual_seed(3)
    return torch.randint(-2, 3, shape, generator=generator).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_forward_is_torchs(dim, dtype):
    x = _ties(4, 5, 6, dtype=dtype).requires_grad_()
    n = x.shape[dim]
    for largest in (True, False):
        for ordered in (True, False):
            found = so.topk(x, 3, dim, largest, ordered)
            expected = torch.topk(x, 3, dim, largest, ordered)
            assert torch.equal(found.values, expected.values)
            assert torch.equal(found.indices, expected.indices)
            assert found.weights.shape == x.shape
    for descending in (False, True):
        found = so.sort(x, dim, descending)
        expected = torch.sort(x, dim=dim, descending=descending, stable=True)
        assert torch.equal(found.values, expected.values)
        assert torch.equal(found.indices, expected.indices)
        place = so.argsort(x, dim, descending)
        assert torch.equal(place.long(), expected.indices)
    for k in (1, 2, n):
        found, expected = so.kthvalue(x, k, dim), torch.kthvalue(x, k, dim)
        assert torch.equal(found.values, expected.values)
        assert torch.equal(found.indices, expected.indices)
    for keepdim in (False, True):
        for ours, theirs in ((so.max, torch.max), (so.min, torch.min)):
            found, expected = ours(x, dim, keepdim), theirs(x, dim, keepdim)
            assert torch.equal(found.values, expected.values)
            assert torch.equal(found.indices, expected.indices)
        for ours, theirs in ((so.argmax, torch.argmax), (so.argmin, torch.argmin)):
            assert torch.equal(ours(x, dim, keepdim).long(), theirs(x, dim, keepdim))
        expected = torch.median(x, dim, keepdim)
        assert torch.equal(so.median(x, dim, keepdim).values, expected.values)


def test_without_an_axis_all_compete():
    x = _scores(3, 4).requires_grad_()
    for name in ("max", "min", "median"):
        found = getattr(so, name)(x)
        assert torch.equal(found, getattr(torch, name)(x))
        assert found.requires_grad
    for name in ("argmax", "argmin"):
        for keepdim in (False, True):
            found = getattr(so, name)(x, keepdim=keepdim)
            assert torch.equal(found.long(), getattr(torch, name)(x, keepdim=keepdim))


def _soft(x, temperature, method, hard=False):
    """All soft values, as one vector."""
    o = {"temperature": temperature, "method": method, "hard": hard}
    parts = [
        so.topk(x, 3, **o).values,
        so.topk(x, 2, largest=False, **o).values,
        so.kthvalue(x, 2, **o).values,
        so.max(x, -1, **o).values,
        so.min(x, -1, **o).values,
        so.argmax(x, -1, **o),
        so.sort(x, **o).values,
        so.argsort(x, descending=True, **o),
    ]
    return torch.cat([part.reshape(-1) for part in parts])


@pytest.mark.parametrize("method", ["laplace", "uniform", "softsort"])
def test_straight_through_has_the_soft_gradient(method):
    x = _scores(5).requires_grad_()
    temperature = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    soft, hard = (_soft(x, temperature, method, hard) for hard in (False, True))
    assert not torch.allclose(soft, hard)
    v = torch.linspace(-1, 1, len(soft), dtype=torch.float64)
    soft, hard = (torch.autograd.grad(f, (x, temperature), v) for f in (soft, hard))
    torch.testing.assert_close(hard, soft)


@pytest.mark.parametrize("method", BUILT_IN)
def test_soft_values_are_means_by_the_permutation(method):
    x, o = _scores(2, 6), {"temperature": 0.5, "method": method}
    up = torch.from_numpy(ordering.permutation(x.numpy(), [0.5, 0.5], method))
    y = _scores(2, 6, 3, seed=1)
    kept = {"rtol": 0, "atol": 1e-12}
    means = (up @ x.unsqueeze(-1)).squeeze(-1)
    found = so.sort(x, values=y, hard=False, **o)
    torch.testing.assert_close(found.values, means, **kept)
    torch.testing.assert_close(found.companions, up @ y, **kept)
    torch.testing.assert_close(so.soft_sort(x, within=True, **o), means, **kept)
    torch.testing.assert_close(so.topk(x, 2, hard=False, **o).values, means.flip(-1)[:, :2], **kept)
    third = so.kthvalue(x, 3, hard=False, **o)
    torch.testing.assert_close(third.weights, up[:, 2], **kept)
    torch.testing.assert_close(third.values, means[:, 2], **kept)
    torch.testing.assert_close(so.max(x, 1, hard=False, **o).values, means[:, -1], **kept)
    torch.testing.assert_close(so.min(x, 1, **o).weights, up[:, 0], **kept)
    torch.testing.assert_close(so.median(x, 1, hard=False, **o).values, means[:, 2], **kept)
    place = torch.arange(6, dtype=torch.float64)
    torch.testing.assert_close(so.argsort(x, hard=False, **o), up @ place, **kept)
    torch.testing.assert_close(so.argmax(x, 1, hard=False, **o), up[:, -1] @ place, **kept)
    torch.testing.assert_close(so.topk(x, 2, **o).weights, up[:, -2:].sum(1), **kept)


@pytest.mark.parametrize("method", _ONE_FAST)
def test_companions_have_all_derivatives(kernel, method):
    x, y = _scores(1, 4).requires_grad_(), _scores(1, 4, 2, seed=1).requires_grad_()
    temperature = torch.tensor([0.7], dtype=torch.float64, requires_grad=True)

    def function(x, y, temperature):
        options = {"values": y, "temperature": temperature, "method": method, "hard": False}
        return so.sort(x, descending=True, **options).companions

    inputs = (x, y, temperature)
    assert torch.autograd.gradcheck(function, inputs, check_forward_ad=True, fast_mode=True)
    assert torch.autograd.gradgradcheck(function, inputs, fast_mode=True)


def test_companions_follow_what_infinities_and_masks_mean(kernel):
    x = torch.tensor([0.3, _NAN, 2.0, math.inf, -1.0, math.inf, -math.inf], dtype=torch.float64)
    mask = torch.tensor([True, False, True, True, True, True, True])
    y = torch.tensor([1.0, _NAN, 3.0, 4.0, 5.0, 6.0, 7.0], dtype=torch.float64)
    for method in ("laplace", "softsort"):
        o = {"values": y, "mask": mask, "temperature": 1e-3, "method": method, "hard": False}
        up, down = so.sort(x, **o), so.sort(x, descending=True, **o)
        torch.testing.assert_close(up.companions[:5], torch.tensor([5.0, 1, 3, 5, 5]).double())
        torch.testing.assert_close(down.companions[:5], torch.tensor([5.0, 5, 3, 1, 5]).double())
        for found in (up, down):
            assert found.companions[5].isnan()
            assert found.companions[6] == 7
        assert up.values.tolist()[3:] == [math.inf] * 4
        assert down.values.tolist()[5:] == [-math.inf] * 2
        hard = so.sort(x, **(o | {"hard": True}))
        assert hard.indices.tolist() == [4, 0, 2, 3, 5, 1, 6]
        assert hard.companions.tolist()[:5] == [5, 1, 3, 4, 6]


def test_companions_of_a_long_row_are_not_worn_down_by_the_sum(kernel):
    """Sums of 2,000 numbers near 10^6 are differences of 10^9, and equal ones stay equal."""
    x = _scores(2000).float()
    y = torch.full((2000,), 1e6 + 1 / 3).float()
    found = so.sort(x, values=y, temperature=0.1, hard=False).companions
    assert torch.equal(found, y)


def test_masked_rows_are_short_rows():
    x, mask = _scores(7).requires_grad_(), torch.tensor([1, 1, 0, 1, 1, 0, 1]).bool()
    short = x[mask]
    o = {"temperature": 0.4, "hard": False}
    for name, arguments in (("topk", (2,)), ("kthvalue", (2,)), ("max", (0,)), ("median", (0,))):
        operator = getattr(so, name)
        padded, alone = operator(x, *arguments, mask=mask, **o), operator(short, *arguments, **o)
        torch.testing.assert_close(padded.values, alone.values, rtol=0, atol=1e-12)
        torch.testing.assert_close(padded.weights[mask], alone.weights, rtol=0, atol=1e-12)
        assert (padded.weights[~mask] == 0).all()
        (gradient,) = torch.autograd.grad(padded.values.sum(), x)
        assert (gradient[~mask] == 0).all()
        hard = operator(x, *arguments, mask=mask), operator(short, *arguments)
        assert torch.equal(hard[0].values, hard[1].values)
        assert torch.equal(x[hard[0].indices], short[hard[1].indices])


def test_where_nothing_or_too_little_takes_part():
    x, nobody = torch.randn(3, requires_grad=True), torch.zeros(3, dtype=torch.bool)
    for hard in (True, False):
        assert so.max(x, 0, mask=nobody, hard=hard).values == -math.inf
        assert so.min(x, 0, mask=nobody, hard=hard).values == math.inf
        assert so.median(x, 0, mask=nobody, hard=hard).values.isnan()
        one = so.topk(x, 2, mask=torch.tensor([False, True, False]), hard=hard)
        assert one.values.tolist() == [x[1].item(), -math.inf]
        assert (
            so.kthvalue(x, 3, mask=torch.tensor([True, False, True]), hard=hard).values == math.inf
        )
    assert so.sort(torch.empty(2, 0)).values.shape == (2, 0)
    assert so.topk(x, 0).values.shape == (0,)


def test_under_vmap_and_compile():
    x, y = _scores(3, 5), _scores(3, 5, seed=1)

    def function(x, y):
        o = {"temperature": 0.5}
        best, second = so.topk(x, 2, **o), so.kthvalue(x, 2, **o)
        ordered = so.sort(x, values=y, **o)
        return torch.cat([best.values, second.values.unsqueeze(-1), ordered.companions], -1)

    torch.testing.assert_close(torch.func.vmap(function)(x, y), function(x, y))
    jacobian = torch.func.jacrev(function, argnums=(0, 1))(x[0], y[0])
    assert all(part.isfinite().all() and part.abs().sum() > 0 for part in jacobian)


@pytest.mark.slow
def test_compiled():
    x, y = _scores(3, 5).requires_grad_(), _scores(3, 5, seed=1)

    def function(x):
        ordered = so.sort(x, values=y, temperature=0.5, hard=False)
        return so.topk(x, 2, temperature=0.5).values.sum(-1) + ordered.companions[:, 1]

    compiled = torch.compile(function, fullgraph=True)
    torch.testing.assert_close(compiled(x), function(x))
    (ours,), (theirs,) = (torch.autograd.grad(f(x).sum(), x) for f in (compiled, function))
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: so.topk(x, 9), ValueError, r"k must be between 0 and 3, but got 9"),
        (lambda x: so.topk(x, 1.5), TypeError, r"k must be an int, but got float"),
        (
            lambda x: so.topk(x, 1, sorted=1),
            TypeError,
            r"sorted must be True or False, but got int",
        ),
        (lambda x: so.topk(x, 1, hard="no"), TypeError, r"hard must be True or False, but got str"),
        (lambda x: so.topk(x, 1, method="soft"), ValueError, r"method must be one of.*'soft'"),
        (lambda x: so.kthvalue(x, 0), ValueError, r"k must be between 1 and 3, but got 0"),
        (lambda x: so.max(x, x), TypeError, r"dim must be an int, but got Tensor"),
        (lambda x: so.max(x[:, :0], 1), ValueError, r"scores must have at least one entry along"),
        (lambda x: so.sort(x, stable=None), TypeError, r"stable must be True or False"),
        (lambda x: so.sort(x, values=x[:1]), ValueError, r"values must have the shape of scores"),
        (lambda x: so.sort(x, values=[1]), TypeError, r"values must be a tensor, but got list"),
        (lambda x: so.soft_sort(x, within=1), TypeError, r"within must be True or False"),
        (lambda x: so.argsort(x, method="permutahedron"), ValueError, r"method must be one of"),
    ],
)
def test_wrong_calls(call, error, message):
    with pytest.raises(error, match=message):
        call(torch.randn(2, 3, requires_grad=True))

"""Soft ranks and sorts by projection: published examples, and the optimality conditions."""

import pytest
import torch

import softorder as so
from softorder.relaxations import PermutahedronMethod


def _scores(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_examples_of_fast_soft_sort():
    x = torch.tensor([[5.0, 1.0, 2.0], [2.0, 1.0, 5.0]], dtype=torch.float64)
    sort, rank = (_operator(name) for name in ("soft_sort", "soft_rank"))
    torch.testing.assert_close(sort(x, 1.0), torch.tensor([[5.0, 8, 11]] * 2).double() / 3)
    torch.testing.assert_close(sort(x, 0.1), torch.tensor([[1.0, 2, 5]] * 2).double())
    expected = torch.tensor([[3, 1.25, 1.75], [1.75, 1.25, 3]]).double()
    torch.testing.assert_close(rank(x, 2.0), expected)
    torch.testing.assert_close(rank(x, 1.0), torch.tensor([[3.0, 1, 2], [2, 1, 3]]).double())


def test_examples_of_torchsort():
    x = torch.tensor([[8.0, 0, 5, 3, 2, 1, 6, 7, 9]], requires_grad=True)
    sort, rank = (_operator(name) for name in ("soft_sort", "soft_rank"))
    torch.testing.assert_close(sort(x, 1.0), torch.arange(9.0).unsqueeze(0) + 5 / 9)
    assert sort(x, 0.1).tolist() == [[0, 1, 2, 3, 5, 6, 7, 8, 9]]
    assert rank(x, 1.0).tolist() == [[8, 1, 5, 4, 3, 2, 6, 7, 9]]
    (gradient,) = torch.autograd.grad(sort(x, 1.0)[0, 0], x)
    torch.testing.assert_close(gradient, torch.full_like(x, 1 / 9))


def _operator(name, method="permutahedron"):
    def call(x, strength, **options):
        return getattr(so, name)(x, method=method, temperature=strength, **options)

    return call


def _inside(point, vector, atol=1e-9):
    """Whether a point is in the hull of the orders of a vector: sums of its largest are no more."""
    sums, most = (v.sort(-1, descending=True).values.cumsum(-1) for v in (point, vector))
    torch.testing.assert_close(sums[..., -1], most[..., -1].expand(len(sums)))
    return (sums <= most + atol).all()


@pytest.mark.parametrize("strength", [0.3, 2.0, 30.0])
def test_ranks_are_the_projection(strength):
    """<z - p, q - p> ≤ 0 for every vertex q; the best one has the order of z - p."""
    x = _scores(20, 7)
    places = torch.arange(1.0, 8, dtype=x.dtype)
    p = _operator("soft_rank")(x, strength)
    assert _inside(p, places)
    residual = x / strength - p
    best = residual.sort(-1).values @ places
    torch.testing.assert_close((residual * p).sum(-1), best)


@pytest.mark.parametrize("strength", [0.3, 2.0, 30.0])
def test_sorts_are_the_projection(strength):
    x = _scores(20, 7)
    target = torch.arange(7.0, 0, -1, dtype=x.dtype) / strength
    p = _operator("soft_sort")(x, strength, descending=True)
    assert _inside(p, x)
    residual = target - p
    best = (residual.sort(-1).values * x.sort(-1).values).sum(-1)
    torch.testing.assert_close((residual * p).sum(-1), best)


@pytest.mark.parametrize("strength", [0.3, 2.0, 30.0])
def test_entropic_ranks_are_the_projection(strength):
    """The gradient of the relative entropy to exp(z) is log(p) - z."""
    x = _scores(20, 7)
    places = torch.arange(1.0, 8, dtype=x.dtype)
    p = _operator("soft_rank", "permutahedron_kl")(x, strength)
    assert _inside(p, places)
    residual = x / strength - p.log()
    best = residual.sort(-1).values @ places
    torch.testing.assert_close((residual * p).sum(-1), best)


@pytest.mark.parametrize("strength", [0.3, 2.0, 30.0])
def test_entropic_sorts_are_the_logarithm_of_a_projection(strength):
    x = _scores(20, 7)
    target = torch.arange(7.0, 0, -1, dtype=x.dtype) / strength
    log_p = _operator("soft_sort", "permutahedron_kl")(x, strength, descending=True)
    p, vector = log_p.exp(), x.exp()
    assert _inside(p, vector)
    residual = target - log_p
    best = (residual.sort(-1).values * vector.sort(-1).values).sum(-1)
    torch.testing.assert_close((residual * p).sum(-1), best)


def test_long_rows_keep_their_digits():
    x = 1e-3 * _scores(20_000).float()
    ranks = _operator("soft_rank")(x, 1.0)
    expected = _operator("soft_rank")(x.double(), 1.0)
    torch.testing.assert_close(ranks.double(), expected, rtol=1e-6, atol=0)


def test_wrong_options():
    with pytest.raises(ValueError, match="regularization must be one of l2, kl"):
        PermutahedronMethod("entropy")

"""soft_quantile and soft_median: q of every kind, and plateaus."""

import math

import pytest
import torch

import softorder as so
from tests.oracles.densities import BUILT_IN


def _scores(*shape):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("method", BUILT_IN)
@pytest.mark.slow
def test_gradient_in_q(kernel, method):
    x, q = _scores(3, 5).requires_grad_(), torch.tensor([0.9, 0.23], dtype=torch.float64)
    q.requires_grad_()

    def function(x, q):
        return so.soft_quantile(x, q, method=method, temperature=0.7)

    assert torch.autograd.gradcheck(function, (x, q), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(function, (x, q))


def test_the_order_of_several_q_does_not_matter(kernel):
    x, q = _scores(4, 6), torch.tensor([0.9, 0.1, 0.5])
    together = so.soft_quantile(x, q, temperature=0.3)
    alone = torch.stack([so.soft_quantile(x, v.item(), temperature=0.3) for v in q])
    torch.testing.assert_close(together, alone)


def test_a_q_for_every_row():
    x, q = _scores(4, 6), torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.8]])
    together = so.soft_quantile(x, q, temperature=0.3)
    assert together.shape == (2, 4)
    for level in range(2):
        for row in range(4):
            alone = so.soft_quantile(x[row], q[level, row].item(), temperature=0.3)
            torch.testing.assert_close(together[level, row], alone)


def test_median_is_the_middle_quantile():
    x = _scores(2, 3, 5)
    options = {"temperature": 0.4, "dim": 1, "keepdim": True, "method": "normal"}
    assert torch.equal(so.soft_median(x, **options), so.soft_quantile(x, 0.5, **options))


@pytest.mark.parametrize("method", ["laplace", "logistic", "normal", "uniform"])
@pytest.mark.parametrize("temperature", [1e-6, 1e-3, 0.05])
def test_the_median_of_an_even_row_moves_with_its_two_neighbours(kernel, method, temperature):
    """Between them FSum is flat: its slope underflows, but the median still has a gradient."""
    x = torch.tensor([5.0, 1.0, 2.0, -7.0], dtype=torch.float64, requires_grad=True)
    median = so.soft_median(x, method=method, temperature=temperature)
    torch.testing.assert_close(median.item(), 1.5, rtol=0, atol=1e-9)
    (gradient,) = torch.autograd.grad(median, x)
    expected = torch.tensor([0.0, 0.5, 0.5, 0.0], dtype=torch.float64)
    torch.testing.assert_close(gradient, expected, rtol=0, atol=1e-7)


@pytest.mark.parametrize("method", ["laplace", "uniform"])
def test_a_plateau_between_ties_shares_the_gradient_and_depends_on_temperature(method):
    x = torch.tensor([0.0, 0.0, 0.0, 1.0, 1.0, 3.0], dtype=torch.float64, requires_grad=True)
    temperature = torch.tensor(1e-4, dtype=torch.float64, requires_grad=True)
    t = so.soft_median(x, method=method, temperature=temperature)
    by_score, by_temperature = torch.autograd.grad(t, (x, temperature))
    euler = (by_score * x).sum() + by_temperature * temperature
    torch.testing.assert_close(euler, t.detach(), rtol=0, atol=1e-12)
    torch.testing.assert_close(by_score.sum().item(), 1.0)


@pytest.mark.parametrize("method", BUILT_IN)
def test_the_ends_are_infinite(method):
    x = _scores(2, 5).requires_grad_()
    t = so.soft_quantile(x, torch.tensor([0.0, 1.0]), method=method)
    assert t.tolist() == [[-math.inf] * 2, [math.inf] * 2]
    (gradient,) = torch.autograd.grad(t, x, torch.ones_like(t))
    assert (gradient == 0).all()


def test_many_quantiles_are_a_sort():
    x = _scores(2, 50)
    q = (torch.arange(50) + 0.5) / 50
    t = so.soft_quantile(x, q, temperature=0.1)
    torch.testing.assert_close(t.movedim(0, -1), so.soft_sort(x, temperature=0.1))


@pytest.mark.parametrize("q", [-0.1, 1.5, math.nan])
def test_q_outside_its_range(q):
    for operator in (so.soft_quantile, so.hard.quantile):
        with pytest.raises(ValueError, match=rf"q must be between 0 and 1, but got {q}"):
            operator(_scores(3), q)
        with pytest.raises(ValueError, match="q must be between 0 and 1"):
            operator(_scores(3), torch.tensor([0.5, q]))


def test_q_of_a_wrong_type_or_shape():
    with pytest.raises(TypeError, match="q must be a real number"):
        so.soft_quantile(_scores(3), "half")
    with pytest.raises(TypeError, match=r"q must hold real numbers.*bool"):
        so.soft_quantile(_scores(3), torch.tensor([True]))
    with pytest.raises(ValueError, match=r"q must be.*\(2,\).*\(1, 3\)"):
        so.soft_quantile(_scores(2, 5), torch.rand(1, 3))

"""I-MLE, against its formula and against the quadrature of its mean."""

import math

import pytest
import torch
from scipy import stats

from softorder._noise import gumbel, sum_of_gamma
from softorder.distributions import KHot
from softorder.estimators import implicit_mle
from tests.oracles import perturbed as oracle

_THETA = torch.tensor([0.4, -0.5, 0.1, 0.9, 0.0], dtype=torch.float64)
_V = torch.tensor([1.0, -0.5, 0.3, 0.8, -1.2], dtype=torch.float64)


def _generator(seed=0):
    return torch.Generator().manual_seed(seed)


def _best(keys, k):
    row = torch.zeros(len(keys), dtype=torch.float64)
    row[sorted(range(len(keys)), key=lambda i: -keys[i])[:k]] = 1.0
    return row


def test_the_formula_of_the_paper():
    """z = MAP(θ + τε), θ' = θ - λ dL/dz, and (z - MAP(θ' + τε))/λ, draw by draw."""
    theta = _THETA.clone().requires_grad_()
    tau, step = 0.7, 2.5

    def loss(x):
        return (x @ _V) ** 2

    options = {"temperature": tau, "step": step, "noise": "gumbel", "generator": _generator(1)}
    values = implicit_mle(KHot(2, logits=theta), loss, (6,), **options)
    (found,) = torch.autograd.grad(values.sum(), theta)
    noise = tau * gumbel(torch.empty(6, 5, dtype=torch.float64), _generator(1))
    wanted = torch.zeros(5, dtype=torch.float64)
    for row, value in zip(noise, values, strict=True):
        z = _best((_THETA + row).tolist(), 2)
        assert value == loss(z)
        target = _THETA - step * 2 * (z @ _V) * _V
        wanted += (z - _best((target + row).tolist(), 2)) / step
    torch.testing.assert_close(found, wanted)
    assert found.abs().max() > 0


@pytest.mark.parametrize("noise", ["gumbel", "normal"])
def test_the_mean_is_a_difference_of_means(noise):
    """(p(θ) - p(θ - λ v))/λ for a linear loss; 5 standard errors, 1 in 1.7 million each."""
    draws, step, k, tau = 20_000, 0.8, 2, 0.6
    rows = _THETA.expand(draws, 5).clone().requires_grad_()
    options = {"step": step, "temperature": tau, "noise": noise, "generator": _generator(2)}
    values = implicit_mle(KHot(k, logits=rows), lambda x: x @ _V, **options)
    (found,) = torch.autograd.grad(values.sum(), rows)
    ends = (oracle.topk(at, k, tau, noise) for at in (_THETA, _THETA - step * _V))
    wanted = torch.sub(*ends) / step
    error = found.std(0) / math.sqrt(draws)
    assert ((found.mean(0) - wanted).abs() <= 5 * error).all()


@pytest.mark.parametrize("k", [1, 3, 10])
@pytest.mark.slow
def test_k_numbers_of_the_noise_sum_to_a_gumbel_number(k):
    """Kolmogorov-Smirnov at one in a million; 1000 terms leave out a variance of 0.001."""
    like = torch.empty(5000, k, dtype=torch.float64)
    drawn = sum_of_gamma(like, torch.tensor(k), 1000, _generator(k)).sum(-1)
    assert stats.kstest(drawn.numpy(), stats.gumbel_r.cdf).pvalue > 1e-6


def test_the_terms_of_the_noise():
    """Its mean and variance, (H_s - log s)/k and Σ 1/i² /k, at 5 standard errors."""
    k, terms, draws = 4, 10, 40_000
    drawn = sum_of_gamma(torch.empty(draws, dtype=torch.float64), torch.tensor(k), terms, None)
    mean = (sum(1 / i for i in range(1, terms + 1)) - math.log(terms)) / k
    variance = sum(1 / i**2 for i in range(1, terms + 1)) / k
    assert abs(drawn.mean() - mean) < 5 * math.sqrt(variance / draws)
    spread = (drawn - mean).square()
    assert abs(spread.mean() - variance) < 5 * spread.std() / math.sqrt(draws)


def test_it_learns_the_best_subset():
    """Of a loss that is not linear, for one k per row."""
    theta = torch.zeros(2, 6, requires_grad=True)
    wanted = torch.tensor([[0.0, 1, 0, 1, 0, 0], [1.0, 0, 1, 0, 1, 0]])
    optimizer = torch.optim.SGD([theta], 0.1)
    generator = _generator()
    for _ in range(150):
        optimizer.zero_grad()
        law = KHot(torch.tensor([2, 3]), logits=theta)
        x = implicit_mle(law, sample_shape=(4,), step=1.0, generator=generator)
        (x - wanted).square().sum().backward()
        optimizer.step()
    best = [
        row.topk(k).indices.sort().values.tolist() for row, k in zip(theta, (2, 3), strict=True)
    ]
    assert best == [[1, 3], [0, 2, 4]]


def test_arguments():
    law = KHot(2, logits=torch.zeros(4))
    x = implicit_mle(law, sample_shape=(3,), temperature=torch.tensor(0.5))
    assert x.sum(-1).tolist() == [2.0] * 3
    half = implicit_mle(KHot(2, logits=torch.zeros(2, 4, dtype=torch.bfloat16)))
    assert half.dtype == torch.bfloat16
    never = implicit_mle(KHot(1, logits=torch.tensor([-math.inf, 0.0])), sample_shape=(20,))
    assert never[:, 0].tolist() == [0.0] * 20
    theta = torch.zeros(4, requires_grad=True)
    value = implicit_mle(KHot(2, logits=theta), lambda x: x[0])
    (slope,) = torch.autograd.grad(value, theta, create_graph=True)
    with pytest.raises(RuntimeError, match="no second derivatives"):
        slope.sum().backward()
    with pytest.raises(ValueError, match="k must be whole for the estimator implicit_mle"):
        implicit_mle(KHot(2.5, logits=torch.zeros(4)))
    with pytest.raises(ValueError, match="step must be finite and > 0"):
        implicit_mle(law, step=0.0)
    with pytest.raises(ValueError, match="noise must be one of sum_of_gamma, normal, gumbel"):
        implicit_mle(law, noise="gamma")
    with pytest.raises(ValueError, match="terms must be at least 1"):
        implicit_mle(law, terms=0)
    with pytest.raises(ValueError, match="temperature must be finite and > 0"):
        implicit_mle(law, temperature=0.0)

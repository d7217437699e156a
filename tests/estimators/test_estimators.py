"""Estimators against the exact gradient of E f(x), by enumeration."""

import math

import pytest
import torch

import softorder as so
from softorder import estimators
from softorder.distributions import KHot

_N, _K = 6, 2
_NAMES = ["implicit_mle", "relaxed", "score_function", "second_order", "simple", "straight_through"]


def _generator(seed=0):
    return torch.Generator().manual_seed(seed)


def _theta(n=_N):
    return torch.randn(n, dtype=torch.float64, generator=_generator(7)).requires_grad_()


def _target(n=_N):
    return torch.rand(n, dtype=torch.float64, generator=_generator(8))


def _quadratic(x):
    return (x - _target(x.shape[-1])).square().sum(-1) + x[..., 0] * x[..., 1]


def _exact(law, loss, theta):
    x = law.enumerate_support()
    mean = (law.log_prob(x).exp() * loss(x)).sum()
    return torch.autograd.grad(mean, theta)[0]


def _estimates(estimator, law, loss, theta, draws, **options):
    """One gradient for each draw."""
    rows = theta.detach().expand(draws, -1).clone().requires_grad_()
    many = KHot(law.k, logits=rows, design=law.design, method=law.method)
    value = estimator(many, loss, generator=_generator(1), **options)
    return torch.autograd.grad(value.sum(), rows)[0]


def _assert_mean(found, wanted, within=5):
    error = found.std(0) / math.sqrt(len(found))
    assert ((found.mean(0) - wanted).abs() <= within * error + 1e-12).all()


# ---- all of them --------------------------------------------------------------------------------


_PAIRS = [
    (name, row.name)
    for name in _NAMES
    for row in so.sampling.designs()
    if row.log_prob or name != "score_function"
]


@pytest.mark.parametrize(("name", "design"), _PAIRS)
@pytest.mark.parametrize("density", [None, "laplace", "uniform"])
def test_any_design_and_any_density(name, design, density):
    theta = torch.randn(3, 5, generator=_generator()).requires_grad_()
    law = KHot(2, logits=theta, design=design, method=density)
    losses = estimators.find(name)(law, lambda x: x.square().sum(-1), (4,))
    assert losses.shape == (4, 3)
    (gradient,) = torch.autograd.grad(losses.mean(), theta)
    assert gradient.isfinite().all()


@pytest.mark.parametrize("name", [n for n in _NAMES if n != "score_function"])
def test_without_a_loss_they_are_draws(name):
    theta = _theta()
    law = KHot(_K, logits=theta)
    x = estimators.find(name)(law, sample_shape=(3,), generator=_generator())
    assert x.shape == (3, _N)
    torch.testing.assert_close(x.sum(-1), torch.full((3,), 2.0, dtype=torch.float64))
    assert torch.autograd.grad((x * torch.arange(6.0)).sum(), theta)[0].abs().max() > 0
    if name not in ("relaxed", "implicit_mle"):  # which have noise of their own
        assert torch.equal(x.detach(), law.sample((3,), generator=_generator()))


@pytest.mark.parametrize("name", ["straight_through", "second_order", "relaxed"])
@pytest.mark.parametrize("k", [2.5, None])
def test_a_k_that_is_not_whole(name, k):
    theta = _theta()
    law = KHot(k, logits=theta, design="sampford")
    options = {"hard": True} if name == "relaxed" else {}
    x = estimators.find(name)(law, sample_shape=(50,), generator=_generator(), **options)
    total = law.probs.sum().item()
    assert set(x.sum(-1).round().tolist()) <= {math.floor(total), math.ceil(total)}
    assert torch.autograd.grad(_quadratic(x).sum(), theta)[0].isfinite().all()


def test_they_fit_into_a_module():
    class Gate(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scores = torch.nn.Parameter(torch.zeros(8))

        def forward(self, inputs):
            return inputs * so.estimators.straight_through(KHot(3, logits=self.scores))

    gate = Gate()
    gate(torch.randn(8)).sum().backward()
    assert gate.scores.grad.abs().sum() > 0


def test_wrong_arguments():
    law = KHot(2, logits=torch.zeros(4))
    with pytest.raises(TypeError, match="score_function needs a loss"):
        estimators.score_function(law)
    with pytest.raises(ValueError, match=r"loss must return .* shape \(3,\)"):
        estimators.score_function(law, lambda x: x, (3,))
    with pytest.raises(TypeError, match="hard must be True or False"):
        estimators.relaxed(law, hard=1)
    with pytest.raises(ValueError, match="temperature must be finite and > 0"):
        estimators.relaxed(law, temperature=0.0)
    with pytest.raises(ValueError, match=r"estimator must be one of .*simple"):
        estimators.find("sample")
    with pytest.raises(ValueError, match="k must be whole for the estimator simple"):
        estimators.simple(KHot(2.5, logits=torch.zeros(4)))
    with pytest.raises(NotImplementedError, match="'pivotal' has no log_prob"):
        estimators.score_function(KHot(2, logits=torch.zeros(4), design="pivotal"), torch.sum)


# ---- each of them -------------------------------------------------------------------------------


@pytest.mark.parametrize("design", ["conditional_poisson", "sampford", "pareto", "poisson"])
@pytest.mark.parametrize("baseline", [True, False])
def test_score_function_is_unbiased(design, baseline):
    theta = _theta()
    law = KHot(_K, logits=theta, design=design)
    wanted = _exact(law, _quadratic, theta)
    groups, draws = 2000, 4
    rows = theta.detach().expand(groups, -1).clone().requires_grad_()
    many = KHot(_K, logits=rows, design=design)
    losses = estimators.score_function(
        many, _quadratic, (draws,), baseline=baseline, generator=_generator(2)
    )
    (found,) = torch.autograd.grad(losses.mean(0).sum(), rows)
    _assert_mean(found, wanted)


def test_the_baseline_is_the_mean_of_the_other_draws():
    theta = _theta()
    law = KHot(_K, logits=theta)
    losses = estimators.score_function(law, _quadratic, (3,), generator=_generator())
    (found,) = torch.autograd.grad(losses.sum(), theta)
    x = law.sample((3,), generator=_generator())
    f = _quadratic(x)
    surplus = torch.stack([f[0] - f[[1, 2]].mean(), f[1] - f[[0, 2]].mean(), f[2] - f[:2].mean()])
    mean = KHot(_K, logits=theta.detach()).mean
    torch.testing.assert_close(found, (surplus[:, None] * (x - mean)).sum(0))


def test_the_baseline_reduces_the_variance():
    theta = _theta()
    law = KHot(_K, logits=theta)
    spread = []
    for baseline in (True, False):
        rows = theta.detach().expand(1000, -1).clone().requires_grad_()
        losses = estimators.score_function(
            KHot(law.k, logits=rows), _quadratic, (4,), baseline=baseline, generator=_generator()
        )
        (found,) = torch.autograd.grad(losses.mean(0).sum(), rows)
        spread.append(found.var(0).sum())
    assert spread[0] < 0.5 * spread[1]


@pytest.mark.parametrize("design", ["conditional_poisson", "sampford", "pivotal"])
def test_straight_through_is_first_order(design):
    """Proposition 3: its mean is E[∇f(x)] dE[x]/dθ."""
    theta = _theta()
    law = KHot(_K, logits=theta, design=design, method="logistic")
    slopes = law.sample((100_000,), generator=_generator()).requires_grad_()
    (slope,) = torch.autograd.grad(_quadratic(slopes).mean(), slopes)
    wanted = torch.autograd.grad((law.mean * slope.sum(0)).sum(), theta)[0]
    found = _estimates(estimators.straight_through, law, _quadratic, theta, 20_000)
    _assert_mean(found, wanted, within=6)


def test_straight_through_is_exact_for_a_linear_loss():
    theta, weight = _theta(), _target()
    law = KHot(_K, logits=theta, design="sampford")
    found = _estimates(estimators.straight_through, law, lambda x: x @ weight, theta, 10)
    wanted = _exact(KHot(_K, logits=theta, design="sampford"), lambda x: x @ weight, theta)
    torch.testing.assert_close(found, wanted.expand(10, -1))


def test_second_order_is_exact_for_a_quadratic_of_two_units():
    """n = 2, k = 1, the case of Liu et al. 2023; straight-through is biased there."""
    theta = _theta(2)
    law = KHot(1, logits=theta, design="sampford")
    wanted = _exact(law, lambda x: (x - _target(2)).square().sum(-1), theta)

    def estimates(estimator):
        fresh = KHot(1, logits=theta, design="sampford")
        loss = lambda x: (x - _target(2)).square().sum(-1)  # noqa: E731
        return _estimates(estimator, fresh, loss, theta, 100_000)

    _assert_mean(estimates(estimators.second_order), wanted)
    biased = estimates(estimators.straight_through)
    error = biased.std(0) / math.sqrt(len(biased))
    assert ((biased.mean(0) - wanted).abs() > 10 * error).all()


def test_second_order_has_less_bias_than_straight_through():
    theta = _theta()
    wanted = _exact(KHot(_K, logits=theta, design="sampford"), _quadratic, theta)

    def bias(estimator):
        law = KHot(_K, logits=theta, design="sampford")
        return (_estimates(estimator, law, _quadratic, theta, 20_000).mean(0) - wanted).norm()

    assert bias(estimators.second_order) < 0.5 * bias(estimators.straight_through)


def test_simple_is_straight_through_of_the_natural_law():
    theta = _theta()
    gradients = []
    for estimator in (estimators.simple, estimators.straight_through):
        law = KHot(_K, logits=theta)
        value = estimator(law, _quadratic, (5,), generator=_generator())
        gradients.append(torch.autograd.grad(value.sum(), theta)[0])
    torch.testing.assert_close(*gradients)


def test_simple_has_the_covariance_as_its_jacobian():
    theta = _theta()
    law = KHot(_K, logits=theta)
    x = estimators.simple(law, generator=_generator())
    jacobian = torch.stack([torch.autograd.grad(v, theta, retain_graph=True)[0] for v in x])
    torch.testing.assert_close(jacobian, KHot(_K, logits=theta.detach()).covariance_matrix)


def test_relaxed_is_the_gradient_of_the_relaxed_loss():
    """By the same noise: finite differences of the relaxed draws."""
    theta, step = _theta(), 1e-6
    for hard in (False, True):
        law = KHot(_K, logits=theta, design="gumbel_topk")
        x = estimators.relaxed(law, temperature=0.7, hard=hard, generator=_generator())
        weight = _target()
        (found,) = torch.autograd.grad((x * weight).sum(), theta)
        differences = []
        for i in range(_N):
            ends = []
            for sign in (1, -1):
                moved = theta.detach().clone()
                moved[i] += sign * step
                other = KHot(_K, logits=moved, design="gumbel_topk")
                draw = other.rsample(temperature=0.7, generator=_generator())
                ends.append((draw * weight).sum())
            differences.append((ends[0] - ends[1]) / (2 * step))
        torch.testing.assert_close(found, torch.stack(differences), rtol=1e-6, atol=1e-8)

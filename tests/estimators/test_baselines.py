"""Samplers of other papers, against formulas written from these."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

import softorder as so
from softorder import estimators
from softorder.distributions import KHot
from tests.oracles import iterative_poisson as chain


def _generator(seed=0):
    return torch.Generator().manual_seed(seed)


def _theta(*shape, seed=7):
    return torch.randn(*shape, dtype=torch.float64, generator=_generator(seed))


# ---- NCPSS --------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [1, 2, 7])
@pytest.mark.parametrize(
    "probs", [[0.9, 0.7, 0.3, 0.1], [0.5, 0.2, 0.1, 0.05], [0.95, 0.9, 0.6, 0.7]]
)
def test_draws_follow_the_chain_of_iterative_poisson(probs, rounds):
    """σ(θ) may sum to k, to less, and to more."""
    draws = 40_000
    law = KHot(2, logits=torch.logit(torch.tensor(probs, dtype=torch.float64)))
    x = estimators.iterative_poisson(
        law, sample_shape=(draws,), rounds=rounds, generator=_generator(3)
    )
    states = {y: c for y, c in chain.law(probs, 2, rounds).items() if c > 1e-12}
    found = dict.fromkeys(states, 0)
    for row, count in zip(*np.unique(x.numpy(), axis=0, return_counts=True), strict=True):
        found[tuple(int(v) for v in row)] += int(count)
    likely = [y for y in states if draws * states[y] > 5]
    rest = draws - sum(found[y] for y in likely), 1 - sum(states[y] for y in likely)
    counts, chances = [found[y] for y in likely], [states[y] for y in likely]
    if rest[1] > 1e-9:
        counts, chances = [*counts, rest[0]], [*chances, rest[1]]
    assert stats.chisquare(counts, draws * np.array(chances)).pvalue > 1e-6


def test_what_iterative_poisson_breaks():
    """After 7 rounds 0.5 % of the draws do not have k ones, and the mean is not σ_k(θ)."""
    probs = [0.9, 0.7, 0.3, 0.1]
    states = chain.law(probs, 2, 7)
    assert sum(c for y, c in states.items() if sum(y) != 2) == pytest.approx(0.0047, abs=1e-4)
    mean = sum(c * np.array(y) for y, c in states.items())
    assert mean == pytest.approx([0.951, 0.815, 0.185, 0.049], abs=1e-3)


def test_the_gradient_is_that_of_the_rescaled_sigmoids():
    theta = _theta(3, 6).requires_grad_()
    law = KHot(2, logits=theta)
    x = estimators.iterative_poisson(law, sample_shape=(40,), generator=_generator())
    assert x.shape == (40, 3, 6)
    assert set(x.detach().unique().tolist()) == {0, 1}
    weight = _theta(6, seed=8)
    for row in range(3):
        probs = torch.sigmoid(theta[row])
        total = probs.sum()
        soft = 2 * probs / total if total >= 2 else 1 - (1 - probs) * 4 / (6 - total)
        np.testing.assert_allclose(
            soft.detach(), chain.rescaled(probs.detach().numpy(), 2), rtol=1e-12
        )
        (expected,) = torch.autograd.grad(soft @ weight, theta)
        (found,) = torch.autograd.grad((x[:, row] @ weight).mean(), theta, retain_graph=True)
        torch.testing.assert_close(found, expected)
    losses = estimators.iterative_poisson(law, lambda x: x.sum(-1), (5,))
    assert losses.shape == (5, 3)


def test_rounds_near_k_ones():
    law = KHot(12, logits=_theta(2_000, 30))
    misses = [
        (estimators.iterative_poisson(law, rounds=rounds).sum(-1) - 12).abs().mean().item()
        for rounds in (1, 3, 7)
    ]
    assert misses[0] > 1.5
    assert misses[0] > 1.5 * misses[1] > 1.5**2 * misses[2] > 0


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_units_that_take_no_part_and_units_that_always_do(dtype):
    logits = torch.tensor([0.0, -math.inf, 1.0, math.inf, -1.0, -math.inf], dtype=dtype)
    for k in (1, 2, 3, 4, 6):
        law = KHot(k, logits=logits)
        x = estimators.iterative_poisson(law, sample_shape=(300,), generator=_generator())
        assert x.dtype == dtype
        assert (x[:, [1, 5]] == 0).all()
        assert (x[:, 3] == 1).all()
        if k >= 4:
            assert (x.sum(-1) == 4).all()


def test_iterative_poisson_wants_a_whole_k():
    with pytest.raises(ValueError, match=r"k must be whole for the estimator iterative_poisson"):
        estimators.iterative_poisson(KHot(2.5, logits=torch.zeros(5)))
    with pytest.raises(ValueError, match="rounds must be at least 1, but got 0"):
        estimators.iterative_poisson(KHot(2, logits=torch.zeros(5)), rounds=0)
    gate = so.nn.KHotGate(6, 2, estimator="iterative_poisson")
    gate(torch.ones(40, 6)).mul(torch.arange(6.0)).sum().backward()
    assert gate.logits.grad[-1] > 0 > gate.logits.grad[0]


# ---- Xie & Ermon --------------------------------------------------------------------------------


def _relaxed_subset(keys, k, temperature):
    """Their recursion for one row of keys."""
    alpha, total = keys, torch.zeros_like(keys)
    for _ in range(k):
        share = torch.softmax(alpha / temperature, -1)
        total = total + share
        alpha = alpha + torch.log1p(-share)
    return total


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_sequential_softmaxes_of_gumbel_keys(temperature):
    theta = _theta(6).requires_grad_()
    law = KHot(3, logits=theta, design="gumbel_topk")
    options = {"temperature": temperature, "method": "sequential_softmax"}
    soft = estimators.relaxed(law, sample_shape=(20,), generator=_generator(), **options)
    keys = law.perturbed((20,), _generator())
    torch.testing.assert_close(soft, _relaxed_subset(keys, 3, temperature))
    torch.testing.assert_close(soft.sum(-1), torch.full((20,), 3.0, dtype=torch.float64))
    hard = estimators.relaxed(law, sample_shape=(20,), hard=True, generator=_generator(), **options)
    assert torch.equal(hard.detach(), so.hard.topk(keys.detach(), 3))
    weight = _theta(6, seed=8)
    gradients = [
        torch.autograd.grad((x @ weight).sum(), theta, retain_graph=True)[0]
        for x in (hard, _relaxed_subset(keys, 3, temperature))
    ]
    torch.testing.assert_close(*gradients)


def test_any_method_relaxes_the_keys():
    theta = _theta(2, 6)
    for k, method in ((2, "laplace"), (2.5, "logistic"), (None, "uniform")):
        law = KHot(k, logits=theta, design="sampford")
        soft = estimators.relaxed(law, method=method, generator=_generator())
        torch.testing.assert_close(soft.sum(-1), law.probs.sum(-1))
    law = KHot(2, logits=theta, method="laplace", design="sampford")
    named = estimators.relaxed(law, method="laplace", generator=_generator())
    torch.testing.assert_close(named, estimators.relaxed(law, generator=_generator()))
    with pytest.raises(ValueError, match="method must be one of"):
        estimators.relaxed(law, method="softmaxes")

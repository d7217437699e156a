"""Baselines against formulas written from their papers, where no other test has one.

NeuralSort, SoftSort and the two masks are checked so in tests/relaxations/test_row_softmax.py,
networks in test_networks.py, the losses of Berrada et al. and Lapin et al. in
tests/losses/test_margins.py.
"""

from itertools import permutations

import mpmath
import numpy as np
import pytest
import torch
from scipy.optimize import nnls
from scipy.stats import gumbel_r, kstest

import softorder as so
from softorder.distributions import KHot
from tests.oracles import bisection
from tests.peers.statements import scores


def _nearest(point, vector):
    """The point of the hull of all orders of a vector that is nearest to another, from vertices.

    Least squares with weights ≥ 0, which a heavy row makes sum to 1.
    """
    vertices = np.array(list(permutations(vector))).T
    heavy = 1e6
    rows = np.vstack([vertices, heavy * np.ones(vertices.shape[1])])
    weights, _ = nnls(rows, np.append(point, heavy), maxiter=10_000)
    return torch.from_numpy(vertices @ weights)


@pytest.mark.parametrize("strength", [0.3, 2.0, 30.0])
def test_permutahedra_by_their_vertices(strength):
    """Blondel et al. (2020): the nearest points of the two hulls, with all 120 vertices."""
    x, places = scores(5), np.arange(5.0, 0, -1)
    options = {"method": "permutahedron", "temperature": strength}
    found = so.soft_rank(x, **options)
    expected = _nearest(x.numpy() / strength, places)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)
    found = so.soft_sort(x, descending=True, **options)
    expected = _nearest(places / strength, x.numpy())
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("temperature", [0.05, 0.5, 3.0])
def test_sequential_softmax_in_fifty_digits(temperature):
    """Plötz & Roth (2018): α_{j+1} = α_j + log(1 - softmax(α_j/τ))."""
    x = scores(7)
    with mpmath.workdps(50):
        alpha, total = [mpmath.mpf(v) for v in x.tolist()], [mpmath.mpf(0)] * 7
        for _ in range(3):
            weight = [mpmath.exp(a / mpmath.mpf(temperature)) for a in alpha]
            p = [w / mpmath.fsum(weight) for w in weight]
            total = [t + v for t, v in zip(total, p, strict=True)]
            alpha = [a + mpmath.log(1 - v) for a, v in zip(alpha, p, strict=True)]
        truth = torch.tensor([float(t) for t in total], dtype=torch.float64)
    found = so.soft_topk(x, 3, method="sequential_softmax", temperature=temperature)
    torch.testing.assert_close(found, truth, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("k", [1, 2.5, 6])
def test_renormalized_sigmoids_meet_their_budget(k):
    """Pervez et al. (2023): one family of σ or of 1 - σ is scaled, ratios within it are kept."""
    x = scores(8, seed=2)
    p = so.soft_topk(x, k, method="renormalized_sigmoid", temperature=0.7)
    sigmoid = 1 / (1 + torch.exp(-x / 0.7))
    assert p.sum().item() == pytest.approx(k, abs=1e-12)
    ratio = p / sigmoid if k <= sigmoid.sum() else (1 - p) / (1 - sigmoid)
    torch.testing.assert_close(ratio, ratio.mean().expand(8))
    assert ratio.mean() <= 1


def test_simple_is_the_covariance_of_a_big_law():
    """Ahmed et al. (2023): ∂μ/∂θ = Cov(x) = P(i and j) - P(i) P(j), by polynomials.

    e_k of all weights, and without one or two units, in 40 digits; 30 units, 7 of them chosen.
    """
    n, k, theta = 30, 7, scores(30, seed=4)
    with mpmath.workdps(40):
        weights = [mpmath.exp(mpmath.mpf(t)) for t in theta.tolist()]

        def elementary(left_out, degree):
            e = [mpmath.mpf(1)] + degree * [mpmath.mpf(0)]
            for i, w in enumerate(weights):
                if i not in left_out:
                    for j in range(degree, 0, -1):
                        e[j] += w * e[j - 1]
            return e[degree]

        every = elementary((), k)
        single = [w * elementary((i,), k - 1) / every for i, w in enumerate(weights)]
        row = [
            weights[0] * weights[j] * elementary((0, j), k - 2) / every - single[0] * single[j]
            for j in range(1, n)
        ]
        row = [single[0] * (1 - single[0]), *row]
        truth = torch.tensor([float(v) for v in row], dtype=torch.float64)
        mean = torch.tensor([float(v) for v in single], dtype=torch.float64)
    theta = theta.requires_grad_()
    law = KHot(k, logits=theta)
    x = so.estimators.simple(law, generator=torch.Generator().manual_seed(0))
    (found,) = torch.autograd.grad(x[0], theta)
    torch.testing.assert_close(found, truth, rtol=1e-10, atol=1e-14)
    torch.testing.assert_close(law.mean.detach(), mean, rtol=1e-12, atol=0)


def test_relaxed_draws_are_a_soft_top_k_of_gumbel_keys():
    """The k-hot paper, algorithm 3; Gumbel noise by a Kolmogorov-Smirnov test (fails 1 in 10⁴).

    The soft top-k of the same keys comes from bisection in another program.
    """
    theta, k, temperature = scores(6), 2, 0.7
    law = KHot(k, logits=theta, design="gumbel_topk")
    keys = law.perturbed((2000,), torch.Generator().manual_seed(0))
    noise = (keys - theta).flatten().numpy()
    assert kstest(noise, gumbel_r.cdf).pvalue > 1e-4
    draws = so.estimators.relaxed(
        law, None, (2000,), temperature=temperature, generator=torch.Generator().manual_seed(0)
    )
    truth = bisection.soft_topk(keys[:50].numpy(), k, temperature, "logistic").p
    torch.testing.assert_close(draws[:50], torch.from_numpy(truth), rtol=0, atol=1e-12)
    hard = so.estimators.relaxed(
        law, None, (2000,), hard=True, generator=torch.Generator().manual_seed(0)
    )
    assert torch.equal(hard, torch.zeros_like(keys).scatter(-1, keys.topk(k).indices, 1.0))


def test_hinge_gradients_are_those_of_the_definition():
    """Lapin et al. (2015): the mean of the k largest margins, off its kinks."""
    x, target, k = scores(6, 8, seed=1), torch.tensor([0, 1, 2, 3, 4, 5]), 3

    def definition(x):
        margins = x - x.gather(-1, target.unsqueeze(-1)) + 1.0
        margins = margins.scatter(-1, target.unsqueeze(-1), 0.0)
        return margins.sort(-1, descending=True).values[:, :k].mean(-1).clamp(min=0).sum()

    ours, other = (x.clone().requires_grad_() for _ in range(2))
    loss = so.losses.top_k_hinge(ours, target, k, average=True, reduction="sum")
    expected = definition(other)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(
        torch.autograd.grad(loss, ours)[0], torch.autograd.grad(expected, other)[0]
    )

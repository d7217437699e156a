"""SIMPLE and SFESS: k-subsets with gradients. Not on the registry: formulas stand for them.

Both speak of the law P(x) ∝ e^<θ,x> of k-hot x: SIMPLE of its marginals, SFESS of its log P.
"""

import cmath
import math
from itertools import combinations, permutations, product

import pytest
import torch
from torch.nn import functional

import softorder as so
from tests.peers.statements import ALL, Peer, agreement, difference, error, scores

SIMPLE = Peer("SIMPLE", "commit 63027a6")
SFESS = Peer("SFESS", "commit 5cad65a")


def _subsets(n, k):
    rows = [[float(i in chosen) for i in range(n)] for chosen in combinations(range(n), k)]
    return torch.tensor(rows, dtype=torch.float64)


def _law(theta, k):
    """P of every subset."""
    return torch.softmax(_subsets(len(theta), k) @ theta, 0)


def _marginals(theta, k):
    """SIMPLE: the derivative of log P(k ones) in log p_i, with 1 - p_i kept.

    Units are Bernoulli(σ(θ_i)); counts[j] is the probability of j ones among the units so far.
    """
    zero = torch.sigmoid(-theta)

    def log_k_ones(log_p):
        counts = [torch.ones_like(theta[0])] + k * [torch.zeros_like(theta[0])]
        for one, none in zip(log_p.exp(), zero, strict=True):
            taken = [torch.zeros_like(one), *(one * c for c in counts)]
            counts = [none * c + t for c, t in zip(counts, taken, strict=False)]
        return counts[k].log()

    return torch.func.grad(log_k_ones)(functional.logsigmoid(theta))


@agreement(
    SIMPLE,
    theirs="marginals of the k-subset law, paper",
    ours="KHot(k, logits=θ).mean, and the gradient of estimators.simple",
    values=ALL,
    gradients=ALL,
)
def test_marginals():
    def ours(theta):
        return so.distributions.KHot(4, logits=theta).mean

    return ours, lambda theta: _marginals(theta, 4), scores(9)


def test_marginals_by_enumeration():
    theta = scores(7)
    truth = _law(theta, 3) @ _subsets(7, 3)
    torch.testing.assert_close(_marginals(theta, 3), truth)
    torch.testing.assert_close(so.distributions.KHot(3, logits=theta).mean, truth)


_THETA = torch.tensor([1.5, 0.3, -0.4, -1.2, 0.8], dtype=torch.float64)


@difference(
    SIMPLE,
    "gradient in θ of the marginals, v2/simple.py fed with logsigmoid(θ)",
    theirs="Cov(x) diag(1 - σ(θ)), off by 0.17: log(1 - p) is cut out of the graph",
    ours="Cov(x)",
    proof="enumeration of the ten subsets",
)
def test_gradient_of_the_marginals():
    def enumerated(theta):
        return _law(theta, 2) @ _subsets(5, 2)

    def published(theta):
        log_p = functional.logsigmoid(theta)
        return enumerated(log_p - functional.logsigmoid(-theta.detach()))

    truth = torch.func.jacrev(enumerated)(_THETA)
    p, x = _law(_THETA, 2), _subsets(5, 2)
    covariance = x.T @ torch.diag(p) @ x - torch.outer(p @ x, p @ x)
    torch.testing.assert_close(truth, covariance)
    theta = _THETA.clone().requires_grad_()
    draw = so.estimators.simple(so.distributions.KHot(2, logits=theta))
    ours = torch.stack([torch.autograd.grad(v, theta, retain_graph=True)[0] for v in draw])
    torch.testing.assert_close(ours, truth)
    theirs = torch.func.jacrev(published)(_THETA)
    torch.testing.assert_close(theirs, truth * torch.sigmoid(-_THETA))
    assert error(theirs, truth) == pytest.approx(0.17, abs=1e-3)


def _gumbel_top_k(theta, k):
    """P of every subset if the k largest of θ + Gumbel noise are taken: orders of Plackett-Luce."""
    weight, result = theta.exp(), []
    for chosen in combinations(range(len(theta)), k):
        total = 0.0
        for order in permutations(chosen):
            left, chance = weight.sum(), 1.0
            for i in order:
                chance, left = chance * weight[i] / left, left - weight[i]
            total = total + chance
        result.append(total)
    return torch.stack(result)


@difference(
    SIMPLE,
    "draws of v2/simple.py: Gumbel top-k of log p, not of the law whose marginals it has",
    theirs="0.21 away in total variation",
    ours="the law itself",
    proof="enumeration of the ten subsets; 100,000 draws",
)
def test_draws():
    law = _law(_THETA, 2)
    theirs = _gumbel_top_k(functional.logsigmoid(_THETA), 2)
    assert (theirs - law).abs().sum().item() / 2 == pytest.approx(0.208, abs=1e-3)
    generator = torch.Generator().manual_seed(0)
    draws = so.distributions.KHot(2, logits=_THETA).sample((100_000,), generator)
    found = (draws @ _subsets(5, 2).T == 2).double().mean(0)
    error = (law * (1 - law) / 100_000).sqrt()
    assert ((found - law).abs() < 5 * error).all()


def _fourier(theta, k):
    """log P(k ones) as SFESS has it: a discrete Fourier transform in complex64, cut off at eps."""
    n = len(theta)
    p = torch.sigmoid(theta).to(torch.complex64).unsqueeze(-1)
    turns = [cmath.exp(2j * cmath.pi * i / (n + 1)) for i in range(n + 1)]
    product = (p * torch.tensor(turns, dtype=torch.complex64) + 1 - p).prod(0)
    eps = torch.finfo(torch.float32).eps
    return torch.fft.fft(product, norm="forward").real[k].clamp(eps, 1 - eps).log()


def _published_log_prob(theta, k):
    """Of the first k."""
    first = (torch.arange(len(theta)) < k).float()
    one_by_one = torch.distributions.Bernoulli(logits=theta.float()).log_prob(first).sum()
    return one_by_one - _fourier(theta.float(), k)


def _our_log_prob(theta, k, dtype=torch.float64):
    first = (torch.arange(len(theta)) < k).to(dtype)
    return so.distributions.KHot(k, logits=theta.to(dtype)).log_prob(first)


@agreement(
    SFESS,
    theirs="log_prob, n = 16, k = 3",
    ours="KHot(k, logits=θ).log_prob(x)",
    values=ALL,
    gradients=None,
    note="float32; few units",
)
def test_log_prob_of_few():
    x = scores(16, dtype=torch.float32)
    return (
        lambda x: _our_log_prob(x, 3, torch.float32).unsqueeze(0),
        lambda x: _published_log_prob(x, 3).unsqueeze(0),
        x,
    )


@difference(
    SFESS,
    "log_prob, k = 5 of n = 64, and k = 10 of n = 5,000, θ standard normal",
    theirs="15 and 3,909 nats too small",
    ours="right to 12 digits",
    proof="elementary symmetric polynomials in integers, 200 bits behind the point",
)
@pytest.mark.parametrize(("n", "k", "off"), [(64, 5, 14.73), (5000, 10, 3909.2)])
def test_log_prob_of_many(n, k, off):
    theta = scores(n, dtype=torch.float32)
    truth = theta[:k].double().sum().item() - _log_elementary(theta.double(), k)
    assert _our_log_prob(theta, k).item() == pytest.approx(truth, rel=1e-12)
    assert truth - _published_log_prob(theta, k).item() == pytest.approx(off, rel=0.01)


def _log_elementary(theta, k):
    """log Σ over subsets of Π e^θ, in integers: 200 bits behind the point, 60 of each weight."""
    unit = 1 << 200
    weights = [int(w * 2.0**60) for w in theta.exp().tolist()]
    total = [unit] + k * [0]
    for weight in weights:
        for j in range(k, 0, -1):
            total[j] += total[j - 1] * weight >> 60
    bits = max(total[k].bit_length() - 60, 0)
    return math.log(total[k] >> bits) + (bits - 200) * math.log(2)


@difference(
    SFESS,
    "score function with a leave-one-out baseline, 2 draws",
    theirs="half of the gradient: `losses[~i]` takes all draws, its own included",
    ours="unbiased",
    proof="the mean over all pairs of draws, by enumeration",
)
def test_baseline():
    """With m draws the own loss in the baseline scales the mean of the estimate by 1 - 1/m."""
    x, loss = _subsets(5, 2), scores(10, seed=3)
    law, score = _law(_THETA, 2), torch.func.jacrev(lambda t: _law(t, 2).log())(_THETA)
    truth = (law * loss) @ score
    published, alone = torch.zeros(5).double(), torch.zeros(5).double()
    for i, j in product(range(len(x)), repeat=2):
        reverse = ~torch.arange(2)
        assert reverse.tolist() == [-1, -2]  # all of them, backwards
        both = torch.stack([loss[i], loss[j]])
        baseline = both[reverse].mean()
        chance = law[i] * law[j]
        published += (
            chance * ((loss[i] - baseline) * score[i] + (loss[j] - baseline) * score[j]) / 2
        )
        alone += chance * ((loss[i] - loss[j]) * score[i] + (loss[j] - loss[i]) * score[j]) / 2
    torch.testing.assert_close(alone, truth)
    torch.testing.assert_close(published, truth / 2)
    # ours of one pair is the leave-one-out term
    theta = _THETA.clone().requires_grad_()
    law = so.distributions.KHot(2, logits=theta)
    seen = []

    def record(draws):
        seen.append((draws @ x.T == 2).double().argmax(-1))
        return loss[seen[0]]

    generator = torch.Generator().manual_seed(0)
    value = so.estimators.score_function(law, record, (2,), generator=generator).mean()
    (found,) = torch.autograd.grad(value, theta)
    i, j = seen[0].tolist()
    assert i != j
    torch.testing.assert_close(found, (loss[i] - loss[j]) * (score[i] - score[j]) / 2)

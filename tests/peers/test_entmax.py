"""entmax: projections onto the simplex and, with a budget, onto the k-capped simplex."""

import math

import pytest
import torch

import softorder as so
from tests.peers.statements import (
    ALL,
    Peer,
    agreement,
    difference,
    error,
    gradient,
    scores,
    slopes,
)

PEER = Peer("entmax", "1.3", "entmax")


def _ours(k, temperature=1.0):
    return lambda x: so.soft_topk(x, k, method="uniform", temperature=temperature)


def _theirs(k, temperature=1.0):
    entmax = PEER.load()
    return lambda x: entmax.budget_bisect(x / temperature, budget=k)


@agreement(
    PEER,
    theirs="budget_bisect(x/τ, k)",
    ours='soft_topk(x, k, method="uniform", temperature=τ)',
    values=ALL,
    gradients=ALL,
)
def test_budgets():
    options = [(1, 0.5), (2, 1.0), (2.5, 1.0), (8, 20.0)]
    return [(_ours(*option), _theirs(*option), scores(4, 9)) for option in options]


@agreement(
    PEER,
    theirs="sparsemax(x/τ)",
    ours='soft_topk(x, 1, method="uniform", temperature=τ)',
    values=ALL,
    gradients=ALL,
)
def test_sparsemax():
    entmax = PEER.load()
    return [
        (_ours(1, t), lambda x, t=t: entmax.sparsemax(x / t), scores(4, 9)) for t in (0.3, 1.0, 5.0)
    ]


@difference(
    PEER,
    "gradient of `budget_bisect`, shape (5, 1, 9)",
    theirs="wrong, silently: rows are mixed",
    ours="right",
    proof="central differences of their own values",
)
def test_gradient_beside_an_axis_of_one():
    x = scores(5, 1, 9, seed=2)
    truth = slopes(_theirs(4.5), x)
    torch.testing.assert_close(gradient(_ours(4.5), x), truth, rtol=0, atol=1e-8)
    assert error(gradient(_theirs(4.5), x), truth) > 1
    # the same rows without that axis are right
    torch.testing.assert_close(gradient(_theirs(4.5), x[:, 0]), slopes(_theirs(4.5), x[:, 0]))


@difference(
    PEER,
    "gradient in k of `budget_bisect`",
    theirs="None, without a word",
    ours="right",
    proof="dp/dk is 1/(number of p strictly inside), and central differences",
)
def test_gradient_in_k():
    entmax, x = PEER.load(), scores(9)
    k = torch.tensor(4.5, dtype=torch.float64, requires_grad=True)
    p = entmax.budget_bisect(x.requires_grad_(), budget=k)
    assert torch.autograd.grad(p[0], k, allow_unused=True) == (None,)
    inside = (p > 0) & (p < 1)
    found = torch.autograd.functional.jacobian(lambda k: _ours(k)(x.detach()), k)
    torch.testing.assert_close(found, inside / inside.sum().double())
    difference = (_ours(4.5 + 1e-6)(x) - _ours(4.5 - 1e-6)(x)) / 2e-6
    torch.testing.assert_close(found, difference.detach(), rtol=0, atol=1e-9)


@difference(
    PEER,
    "a score of -inf, `budget_bisect`",
    theirs="the row is NaN",
    ours="0 for it, the rest as without it",
    proof="the row without it",
)
def test_absent_scores():
    x = torch.tensor([1.0, 3.0, -math.inf, 2.9, 0.5], dtype=torch.float64)
    assert _theirs(1.5)(x).isnan().all()
    found = _ours(1.5)(x)
    assert found[2] == 0
    rest = x[[0, 1, 3, 4]]
    torch.testing.assert_close(found[[0, 1, 3, 4]], _theirs(1.5)(rest))


@difference(
    PEER,
    "a score of +inf, `sparsemax`",
    theirs="raises: index -1 is out of bounds",
    ours="1 for it",
    proof="the limit of a score that grows",
)
def test_certain_scores():
    entmax = PEER.load()
    x = torch.tensor([1.0, 3.0, math.inf], dtype=torch.float64)
    with pytest.raises((RuntimeError, IndexError), match="out of bounds"):
        entmax.sparsemax(x)
    limit = entmax.sparsemax(x.clamp(max=1e6))
    assert torch.equal(_ours(1)(x), limit)


@difference(
    PEER,
    "float32, scores + 10⁶, `budget_bisect`",
    theirs="p off by 0.047",
    ours="exact",
    proof="the same float32 scores in float64",
)
def test_shifted_scores():
    x = (scores(4, 9) + 1e6).float()
    truth = _ours(2)(x.double())
    torch.testing.assert_close(truth, _theirs(2)(x.double()), rtol=0, atol=1e-9)
    assert _ours(2)(x).double().sub(truth).abs().max() < 1e-7
    assert error(_theirs(2)(x), truth) == pytest.approx(0.047, abs=0.003)


@difference(
    PEER,
    "float64, scores of 10¹², τ = 1, `budget_bisect`",
    theirs="50 halvings are too few: Σp is off by 2e-3",
    ours="Σp = k",
    proof="the constraint itself",
)
def test_wide_scores():
    x = 1e12 * scores(4, 9)
    assert (_theirs(2.5)(x).sum(-1) - 2.5).abs().max() > 1e-3
    assert (_ours(2.5)(x).sum(-1) - 2.5).abs().max() < 1e-12

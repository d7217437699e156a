"""Softmax k times, against the recursion of its paper."""

import math

import pytest
import torch
from torch.nn import functional

import softorder as so


def _scores(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def _rounds(x, temperature=1.0):
    """One row of scores: softmax, then the winner is masked with minus infinity, and again."""
    left = x / temperature
    for _ in range(len(x)):
        yield torch.softmax(left, -1)
        winner = min(i for i, v in enumerate(left.tolist()) if v == max(left.tolist()))
        left = torch.where(torch.arange(len(x)) == winner, -math.inf, left)


def _oracle(x, k, temperature=1.0):
    """The first k softmaxes, added up; the last one in part."""
    parts = [min(max(k - j, 0), 1) for j in range(len(x))]
    return sum(part * p for part, p in zip(parts, _rounds(x, temperature), strict=True))


def _topk(x, k, **options):
    return so.soft_topk(x, k, method="softmax_k_times", **options)


@pytest.mark.parametrize("temperature", [1e-3, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("k", [1, 2, 3.25, 7, 9])
def test_is_the_recursion_of_the_paper(k, temperature):
    rows = _scores(20, 9)
    expected = torch.stack([_oracle(x, k, temperature) for x in rows])
    torch.testing.assert_close(
        _topk(rows, k, temperature=temperature), expected, atol=1e-13, rtol=0
    )


def test_its_gradient_is_that_of_the_softmaxes():
    rows, upstream = _scores(20, 9).requires_grad_(), _scores(20, 9, seed=1)
    temperature = torch.tensor(0.4, dtype=torch.float64, requires_grad=True)
    expected = torch.stack([_oracle(x, 4.5, temperature) for x in rows])
    leaves = rows, temperature
    found = torch.autograd.grad(_topk(rows, 4.5, temperature=temperature), leaves, upstream)
    torch.testing.assert_close(found, torch.autograd.grad(expected, leaves, upstream))


def test_the_gradient_of_k_is_the_softmax_that_counts_in_part():
    x = _scores(6)
    k = torch.tensor(2.5, dtype=torch.float64)
    slope = torch.func.jacrev(lambda k: _topk(x, k))(k)
    torch.testing.assert_close(slope, list(_rounds(x))[2])


def test_of_equal_scores_the_first_wins():
    """Of three equal ones the last loses two softmaxes, and is all of the third."""
    p = _topk(torch.zeros(3).double(), 3)
    torch.testing.assert_close(p, torch.tensor([1 / 3, 1 / 3 + 1 / 2, 1 / 3 + 1 / 2 + 1]).double())
    x = torch.tensor([0.0, 2.0, 1.0, 2.0, -0.0, 2.0, 1.0]).double()
    torch.testing.assert_close(_topk(x, 5), _oracle(x, 5))


def test_k_and_available_scores_may_differ_from_row_to_row():
    rows, k = _scores(4, 8), torch.tensor([1.0, 2.5, 8.0, 6.0])
    mask = torch.arange(8) < torch.tensor([8, 5, 8, 4]).unsqueeze(-1)
    p = _topk(rows, k, mask=mask)
    for row, x in enumerate(rows):
        torch.testing.assert_close(p[row][mask[row]], _oracle(x[mask[row]], k[row].item()))
    assert (p[~mask] == 0).all()


def test_far_apart_scores_lose_nothing_in_float32():
    """Rounds that start 10,000 τ below the first one are as exact as that."""
    x = torch.tensor([0.0, -1e4, -1e4 - 1, -1e4 - 1.5, -3e4], dtype=torch.float32)
    expected = _oracle(x.double(), 3).float()
    torch.testing.assert_close(_topk(x, 3), expected, atol=2e-7, rtol=0)


def test_long_rows_meet_only_winners_in_pairs():
    """A million scores in nine rounds, without nine million numbers: the tail is one softmax."""
    x = _scores(1_000_000)
    p = _topk(x, 9, temperature=0.1)
    left, total = x / 0.1, torch.zeros_like(x)
    for winner in x.topk(9).indices:
        total += torch.softmax(left, -1)
        left[winner] = -math.inf
    torch.testing.assert_close(p, total, atol=1e-12, rtol=0)


def test_the_top_k_loss_sees_it():
    scores, target = _scores(5, 7), torch.arange(5)
    loss = so.losses.TopKCrossEntropyLoss([0.5, 0, 0.5], method="softmax_k_times", top1="operator")
    masses = torch.stack([0.5 * (_oracle(x, 1) + _oracle(x, 3)) for x in scores])
    expected = functional.nll_loss(masses.log(), target)
    torch.testing.assert_close(loss(scores, target), expected)


def test_nearest_neighbours_see_it():
    queries, templates = _scores(3, 2), _scores(6, 2, seed=1)
    options = {"method": "softmax_k_times", "temperature": 0.5}
    found = so.nn.functional.soft_neighbours(queries, templates, 4, **options)
    lengths = torch.cdist(queries, templates)
    expected = torch.stack([_oracle(-x, 4, 0.5) for x in lengths])
    torch.testing.assert_close(found, expected)

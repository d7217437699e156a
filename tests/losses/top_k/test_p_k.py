"""p_k: shared, per class and per sample, given and learned."""

import pytest
import torch
from torch.nn import functional

import softorder as so
from tests.losses.top_k.problem import problem

_loss = so.losses.top_k_cross_entropy


@pytest.mark.parametrize("per", ["shared", "class", "sample"])
def test_p_k_may_learn(per):
    scores, target = problem(3, 6)
    shape = {"shared": (4,), "class": (6, 4), "sample": (3, 4)}[per]
    logits = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))

    def call(logits):
        p_k = logits.softmax(-1)
        return _loss(scores, target, p_k, per_sample=per == "sample", temperature=0.5)

    torch.autograd.gradcheck(call, logits.requires_grad_())


def test_a_single_p_k_may_learn_too():
    scores, target = problem(3, 6)
    p_k = torch.ones(1, dtype=torch.float64, requires_grad=True)
    expected = functional.cross_entropy(scores, target)
    loss = _loss(scores, target, p_k)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(torch.autograd.grad(loss, p_k)[0], expected.reshape(1))
    with torch.no_grad():
        torch.testing.assert_close(_loss(scores, target, p_k), expected)
        two = torch.tensor([1.0, 0.0], requires_grad=True)
        torch.testing.assert_close(_loss(scores, target, two), expected)


def test_p_k_that_learns_feels_the_k_without_weight():
    scores, target = problem(3, 6)
    p_k = torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64, requires_grad=True)
    loss = _loss(scores, target, p_k, top1="operator", temperature=0.5)
    (gradient,) = torch.autograd.grad(loss, p_k)
    assert gradient[2] < gradient[1] < gradient[0] < 0  # more guesses, less loss
    scores[:, :] -= 1e4 * functional.one_hot(target, 6)
    (gradient,) = torch.autograd.grad(_loss(scores, target, p_k, top1="operator"), p_k)
    assert gradient.isfinite().all()


def test_p_k_per_class_is_that_of_the_target():
    scores, target = problem(8, 4)
    table = torch.tensor([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.2, 0.3, 0.5]], dtype=torch.float64)
    found = _loss(scores, target, table, reduction="none")
    for row in range(8):
        one = _loss(scores[row], target[row], table[target[row]])
        torch.testing.assert_close(found[row], one)
    module = so.losses.TopKCrossEntropyLoss(table, reduction="none")
    assert torch.equal(module(scores, target), found)
    assert torch.equal(module(scores, target, table[target]), found)
    assert torch.equal(_loss(scores, target, table.tolist(), reduction="none"), found)

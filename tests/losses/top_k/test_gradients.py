"""Gradients of top_k_cross_entropy: right for every method, and finite for hopeless targets."""

import pytest
import torch

import softorder as so
from tests.losses.top_k.problem import EVEN, FIVE, METHODS, MIX, ROWS, TRANSPORT, problem
from tests.oracles.densities import BUILT_IN
from tests.user_density import Student

_loss = so.losses.top_k_cross_entropy


@pytest.mark.parametrize("temperature", [1e-3, 0.3, 3.0])
@pytest.mark.parametrize("density", list(BUILT_IN))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_fused_and_plain_gradients_agree(kernel, density, temperature, dtype):
    """Far targets, gaps that underflow and all; the plain path in float64."""
    scores, target = problem(30, 20, dtype)
    scores[0, target[0]] -= 1e4
    scores[1, :3] += 100
    found, expected = (
        _gradients(scores.to(kind), target, density, temperature, plain)
        for kind, plain in ((dtype, False), (torch.float64, True))
    )
    rtol = 1e-12 if dtype is torch.float64 else 2e-4
    for one, other in zip(found, expected, strict=True):
        scale = other.abs().amax(-1, keepdim=True).clamp(min=1e-30)
        torch.testing.assert_close(one.double() / scale, other / scale, rtol=0, atol=rtol)


def _gradients(scores, target, density, temperature, plain):
    scores = scores.clone().requires_grad_()
    tau = torch.full(target.shape, temperature, dtype=torch.float64, requires_grad=True)
    losses = _loss(
        scores, target, EVEN, method=density, temperature=tau, top1="operator", reduction="none"
    )
    lost = losses.isinf()  # uniform has exact zeros, which have no gradient
    # create_graph takes the plain path
    return torch.autograd.grad(losses[~lost].sum(), (scores, tau), create_graph=plain)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("method", [*METHODS, Student()], ids=str)
@pytest.mark.parametrize("top1", ["softmax", "operator"])
def test_gradcheck_for_every_method(method, top1):
    scores, target = problem(3, 6)
    tau = torch.tensor(4.0, dtype=torch.float64, requires_grad=True)  # no zeros for uniform
    p_k = torch.tensor([0.3, 0.2, 0.5], dtype=torch.float64)

    def call(scores, tau):
        return _loss(scores, target, p_k, method=method, temperature=tau, top1=top1)

    torch.autograd.gradcheck(call, (scores.requires_grad_(), tau))


@pytest.mark.parametrize("density", ["logistic", "normal"])
def test_second_derivatives(density):
    scores, target = problem(2, 5)
    tau = torch.tensor(0.8, dtype=torch.float64, requires_grad=True)

    def call(scores, tau):
        return _loss(scores, target, EVEN, method=density, temperature=tau)

    torch.autograd.gradgradcheck(call, (scores.requires_grad_(), tau))


@pytest.mark.parametrize("method", ["laplace", "logistic", "normal", "cauchy", *TRANSPORT])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("top1", ["softmax", "operator"])
def test_a_hopeless_target_is_pulled_up(kernel, method, dtype, top1):
    scores, target = problem(3, 50, dtype)
    scores[0, target[0]] -= 1e4
    scores.requires_grad_()
    loss = _loss(scores, target, FIVE, method=method, temperature=0.5, top1=top1)
    (gradient,) = torch.autograd.grad(loss, scores)
    assert loss.isfinite()
    assert gradient.isfinite().all()
    assert gradient[0, target[0]] < 0
    assert abs(gradient[0].sum()) < 1e-4 * abs(gradient[0]).max()


@pytest.mark.parametrize("method", [*ROWS, "uniform"])
def test_other_methods_stay_finite(method):
    scores, target = problem(3, 20, torch.float32)
    scores[0, target[0]] -= 1e4
    scores.requires_grad_()
    loss = _loss(scores, target, MIX, method=method, temperature=0.5, reduction="none")
    if method != "uniform":  # whose zeros are exact
        assert loss.isfinite().all()
    (gradient,) = torch.autograd.grad(loss[loss.isfinite()].sum(), scores)
    assert gradient.isfinite().all()

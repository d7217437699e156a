"""The law of Pareto sampling by compiled kernels, against plain torch, for every level."""

import pytest
import torch

import softorder as so
from softorder.kernels import _native
from softorder.kernels.pareto import cpu, reference
from tests.machines.cases.pareto import problem, shares_of


@pytest.mark.parametrize("fine", [False, True])
@pytest.mark.parametrize("n", [1, 2, 5, 64, 700])
def test_log_prob_and_gradient_are_those_of_plain_torch(level, fine, n):
    for spread in (0.1, 1.0, 8.0, 40.0):
        u, size, draws = problem(n, spread)
        shares = shares_of(n, spread)[-1]
        with _native.use("native"), _native.use_level(level):
            weights = cpu.weights(u, size, fine)
            log_p, taken = cpu.log_prob(u, size, draws, fine)
            moved = cpu.vjp(u, size, shares, fine)
        expected = reference.log_prob(u, size, draws, fine)
        torch.testing.assert_close((log_p, taken), expected, rtol=1e-11, atol=1e-11)
        right = reference.weights(u, size, fine)
        torch.testing.assert_close(weights, right, rtol=1e-11, atol=0)
        right = reference.vjp(u, size, shares, fine)
        limit = 1e-11 * max(1, right.abs().max().item())
        torch.testing.assert_close(moved, right, rtol=0, atol=limit)


@pytest.mark.parametrize("design", ["pareto", "pareto_corrected"])
def test_a_design_calls_them_once_each(design):
    theta = torch.randn(4, 30, dtype=torch.float64, requires_grad=True)
    x = so.distributions.KHot(7, logits=theta, design=design).sample((3,))
    slopes = {}
    for kind in ("native", "torch"):
        with _native.use(kind):
            before = [_native.calls[name] for name in ("pareto_forward", "pareto_backward")]
            loss = so.distributions.KHot(7, logits=theta, design=design).log_prob(x).sum()
            (slopes[kind],) = torch.autograd.grad(loss, theta)
            after = [_native.calls[name] for name in ("pareto_forward", "pareto_backward")]
            assert [b - a for a, b in zip(before, after, strict=True)] == 2 * [kind == "native"]
    torch.testing.assert_close(slopes["native"], slopes["torch"], rtol=1e-10, atol=1e-12)


def test_nan_stays_in_its_row():
    u, size, draws = problem(20, 1.0)
    u[3, 4] = torch.nan
    with _native.use("native"):
        log_p, _ = cpu.log_prob(u, size, draws, True)
        weights = cpu.weights(u, size, True)
    assert log_p[0].isnan().tolist() == [False, False, False, True]
    assert weights.isnan().any(-1).tolist() == [False, False, False, True]

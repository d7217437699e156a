"""log P of subsets by compiled kernels, against plain torch in float64, for every level."""

import math

import pytest
import torch

import softorder as so
from softorder.kernels import _native
from softorder.kernels.subsets import cpu, reference


def _problem(n, dtype, spread):
    generator = torch.Generator().manual_seed(n)
    theta = spread * torch.randn(5, n, dtype=torch.float64, generator=generator).to(dtype)
    size = torch.tensor([1, n // 2, n // 3, n - 2, min(n - 2, 2)], dtype=torch.float64)
    theta[1, 0], theta[2, 1] = -math.inf, math.inf
    noise = torch.randn(3, 5, n, dtype=torch.float64, generator=generator)
    order = (theta + noise).argsort(-1, descending=True).argsort(-1)
    draws = (order < size.unsqueeze(-1)).to(dtype)
    draws[2, 0] = 1  # too many
    draws[1, 1] = draws[1, 1].flip(0)  # perhaps impossible
    return theta, size, draws


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n", [5, 64, 700])
def test_log_prob_and_gradient_are_those_of_plain_torch(level, dtype, n):
    for spread in (0.1, 1.0, 8.0):
        theta, size, draws = _problem(n, dtype, spread)
        upstream = torch.linspace(-1, 2, 15, dtype=torch.float64).view(3, 5)
        with _native.use("native"), _native.use_level(level):
            log_p, *circle = cpu.log_prob(theta, size, draws)
            gradient = cpu.vjp(upstream, theta, size, draws, *circle)
        with _native.use("torch"):
            wide = theta.double(), size, draws.double()
            expected, *points = reference.log_prob(*wide)
            slopes = reference.vjp(upstream, *wide, *points)
        narrow = dtype == torch.float32
        torch.testing.assert_close(log_p, expected, rtol=1e-9 if narrow else 1e-13, atol=1e-9)
        limit = 3e-6 if narrow else 1e-12
        torch.testing.assert_close(gradient.double(), slopes, rtol=0, atol=limit)
        assert (gradient[1, 0], gradient[2, 1]) == (0, 0)


def test_a_design_calls_them_once_each():
    theta = torch.randn(4, 30, requires_grad=True)
    law = so.distributions.KHot(7, logits=theta)
    x = law.sample((3,))
    names = ("subsets_forward", "subsets_backward", "topk_forward")
    with _native.use("native"):
        before = [_native.calls[name] for name in names]
        law.log_prob(x).sum().backward()
        after = [_native.calls[name] for name in names]
    assert [b - a for a, b in zip(before, after, strict=True)] == [1, 1, 0]
    assert theta.grad.shape == theta.shape


def test_nan_stays_in_its_row():
    theta, size, draws = _problem(20, torch.float32, 1.0)
    theta[3, 4] = math.nan
    with _native.use("native"):
        log_p, *circle = cpu.log_prob(theta, size, draws)
        gradient = cpu.vjp(torch.ones_like(log_p), theta, size, draws, *circle)
    assert log_p.isnan().any(0).tolist() == [False, False, False, True, False]
    assert gradient.isnan().any(-1).tolist() == [False, False, False, True, False]

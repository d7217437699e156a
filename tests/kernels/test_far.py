"""Scores near the largest number of their format: only (x - b)/τ counts, wherever the row is."""

import math

import mpmath
import pytest
import torch

import softorder as so
from softorder.kernels import _native, fsum, threshold
from tests.oracles.densities import BUILT_IN

_TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}


def _problem(density, n, k, dtype, scale):
    """A row and τ in so many units: p, log p and their gradients in these units."""
    generator = torch.Generator().manual_seed(n)
    scores = torch.rand(5, n, generator=generator, dtype=torch.float64).to(dtype) * 7.9 - 3.95
    scores = (scores * scale).requires_grad_()
    options = {"temperature": 0.3 * scale, "method": density}
    p, log_p = so.soft_topk(scores, k, **options), so.log_soft_topk(scores, k, **options)
    weights = torch.linspace(-1, 1, n, dtype=dtype)
    upstream = p + torch.where(log_p.isfinite(), log_p, 0.0)
    (gradient,) = torch.autograd.grad((upstream * weights).sum(), scores)
    return p, log_p, gradient * scale


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("density", BUILT_IN)
def test_the_size_of_the_scores_does_not_count(kernel, density, dtype):
    largest = int(math.log2(torch.finfo(dtype).max)) - 2
    less = 20 if dtype is torch.float32 else 45  # still far, as csrc/threshold/far.hpp has it
    for n, k in ((7, 3), (7, 2.4), (100, 30.5)):
        near, far, farthest = (
            _problem(density, n, k, dtype, scale)
            for scale in (1.0, 2.0 ** (largest - less), 2.0**largest)
        )
        # at the very end gradients, in units of 1/τ, are below the smallest normal number
        pairs = [*zip(near, far, strict=True), *zip(near[:2], farthest, strict=False)]
        for one, other in pairs:
            tolerance = _TOLERANCE[dtype] * (1 + one[one.isfinite()].abs().max())
            torch.testing.assert_close(other, one, rtol=0, atol=tolerance.item())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("density", BUILT_IN)
@pytest.mark.parametrize("rows", [1, 5])  # five: side by side, in a tile
def test_from_one_end_of_the_format_to_the_other(kernel, density, dtype, rows):
    most = torch.finfo(dtype).max
    scores = torch.tensor([most, -most, most, 0.0], dtype=dtype).expand(rows, -1)
    for temperature in (1e-20, 1.0, 1e20):
        for k, expected in ((1.5, (0.75, 0, 0.75, 0)), (2, (1, 0, 1, 0)), (3, (1, 0, 1, 1))):
            x = scores.clone().requires_grad_()
            p = so.soft_topk(x, k, temperature=temperature, method=density)
            torch.testing.assert_close(p, torch.tensor(expected, dtype=dtype).expand(rows, -1))
            log_p = so.log_soft_topk(x, k, temperature=temperature, method=density)
            assert not log_p.isnan().any()
            (gradient,) = torch.autograd.grad(log_p[:, 0].sum(), x)
            assert gradient.isfinite().all()


@pytest.mark.parametrize("density", BUILT_IN)
def test_tiny_scores_beside_huge_ones(kernel, density):
    """Of which the threshold is near, decides; a guess from the quartiles is no guess here."""
    scores = torch.tensor([3e38] * 6 + [1e36, 9e14] + [0.0] * 33 + [-2e-10, -9e36] + [-3e38] * 10)
    for k in (20.5, 41, 42, 43, 43.5):
        p = so.soft_topk(scores, k, temperature=2e-29, method=density)
        assert abs(p.double().sum().item() - k) < 1e-4


def test_the_tails_of_cauchy_have_logarithms_far_out():
    u = torch.tensor([2e38, 3.4e38], requires_grad=True)
    log_tail = so.densities.BUILT_IN["cauchy"].log_tail(u)
    torch.testing.assert_close(log_tail, -torch.log(u.detach()) - math.log(math.pi))
    (slope,) = torch.autograd.grad(log_tail.sum(), u)
    torch.testing.assert_close(slope, -1 / u.detach())


def test_a_root_at_one_end_of_a_vast_gap(kernel):
    sources = torch.tensor([-3e38] * 6 + [3e38] * 10, dtype=torch.float64)
    levels = torch.tensor([5.9, 6.185, 15.7], dtype=torch.float64)
    found = fsum.invert(sources, levels, torch.tensor(0.3, dtype=torch.float64), "normal")
    shares = torch.tensor([5.9 / 6, 0.185 / 10, 9.7 / 10], dtype=torch.float64)
    torch.testing.assert_close(found.rest, 0.3 * torch.special.ndtri(shares))


def test_scores_of_plus_infinity_share_the_softmax_of_a_top_k_loss():
    scores = torch.tensor([[math.inf, 1.0, math.inf, -math.inf]] * 2, dtype=torch.float64)
    target, p_k = torch.tensor([0, 1]), [0.5, 0.25, 0.25]
    for kind in ("native", "torch"):
        with _native.use(kind):
            x = scores.clone().requires_grad_()
            loss = so.losses.top_k_cross_entropy(x, target, p_k, reduction="none")
            (gradient,) = torch.autograd.grad(loss.sum(), x)
        expected = -0.5 * math.log(0.5) - 0.5 * math.log(0.5)  # k = 2 and k = 3 take it for certain
        assert loss.tolist() == pytest.approx([expected, math.inf])
        assert gradient.isfinite().all()


def test_a_nan_spoils_the_loss_of_a_target_at_minus_infinity(kernel):
    scores, target = torch.tensor([[math.nan, -math.inf, 1.0]]), torch.tensor([1])
    for top1 in ("softmax", "operator"):
        loss = so.losses.top_k_cross_entropy(scores, target, [0.5, 0.5], top1=top1)
        assert loss.isnan()


@pytest.mark.parametrize("gap", [10, 16, 30])
def test_the_derivative_by_k_in_a_wide_gap_is_the_limit(kernel, gap):
    """Differences of a step h see log h instead, where h is above the tails: they are not it."""
    x = torch.tensor([0.0, float(gap)], dtype=torch.float64)
    k = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    log_p = so.log_soft_topk(x, k, method="normal")
    (slope,) = torch.autograd.grad(log_p[0], k)
    with mpmath.workdps(400):
        step = mpmath.mpf(10) ** -300

        def log_of_lower(k):
            b = mpmath.findroot(
                lambda b: mpmath.ncdf(-b) + mpmath.ncdf(gap - b) - k, (mpmath.mpf(gap) / 2)
            )
            return mpmath.log(mpmath.ncdf(-b))

        expected = (log_of_lower(1 + step) - log_of_lower(1 - step)) / (2 * step)
    assert slope.item() == pytest.approx(float(expected), rel=1e-9)


def test_sigmoids_far_below_zero_and_softmaxes_between_the_ends():
    most = torch.finfo(torch.float32).max
    x = torch.tensor([-0.9 * most, -most, -0.9 * most], requires_grad=True)
    p = so.soft_topk(x, 1, temperature=0.1, method="renormalized_sigmoid")
    torch.testing.assert_close(p, torch.full((3,), 1 / 3))
    assert torch.autograd.grad(p[0], x)[0].isfinite().all()
    p = so.soft_topk(torch.tensor([most, -most, -most]), 2, method="sequential_softmax")
    torch.testing.assert_close(p, torch.tensor([1.0, 0.5, 0.5]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rows", [1, 5])
def test_a_gap_up_to_the_largest_number_balances_hyperbolas(kernel, dtype, rows):
    # Σ τ/(π (x_i - b)) above = τ/(π (b - x_4)) below: b is at ¾ of the way from three to the fourth
    most = torch.finfo(dtype).max
    scores = torch.tensor([1e-22, 0.0, -0.0, -most], dtype=dtype).expand(rows, -1)
    for temperature in (1e-3, 1.0, 313562.85, 1e20):
        tau = torch.full((rows,), temperature, dtype=torch.float64)
        b = threshold.solve(scores, torch.full_like(tau, 3.0), tau, "cauchy")
        whole = b.centre.double() / most + b.rest.double() / most
        torch.testing.assert_close(whole, torch.full_like(tau, -0.75), rtol=1e-5, atol=0)

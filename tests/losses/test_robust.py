"""Losses that a few wild samples cannot rule."""

import functools

import pytest
import torch
from torch.nn import functional as F

import softorder as so

_trimmed = so.losses.trimmed_mean


def _losses(n=12, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(n, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("method", ["laplace", "logistic", "normal", "uniform"])
def test_the_trimmed_mean_is_a_minimum(method):
    """No other weights of the same sum give less, and its own give the value."""
    losses, tau, law = _losses(), 0.1, getattr(so.densities, method.capitalize())()
    p = so.soft_topk(-losses, 9, temperature=tau, method=method)
    even = law.psi(torch.tensor(0.75, dtype=torch.float64))
    value = lambda p: ((losses * p).sum() + tau * (law.psi(p) - even).sum()) / 9  # noqa: E731
    found = _trimmed(losses, 0.75, temperature=tau, method=method)
    torch.testing.assert_close(found, value(p))
    for seed in range(20):
        move = so.soft_topk(_losses(seed=seed + 1), 9, temperature=0.3)
        assert value(0.9 * p + 0.1 * move) > found - 1e-12


def test_it_lies_between_nothing_and_the_mean():
    losses = _losses()
    for tau in (0.01, 0.3, 10.0):
        assert 0 < _trimmed(losses, 0.75, temperature=tau) < losses.mean()
        same = _trimmed(torch.full((12,), 3.0), 0.75, temperature=tau)
        torch.testing.assert_close(same, torch.tensor(3.0))


def test_its_derivative_is_the_soft_choice():
    losses = _losses().requires_grad_()
    (found,) = torch.autograd.grad(_trimmed(losses, 0.75, temperature=0.1), losses)
    torch.testing.assert_close(
        found, so.soft_topk(losses.detach(), 9, temperature=0.1, largest=False) / 9
    )
    smooth = lambda x: _trimmed(x, 0.6, temperature=0.2, method="logistic")  # noqa: E731
    assert torch.autograd.gradcheck(smooth, (losses,))
    assert torch.autograd.gradgradcheck(smooth, (losses,))


def test_cold_it_is_the_mean_of_the_smallest():
    losses = _losses()
    cold = _trimmed(losses, 0.5, temperature=1e-7)
    torch.testing.assert_close(cold, losses.sort().values[:6].mean(), rtol=1e-5, atol=1e-6)
    everything = _trimmed(losses, 1.0, temperature=1e-7)
    torch.testing.assert_close(everything, losses.mean(), rtol=1e-5, atol=1e-6)
    rows = torch.stack([losses, losses + 1])
    torch.testing.assert_close(_trimmed(rows, 0.5, temperature=0.1), _trimmed(rows.T, 0.5,
                               temperature=0.1, dim=0))  # fmt: skip
    assert _trimmed(torch.zeros(3, 0), 0.5).shape == (3,)


_MADE = [
    so.losses.TrimmedLoss(0.6),
    so.losses.QuantileLoss(0.5),
    so.losses.RankHuberLoss(0.6),
]
_each = pytest.mark.parametrize("criterion", _MADE, ids=lambda made: type(made).__name__)


@_each
def test_the_unit_does_not_matter(criterion):
    r = _losses(20) - 0.5
    small, large = (criterion(scale * r, torch.zeros(20)) for scale in (1.0, 1000.0))
    torch.testing.assert_close(1e6 * small, large)


@_each
def test_a_wild_sample_has_little_to_say(criterion):
    r = (_losses(20) - 0.5).requires_grad_()
    with torch.no_grad():
        r[3] = 1e6
    criterion(r, torch.zeros(20)).backward()
    most = r.grad.abs().max()
    limit = 1e-6 if not isinstance(criterion, so.losses.RankHuberLoss) else most + 1e-12
    assert r.grad[3].abs() <= limit
    assert most > 0


def test_trimmed_and_quantile_are_those_of_the_losses():
    prediction, target = _losses(15), _losses(15, seed=1)
    squares = (prediction - target).square()
    tau = 0.2 * squares.median().item()
    found = so.losses.TrimmedLoss(0.8, temperature=0.2)(prediction, target)
    torch.testing.assert_close(found, _trimmed(squares, 0.8, temperature=tau))
    found = so.losses.QuantileLoss(0.7, temperature=0.2)(prediction, target)
    torch.testing.assert_close(found, so.soft_quantile(squares, 0.7, temperature=tau))


def test_another_criterion():
    logits = torch.randn(10, 3, generator=torch.Generator().manual_seed(0)).double()
    classes = torch.arange(10) % 3
    each = functools.partial(F.cross_entropy, reduction="none")
    losses = each(logits, classes)
    criterion = so.losses.TrimmedLoss(0.7, temperature=0.1, criterion=each)
    tau = 0.1 * losses.median().item()
    torch.testing.assert_close(criterion(logits, classes), _trimmed(losses, 0.7, temperature=tau))


def test_rank_huber_is_hubers_with_a_bend_at_a_quantile():
    r = (_losses(20) - 0.5).requires_grad_()
    criterion = so.losses.RankHuberLoss(0.7, temperature=0.1)
    size = r.detach().abs()
    delta = so.soft_quantile(size, 0.7, temperature=0.1 * size.median().item()).item()
    expected = F.huber_loss(r, torch.zeros(20).double(), delta=delta)
    found = criterion(r, torch.zeros(20).double())
    torch.testing.assert_close(found, expected)
    (slope,) = torch.autograd.grad(found, r)
    torch.testing.assert_close(slope, r.detach().clamp(-delta, delta) / 20)


def test_perfect_fits_are_no_trouble():
    for criterion in _MADE:
        r = torch.zeros(6, requires_grad=True)
        loss = criterion(r, torch.zeros(6))
        loss.backward()
        assert loss.abs() < 1e-6
        assert r.grad.isfinite().all()


def test_wrong_arguments():
    make, x = so.losses.TrimmedLoss, torch.zeros(4)
    wrong = [
        (lambda: make(0), ValueError, "part must be between 0 and 1, 0 excluded, but got 0"),
        (lambda: make(1.5), ValueError, "part must be between 0 and 1, 0 excluded, but got 1.5"),
        (lambda: make(0.5, criterion="mse"), TypeError, "criterion must be a function"),
        (lambda: make(0.5, temperature=0), ValueError, "temperature must be finite and > 0"),
        (lambda: make(0.5)(x, x[:3]), ValueError, "target must have as many samples as prediction"),
        (lambda: so.losses.QuantileLoss(1.0), ValueError, "part must be between 0 and 1, both"),
        (lambda: so.losses.RankHuberLoss(1.0), ValueError, "part must be between 0 and 1, both"),
        (lambda: _trimmed(x, 0.0), ValueError, "keep must be between 0 and 1, 0 excluded"),
        (lambda: _trimmed(x, 0.5, temperature=-1), ValueError, "temperature must be finite"),
        (lambda: _trimmed(x, 0.5, method="softsort"), ValueError, "method must be"),
    ]
    for call, error, message in wrong:
        with pytest.raises(error, match=message):
            call()

"""Long rows with an anchor for every score: the plan in windows against the whole plan."""

import math

import pytest
import torch

import softorder as so
from softorder.kernels.transport import long_rows

_NEVER = 10**9


def _scores(kind, n=70):
    x = torch.randn(2, n, dtype=torch.float64, generator=torch.Generator().manual_seed(n))
    if kind == "ties":
        return (2 * x).round()
    if kind == "outlier":
        x[:, 3] = 1e3
    if kind == "absent":
        x[0, 5], x[1, 7], x[1, 9] = -math.inf, math.inf, -math.inf
    return x


def _all(operator, x, epsilon, descending):
    """Result, and gradients of scores and temperature."""
    x = x.clone().requires_grad_()
    temperature = torch.tensor([1.0, 1.5], dtype=torch.float64).mul_(epsilon).requires_grad_()
    options = {"method": "sinkhorn_sort", "temperature": temperature, "descending": descending}
    result = operator(x, **options)
    finite = torch.where(result.isfinite(), result, 0.0)
    loss = (finite * torch.linspace(-1, 2, result.numel()).cos().view_as(result)).sum()
    return result.detach(), *torch.autograd.grad(loss, (x, temperature))


@pytest.mark.parametrize("operator", [so.soft_rank, so.soft_sort, so.soft_permutation])
@pytest.mark.parametrize("kind", ["normal", "ties", "outlier", "absent"])
def test_windows_are_the_whole_plan(kind, operator, monkeypatch):
    x = _scores(kind)
    for epsilon, descending in ((1e-3, False), (1e-1, True), (1.0, False), (1e2, True)):
        found = []
        for long in (8, _NEVER):
            monkeypatch.setattr(long_rows, "LONG", long)
            found.append(_all(operator, x, epsilon, descending))
        for windows, whole in zip(*found, strict=True):
            torch.testing.assert_close(windows, whole, rtol=1e-9, atol=1e-11 / min(epsilon, 1.0))


@pytest.mark.parametrize("operator", [so.soft_rank, so.soft_sort])
def test_second_derivatives(operator, monkeypatch):
    monkeypatch.setattr(long_rows, "LONG", 4)
    x = torch.randn(7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    leaves = x.requires_grad_(), torch.tensor(0.8, dtype=torch.float64, requires_grad=True)

    def function(x, temperature):
        return operator(x, method="sinkhorn", temperature=temperature)

    assert torch.autograd.gradcheck(function, leaves)
    assert torch.autograd.gradgradcheck(function, leaves)


def test_long_rows_keep_what_is_not_nothing():
    """The whole plan has a million numbers."""
    x = torch.randn(1000, generator=torch.Generator().manual_seed(1)).requires_grad_()
    method = so.Sinkhorn(max_entries=100_000)
    ranks = so.soft_rank(x, method=method, temperature=1e-2)
    ranks.sum().backward()
    assert (ranks.sum() - 1000 * 1001 / 2).abs() < 0.1
    assert x.grad.abs().max() < 1e-3  # their sum never changes
    assert (ranks[x.argsort()].diff() > -1e-3).all()


def test_a_plan_that_is_too_large_is_refused():
    x, method = torch.randn(300), so.Sinkhorn(max_entries=10_000)
    with pytest.raises(ValueError, match=r"transport of 300 scores .* max_entries .*laplace"):
        so.soft_rank(x, method=method, temperature=1e3)
    with pytest.raises(ValueError, match="max_entries"):
        so.soft_permutation(x, method=method, temperature=1e-3)
    with pytest.raises(ValueError, match="max_entries must be at least 1, but got 0"):
        so.Sinkhorn(max_entries=0)
    x.requires_grad_()
    ranks = so.soft_rank(x, method=so.Sinkhorn(max_entries=20_000), temperature=1e-3)
    with pytest.raises(ValueError, match="max_entries"):  # the second derivatives' plan is whole
        torch.autograd.grad(ranks.sum(), x, create_graph=True)


def test_steps_beyond_the_largest_number_are_certain():
    scores = torch.finfo(torch.float64).max * torch.linspace(-1, 1, 300, dtype=torch.float64)
    ranks = so.soft_rank(scores, method="sinkhorn_sort", temperature=0.2)
    torch.testing.assert_close(ranks, torch.arange(1, 301).double())


@pytest.mark.parametrize("apart", [1.0, 1e9, 1e200])
def test_what_is_far_away_rounds_nothing_of_what_is_near(apart):
    scores = torch.tensor([-apart, apart], dtype=torch.float64).repeat(150)
    ranks = so.soft_rank(scores, method="sinkhorn_sort", temperature=0.2)
    torch.testing.assert_close(ranks, torch.where(scores < 0, 75.5, 225.5).double())

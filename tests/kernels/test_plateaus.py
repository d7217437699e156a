"""Uniform F-sums have the same value in the whole of a gap of τ: their point is its middle."""

import random

import pytest
import torch

import softorder as so
from softorder.kernels import _native
from tests.oracles.plateaus import point


def _rows(seed):
    """Scores with ties, a τ as wide as some gap or not, and levels of which half are whole."""
    choose = random.Random(seed)
    n = choose.randint(2, 12)
    scores = [round(choose.gauss(0, 1), choose.choice((1, 17))) for _ in range(n)]
    gaps = [b - a for a, b in zip(sorted(scores), sorted(scores)[1:], strict=False)]
    tau = choose.choice((choose.uniform(0.05, 1), max([*gaps, 0.1]), 0.3))
    return scores, tau, n, choose


@pytest.mark.parametrize("kind", _native.KINDS)
@pytest.mark.parametrize("many", [False, True], ids=["few", "many"])
def test_a_point_is_in_the_middle_of_its_plateau(kind, many):
    """By a threshold for up to four levels; for more by a walk along the sorted row."""
    for seed in range(60):
        scores, tau, n, choose = _rows(seed)
        whole = [float(choose.randint(1, n - 1)) for _ in range(3 if many else 1)]
        levels = whole + [choose.uniform(0.01, n - 0.01) for _ in whole]
        expected = [point(scores, level, tau) for level in levels]
        with _native.use(kind):
            found = so.fsum_inverse(
                torch.tensor(scores, dtype=torch.float64),
                torch.tensor(levels, dtype=torch.float64),
                method="uniform",
                temperature=tau,
            )
        torch.testing.assert_close(
            found,
            found.new_tensor(expected),
            rtol=1e-12,
            atol=1e-12,
            msg=f"{seed}: {found.tolist()} {expected}",
        )


def test_quantiles_of_levels_that_rounding_made():
    """0.29 · 100 is less than 29, but the 29th gap is meant."""
    scores = torch.arange(100, dtype=torch.float64)
    found = so.soft_quantile(scores, [0.29, 0.57, 0.58], method="uniform", temperature=0.5)
    assert found.tolist() == [28.5, 56.5, 57.5]


@pytest.mark.parametrize("kind", _native.KINDS)
def test_both_neighbours_share_the_gradient(kind):
    scores = torch.tensor([0.0, 5.0, 1.0], dtype=torch.float64, requires_grad=True)
    tau = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    with _native.use(kind):
        t = so.soft_quantile(scores, 2 / 3, method="uniform", temperature=tau)
        gradients = torch.autograd.grad(t, (scores, tau))
    assert t.item() == 3
    assert gradients[0].tolist() == [0.0, 0.5, 0.5]
    assert gradients[1].item() == 0


def _tied_rows(seed, rows, dtype):
    """Scores of a few values, τ below their distance, and a k that ends with one of them."""
    generator = torch.Generator().manual_seed(seed)
    n = int(torch.randint(3, 40, (), generator=generator))
    scores = torch.randint(4, (rows, n), generator=generator).to(dtype) / 2
    falling = scores[0].sort(descending=True).values
    ends = (falling[:-1] > falling[1:]).nonzero()
    if not len(ends):
        return None
    k = int(ends[int(torch.randint(len(ends), (), generator=generator))]) + 1
    tau = 0.001 + 0.498 * float(torch.rand((), generator=generator))
    upstream = torch.randn(rows, n, generator=generator).to(dtype)
    return scores[0].expand(rows, n).clone().requires_grad_(), k, tau, upstream


@pytest.mark.parametrize("kind", _native.KINDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rows", [1, 18])
def test_nothing_moves_a_threshold_on_a_plateau(kind, dtype, rows):
    """Rounding b puts scores at the ends of the support a little inside: their f was 1/τ."""
    for seed in range(150):
        if (made := _tied_rows(seed, rows, dtype)) is None:
            continue
        scores, k, tau, upstream = made
        options = {"method": "uniform", "temperature": tau}
        with _native.use(kind):
            p = so.soft_topk(scores, k, **options)
            (gradient,) = torch.autograd.grad(p, scores, upstream)
            share = torch.zeros(k, dtype=torch.float64)
            share[-1] = 1
            first = scores[0].argmax().expand(rows)  # is among the k: its loss is 0
            loss = so.losses.top_k_cross_entropy(
                scores, first, p_k=share, top1="operator", reduction="sum", **options
            )
            (by_loss,) = torch.autograd.grad(loss, scores)
        assert not gradient.any(), seed
        assert not by_loss.any(), seed


@pytest.mark.parametrize("kind", _native.KINDS)
@pytest.mark.parametrize("k", [1e-4, 2 + 1e-4, 2.5])
def test_a_k_that_is_not_whole_moves_what_it_is_shared_by(kind, k):
    """However little of it is left: f is 1 at the end of the support, too."""
    scores = torch.tensor([1.0, 0.0, 1.0, 0.0, 0.5, 0.5], requires_grad=True)
    if k > 2:
        scores = (-scores).detach().requires_grad_()  # two ties share what is left
    with _native.use(kind):
        p = so.soft_topk(scores, k, method="uniform", temperature=0.3)
        shared = ((p > 0) & (p < 1)).nonzero().squeeze(1)
        assert len(shared) == 2
        (gradient,) = torch.autograd.grad(p[shared[0]], scores)
    expected = torch.zeros(6)
    expected[shared] = torch.tensor([0.5, -0.5]) / 0.3
    torch.testing.assert_close(gradient, expected)

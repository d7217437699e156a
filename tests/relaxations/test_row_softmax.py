"""NeuralSort, SoftSort and the two top-k masks against their definitions."""

import pytest
import torch

import softorder as so
from softorder.relaxations import StochasticNeuralSort


def _scores(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("temperature", [0.1, 1.0, 10.0])
def test_neuralsort_is_its_formula(temperature):
    x, n = _scores(7), 7
    distances = (x[:, None] - x).abs().sum(-1)
    rows = [torch.softmax(((n + 1 - 2 * j) * x - distances) / temperature, -1) for j in range(1, 8)]
    p = so.soft_permutation(x, method="neuralsort", temperature=temperature, descending=True)
    torch.testing.assert_close(p, torch.stack(rows))


@pytest.mark.parametrize("temperature", [0.1, 1.0, 10.0])
def test_softsort_is_its_formula(temperature):
    x = _scores(7)
    rows = torch.softmax(-(x.sort(descending=True).values[:, None] - x).abs() / temperature, -1)
    p = so.soft_permutation(x, method="softsort", temperature=temperature, descending=True)
    torch.testing.assert_close(p, rows)


@pytest.mark.parametrize("method", ["neuralsort", "softsort"])
def test_rank_sort_and_mask_are_made_of_the_permutation(method):
    x, options = _scores(3, 8), {"method": method, "temperature": 0.7}
    p = so.soft_permutation(x, **options)
    torch.testing.assert_close(so.soft_sort(x, **options), (p @ x.unsqueeze(-1)).squeeze(-1))
    places = torch.arange(1, 9, dtype=x.dtype)
    torch.testing.assert_close(so.soft_rank(x, **options), places @ p)
    p = so.soft_permutation(x, descending=True, **options)
    mask = so.soft_topk(x, 2.25, **options)
    torch.testing.assert_close(mask, p[:, :2].sum(1) + 0.25 * p[:, 2])


def test_columns_of_softsort_may_exceed_one():
    """Why its top-k mask may: the middle one of three is near to all places."""
    x = torch.tensor([-1.0, 0.0, 1.0])
    p = so.soft_permutation(x, method="softsort", temperature=2.0)
    assert p.sum(0)[1] > 1.05
    assert so.soft_topk(x, 3, method="softsort", temperature=2.0).max() > 1.05


def test_row_sums_of_neuralsort_need_no_table():
    """An n×n table would be 8 TB."""
    x = _scores(10**6).float()
    p = so.soft_permutation(x, k=2, method="neuralsort", temperature=1e-3, descending=True)
    assert torch.equal(p.argmax(-1), x.topk(2).indices)


def test_stochastic_neuralsort_draws_plackett_luce_orders():
    """P(first = i) = softmax(x)_i; 20,000 draws, off by 5 standard errors once in 10^6."""
    x = torch.tensor([0.0, 1.0, 2.0], dtype=torch.float64)
    method = StochasticNeuralSort(generator=torch.Generator().manual_seed(0))
    draws = 20_000
    p = so.soft_permutation(
        x.expand(draws, 3), k=1, method=method, temperature=1e-3, descending=True
    )
    expected = torch.softmax(x, -1)
    error = (expected * (1 - expected) / draws).sqrt()
    assert ((p.mean((0, 1)) - expected).abs() < 5 * error).all()


def test_stochastic_neuralsort_without_noise_is_neuralsort():
    x = _scores(2, 5).requires_grad_()
    p = so.soft_permutation(x, method=StochasticNeuralSort(noise=0.0))
    assert torch.equal(p, so.soft_permutation(x, method="neuralsort"))
    (gradient,) = torch.autograd.grad(p[:, 0, 0].sum(), x)
    assert gradient.abs().sum() > 0


def test_sequential_softmax_is_its_recursion():
    x, temperature = _scores(6), 0.8
    alpha, total = x, 0
    for _ in range(3):
        p = torch.softmax(alpha / temperature, -1)
        total, alpha = total + p, alpha + torch.log(1 - p)
    mask = so.soft_topk(x, 3, method="sequential_softmax", temperature=temperature)
    torch.testing.assert_close(mask, total)


def test_sequential_softmax_keeps_equal_scores_equal_when_cold():
    """The logarithms of what they leave must not differ by a rounding: it is divided by τ."""
    p = so.soft_topk(torch.zeros(6).double(), 3, method="sequential_softmax", temperature=1e-3)
    torch.testing.assert_close(p, torch.full_like(p, 0.5), rtol=0, atol=1e-15)


def test_sequential_softmax_exceeds_one():
    x = torch.tensor([3.0, 0.0, 0.0])
    assert so.soft_topk(x, 2, method="sequential_softmax", temperature=2.0)[0] > 1.1


def test_renormalized_sigmoid_is_its_formula_and_not_shift_invariant():
    x = _scores(6)
    weight = torch.sigmoid(x / 0.5)
    total = weight.sum().item()
    for k in (0.5 * total, total, 0.5 * (total + 6)):
        mask = so.soft_topk(x, k, method="renormalized_sigmoid", temperature=0.5)
        less, more = k * weight / total, 1 - (6 - k) * (1 - weight) / (6 - total)
        torch.testing.assert_close(mask, less if k <= total else more)
    shifted = so.soft_topk(x + 10, 2, method="renormalized_sigmoid", temperature=0.5)
    torch.testing.assert_close(shifted, torch.full_like(x, 1 / 3), atol=1e-2, rtol=0)


def test_a_method_says_what_it_serves():
    with pytest.raises(ValueError, match="serve log_soft_topk, but got 'stochastic_neuralsort'"):
        so.log_soft_topk(torch.zeros(3), 1, method=StochasticNeuralSort())


@pytest.mark.parametrize(
    ("scores", "tau"),
    [([999999.6875, 999999.6875, 1000000.375], 2.8e-5), ([1e30, 1.2, -1e30], 2.3e-27)],
)
def test_sequential_softmax_of_scores_beside_which_its_penalty_rounds_away(scores, tau):
    """Who leads is seen from both terms of α = x + Σ log(1 - p), not from their sum."""
    x = torch.tensor(scores, requires_grad=True)
    p = so.soft_topk(x, 3, method="sequential_softmax", largest=False, temperature=tau)
    torch.testing.assert_close(p.sum().item(), 3.0)
    (gradient,) = torch.autograd.grad(p[0], x)
    assert not gradient.isnan().any()

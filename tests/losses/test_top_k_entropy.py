"""The top-k entropy losses against the problem that defines them, solved by scipy."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from torch.nn import functional

import softorder as so

_entropy, _truncated = so.losses.top_k_entropy, so.losses.truncated_top_k_entropy
_BOTH = pytest.mark.parametrize("loss", [_entropy, _truncated], ids=["entropy", "truncated"])


def _problem(rows=5, n=8, scale=2.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    scores = scale * torch.randn(rows, n, dtype=torch.float64, generator=generator)
    return scores, torch.randint(n, (rows,), generator=generator)


def _by_scipy(scores, target, k):
    """max <a, x> - Σ x log x - (1 - s) log(1 - s) over s = Σ x ≤ 1, 0 ≤ x_j ≤ s/k; and its x."""
    a = np.delete(scores, target) - scores[target]

    def negative(x):
        rest = 1 - x.sum()
        return (x * np.log(x)).sum() + rest * np.log(rest) - a @ x

    def slope(x):
        return np.log(x) - np.log(1 - x.sum()) - a

    n = len(a)
    found = minimize(
        negative,
        np.full(n, 0.5 / n),
        jac=slope,
        bounds=[(1e-12, 1 - 1e-9)] * n,
        constraints=[
            {"type": "ineq", "fun": lambda x: x.sum() / k - x, "jac": lambda x: 1 / k - np.eye(n)},
            {"type": "ineq", "fun": lambda x: 1 - 1e-9 - x.sum(), "jac": lambda x: -np.ones(n)},
        ],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return -found.fun, np.insert(found.x, target, 0)


@pytest.mark.parametrize("k", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("scale", [0.3, 1.0, 2.0])
def test_entropy_is_the_maximum_that_defines_it(k, scale):
    scores, target = _problem(scale=scale)
    found = _entropy(scores.requires_grad_(), target, k, reduction="none")
    (gradient,) = torch.autograd.grad(found.sum(), scores)
    for row in range(5):
        y = int(target[row])
        value, x = _by_scipy(scores[row].detach().numpy(), y, k)
        assert found[row].item() == pytest.approx(value, abs=1e-7)
        x[y] = -x.sum()  # p - e_y
        np.testing.assert_allclose(gradient[row].numpy(), x, atol=1e-4)


def test_scores_above_the_cap_share_it():
    """By hand: u = 1 of k = 2, so that half of the mass is on 5, the rest a softmax."""
    scores = torch.tensor([5.0, 1.0, 0.0, 0.5], dtype=torch.float64, requires_grad=True)
    loss = _entropy(scores, torch.tensor(3), 2)
    mean = (5 + math.log(2)) / 2 + (math.log(math.e + 1) + math.log(2)) / 2
    assert loss.item() == pytest.approx(math.log1p(math.exp(mean - 0.5)), rel=1e-12)
    (gradient,) = torch.autograd.grad(loss, scores)
    s = 1 / (1 + math.exp(0.5 - mean))
    expected = [s / 2, s / 2 * math.e / (math.e + 1), s / 2 / (math.e + 1), -s]
    torch.testing.assert_close(gradient, torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("k", [1, 2, 4, 7])
def test_truncated_drops_the_best_others(k):
    scores, target = _problem()
    found = _truncated(scores, target, k, reduction="none")
    for row in range(5):
        y = int(target[row])
        others = sorted(np.delete(scores[row].numpy(), y))[: 8 - k]
        expected = math.log1p(sum(math.exp(x - scores[row, y]) for x in others))
        assert found[row].item() == pytest.approx(expected, rel=1e-12)


@_BOTH
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_the_first_is_softmax_cross_entropy(loss, reduction):
    scores, target = _problem(6, 9)
    target[2] = -100
    weight = torch.linspace(0.5, 2, 9, dtype=torch.float64)
    options = {"weight": weight, "reduction": reduction}
    expected = functional.cross_entropy(scores, target, **options)
    torch.testing.assert_close(loss(scores, target, 1, **options), expected)
    shaped = scores.reshape(2, 3, 9).movedim(-1, 1)
    found = loss(shaped, target.reshape(2, 3), 1, **options)
    torch.testing.assert_close(found.reshape(expected.shape), expected)


@_BOTH
@pytest.mark.parametrize("k", [1, 2, 4])
def test_gradients(loss, k):
    scores, target = _problem(4, 7)
    assert torch.autograd.gradcheck(lambda x: loss(x, target, k), scores.requires_grad_())
    assert torch.autograd.gradgradcheck(lambda x: loss(x, target, k), scores)


@_BOTH
def test_a_larger_k_forgives_more(loss):
    scores, target = _problem(20, 10)
    losses = torch.stack([loss(scores, target, k, reduction="none") for k in range(1, 10)])
    assert (losses.diff(dim=0) <= 1e-12).all()
    if loss is _entropy:  # convex, and above the truncated one
        others = torch.stack(
            [_truncated(scores, target, k, reduction="none") for k in range(1, 10)]
        )
        assert (losses >= others - 1e-12).all()


def test_entropy_is_convex():
    (x, target), (y, _) = _problem(50, 6), _problem(50, 6, seed=1)

    def loss(scores):
        return _entropy(scores, target, 3, reduction="none")

    assert (loss((x + y) / 2) <= (loss(x) + loss(y)) / 2 + 1e-12).all()


@_BOTH
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_far_away_is_fine(loss, dtype):
    scores, target = _problem(3, 12)
    scores[0, target[0]] -= 1e4
    scores[1, target[1]] += 1e4
    scores = scores.to(dtype).requires_grad_()
    losses = loss(scores, target, 3, reduction="none")
    assert losses.dtype == dtype
    assert losses.isfinite().all()
    (gradient,) = torch.autograd.grad(losses.sum(), scores)
    assert gradient[0, target[0]] == -1
    assert gradient[1].abs().max() == 0


@_BOTH
def test_infinities_and_nan(loss):
    scores, target = _problem(4, 6)
    padded = torch.cat([scores, torch.full((4, 3), -math.inf, dtype=torch.float64)], -1)
    for k in (1, 3, 5):
        torch.testing.assert_close(loss(padded, target, k), loss(scores, target, k))
    few = padded.clone().requires_grad_()
    none = loss(few, target, 7)  # five others
    assert none == 0
    assert torch.equal(torch.autograd.grad(none, few)[0], torch.zeros_like(padded))
    scores[1, 2] = math.nan
    losses = loss(scores, target, 4, reduction="none")
    assert losses.isnan().tolist() == [False, True, False, False]


def test_equal_scores():
    scores, target = torch.zeros(2, 6, dtype=torch.float64), torch.tensor([0, 5])
    for k in range(1, 6):
        assert _entropy(scores, target, k).item() == pytest.approx(math.log(6), rel=1e-12)
        assert _truncated(scores, target, k).item() == pytest.approx(math.log(7 - k), rel=1e-12)


def test_modules_compute_the_functions():
    scores, target = _problem(6, 10)
    options = {
        "weight": torch.rand(10, dtype=torch.float64),
        "ignore_index": int(target[0]),
        "reduction": "sum",
    }
    for module, function in (
        (so.losses.TopKEntropyLoss(3, **options), _entropy),
        (so.losses.TruncatedTopKEntropyLoss(3, **options), _truncated),
    ):
        assert torch.equal(module(scores, target), function(scores, target, 3, **options))
        assert "k=3" in repr(module)
        assert "margin" not in repr(module)
        assert [name for name, _ in module.named_buffers()] == ["weight"]


@_BOTH
def test_traced(loss):
    scores, target = _problem(4, 6)
    each = torch.func.vmap(lambda x, y: loss(x, y, 3))(scores, target)
    torch.testing.assert_close(each, loss(scores, target, 3, reduction="none"))
    compiled = torch.compile(lambda x: loss(x, target, 3), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(scores), loss(scores, target, 3))


@_BOTH
@pytest.mark.parametrize(
    ("k", "options", "error", "message"),
    [
        (0, {}, ValueError, "k must be between 1 and 3, but got 0"),
        (4, {}, ValueError, "k must be between 1 and 3, but got 4"),
        (2.0, {}, TypeError, "k must be an int, but got float"),
        (2, {"weight": torch.ones(3)}, ValueError, r"weight.*\(4,\), but got \(3,\)"),
        (2, {"reduction": "max"}, ValueError, "reduction must be"),
    ],
)
def test_wrong_arguments(loss, k, options, error, message):
    with pytest.raises(error, match=message):
        loss(torch.zeros(2, 4), torch.tensor([0, 1]), k, **options)

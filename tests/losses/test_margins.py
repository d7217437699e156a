"""smooth_top_k and top_k_hinge against sums and maxima over all sets of classes."""

import math
from itertools import combinations

import mpmath
import pytest
import torch

import softorder as so
from softorder.kernels import _native
from softorder.losses.smooth import _elementary_ratio, log_elementary, log_ratio

_smooth, _hinge = so.losses.smooth_top_k, so.losses.top_k_hinge


def _problem(rows=5, n=8, seed=0):
    generator = torch.Generator().manual_seed(seed)
    scores = 2 * torch.randn(rows, n, dtype=torch.float64, generator=generator)
    return scores, torch.randint(n, (rows,), generator=generator)


def _by_enumeration(scores, target, k, temperature, margin):
    """The definition: all sets of k classes, with 50 digits."""
    with mpmath.workdps(50):
        every = with_target = mpmath.mpf(0)
        for chosen in combinations(range(len(scores)), k):
            score = mpmath.fsum(scores[i] for i in chosen) / k
            every += mpmath.exp((score + margin * (target not in chosen)) / temperature)
            with_target += (target in chosen) * mpmath.exp(score / temperature)
        return float(temperature * (mpmath.log(every) - mpmath.log(with_target)))


@pytest.mark.parametrize("k", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("temperature", [0.01, 0.3, 2.0])
def test_smooth_is_a_sum_over_sets(k, temperature):
    scores, target = _problem()
    found = _smooth(scores, target, k, temperature=temperature, margin=0.7, reduction="none")
    pairs = zip(scores.tolist(), target.tolist(), strict=True)
    truth = [_by_enumeration(x, y, k, temperature, 0.7) for x, y in pairs]
    torch.testing.assert_close(
        found, torch.tensor(truth, dtype=torch.float64), rtol=1e-12, atol=1e-13
    )


@pytest.mark.parametrize("n", [1, 2, 3, 7, 16, 33])
def test_elementary_polynomials_of_any_length(n):
    z = torch.randn(3, n, dtype=torch.float64, generator=torch.Generator().manual_seed(n))
    found = log_elementary(z, 4).exp()
    for k in range(5):
        sets = [z[:, list(chosen)].sum(-1).exp() for chosen in combinations(range(n), k)]
        expected = sum(sets) if sets else torch.zeros(3, dtype=torch.float64)
        torch.testing.assert_close(found[:, k], torch.as_tensor(expected).expand(3))


@pytest.mark.parametrize("k", [1, 3])
def test_smooth_gradients(k):
    scores, target = _problem(3, 6)
    tau = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)

    def call(scores, tau):
        return _smooth(scores, target, k, temperature=tau)

    torch.autograd.gradcheck(call, (scores.requires_grad_(), tau))
    torch.autograd.gradgradcheck(call, (scores, tau))


@pytest.mark.parametrize("k", [1, 2, 5])
def test_smooth_becomes_hard(k):
    scores, target = _problem(50, 9)
    soft = _smooth(scores, target, k, temperature=1e-5, reduction="none")
    hard = _hinge(scores, target, k, margin=k, reduction="none") / k
    torch.testing.assert_close(soft, hard, rtol=0, atol=1e-4)


@pytest.mark.parametrize("k", [1, 2, 3, 7])
@pytest.mark.parametrize("average", [False, True])
def test_hinge_is_its_definition(k, average):
    scores, target = _problem(30, 8)
    found = _hinge(scores, target, k, margin=0.7, average=average, reduction="none")
    for row, (x, y) in enumerate(zip(scores.tolist(), target.tolist(), strict=True)):
        gaps = [v - x[y] + 0.7 for j, v in enumerate(x) if j != y]
        expected = sum(sorted([*gaps, 0.0])[-k:]) / k if average else sorted(gaps)[-k]
        assert found[row].item() == pytest.approx(max(0, expected), abs=1e-12)


def test_average_is_a_convex_bound():
    scores, target = _problem(40, 8)
    others, _ = _problem(40, 8, seed=1)
    options = {"k": 3, "average": True, "reduction": "none"}
    bound = _hinge(scores, target, **options)
    assert (bound >= _hinge(scores, target, 3, reduction="none") - 1e-12).all()
    between = _hinge(0.3 * scores + 0.7 * others, target, **options)
    assert (between <= 0.3 * bound + 0.7 * _hinge(others, target, **options) + 1e-12).all()


def test_hinge_is_0_when_the_target_is_in_with_the_margin():
    scores, target = _problem(100, 8)
    losses = _hinge(scores, target, 3, margin=0.5, reduction="none")
    own = scores.gather(-1, target.unsqueeze(-1)).squeeze(-1)
    above = (scores > (own - 0.5).unsqueeze(-1)).sum(-1) - 1  # itself aside
    assert ((losses == 0) == (above < 3)).all()


@pytest.mark.parametrize("call", [_smooth, _hinge])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_hopeless_target(call, dtype):
    scores, target = _problem(3, 20)
    scores = scores.to(dtype)
    scores[0, target[0]] -= 1e4
    scores.requires_grad_()
    loss = call(scores, target, 3)
    (gradient,) = torch.autograd.grad(loss, scores)
    assert loss.isfinite()
    assert gradient.isfinite().all()
    assert gradient[0, target[0]] < 0


@pytest.mark.parametrize("call", [_smooth, _hinge])
def test_absent_classes_change_nothing(call):
    scores, target = _problem(4, 6)
    padded = torch.cat([scores, torch.full((4, 3), -math.inf)], -1).requires_grad_()
    loss = call(padded, target, 2)
    torch.testing.assert_close(loss, call(scores, target, 2))
    (gradient,) = torch.autograd.grad(loss, padded)
    assert gradient.isfinite().all()
    assert (gradient[:, 6:] == 0).all()


@pytest.mark.parametrize("call", [_smooth, _hinge])
def test_shapes_weights_and_ignored_samples(call):
    scores, target = _problem(12, 5)
    each = call(scores, target, 2, reduction="none")
    block = scores.reshape(4, 3, 5).movedim(-1, 1)
    torch.testing.assert_close(
        call(block, target.reshape(4, 3), 2, reduction="none"), each.reshape(4, 3)
    )
    torch.testing.assert_close(call(scores[0], target[0], 2), each[0])
    weight = torch.linspace(1, 2, 5, dtype=torch.float64)
    own = weight[target]
    torch.testing.assert_close(
        call(scores, target, 2, weight=weight), (each * own).sum() / own.sum()
    )
    spoiled, partly = scores.clone(), target.clone()
    spoiled[3:5], partly[3:5] = math.nan, -100
    kept = partly != -100
    spoiled.requires_grad_()
    loss = call(spoiled, partly, 2)
    torch.testing.assert_close(loss, each[kept].mean())
    (gradient,) = torch.autograd.grad(loss, spoiled)
    assert (gradient[~kept] == 0).all()
    half = scores.bfloat16()
    assert call(half, target, 2).dtype == torch.bfloat16
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = call(half, target, 2)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, call(half.float(), target, 2))


def test_modules_compute_the_functions():
    scores, target = _problem(6, 8)
    weight = torch.rand(8, dtype=torch.float64)
    common = {"margin": 0.4, "weight": weight, "ignore_index": int(target[0]), "reduction": "sum"}
    smooth = so.losses.SmoothTopKLoss(3, temperature=0.2, **common)
    assert torch.equal(
        smooth(scores, target), _smooth(scores, target, 3, temperature=0.2, **common)
    )
    hinge = so.losses.TopKHingeLoss(3, average=True, **common)
    assert torch.equal(hinge(scores, target), _hinge(scores, target, 3, average=True, **common))
    for part in ("k=3", "margin=0.4", "sum", "temperature=0.2"):
        assert part in repr(smooth)
    assert "average=True" in repr(hinge)


@pytest.mark.parametrize("call", [_smooth, _hinge])
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"k": 0}, ValueError, r"k must be between 1 and 3, but got 0"),
        ({"k": 4}, ValueError, r"k must be between 1 and 3, but got 4"),
        ({"k": 1.5}, TypeError, r"k must be an int, but got float"),
        ({"k": 2, "margin": 0}, ValueError, r"margin must be finite and > 0, but got 0"),
        ({"k": 2, "reduction": "max"}, ValueError, r"reduction must be.*'max'"),
        ({"k": 2, "weight": torch.ones(3)}, ValueError, r"weight.*\(4,\), but got \(3,\)"),
    ],
)
def test_wrong_arguments(call, options, error, message):
    with pytest.raises(error, match=message):
        call(torch.zeros(2, 4), torch.tensor([0, 1]), **options)


@pytest.mark.parametrize("k", [1, 5, 19])
@pytest.mark.parametrize("spread", [1.0, 300.0])
def test_the_kernel_has_the_ratio_of_the_polynomials_and_its_gradient(k, spread):
    z = spread * torch.randn(6, 20, generator=torch.Generator().manual_seed(0)).double()
    z[:, 3] = -math.inf
    before = _native.calls["subsets_forward"]
    both = []
    for ratio in (log_ratio, _elementary_ratio):
        x = z.clone().requires_grad_()
        found = ratio(x, k)
        both.append((found, *torch.autograd.grad(found.sum(), x)))
    assert _native.calls["subsets_forward"] == before + 2 * _native.enabled()
    for own, other in zip(*both, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-11, atol=1e-12)

"""What top_k_cross_entropy shares with torch's cross_entropy: weights, smoothing, axes."""

import math

import pytest
import torch
from torch.nn import functional

import softorder as so
from tests.losses.top_k.problem import MIX, problem

_loss = so.losses.top_k_cross_entropy


@pytest.mark.parametrize("shape", [(), (4,), (4, 3), (2, 3, 5)])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_top_1_by_softmax_is_torchs(shape, reduction, smoothing, dtype):
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(*shape[:1], 7, *shape[1:], generator=generator).to(dtype)
    target = torch.randint(7, shape, generator=generator)
    if target.dim():
        target[0] = -100
    weight = torch.rand(7, generator=generator).to(dtype)
    options = {"weight": weight, "label_smoothing": smoothing, "reduction": reduction}
    for p_k in ([1.0], [1.0, 0.0], torch.tensor([1.0, 0])):
        found = _loss(scores, target, p_k, **options)
        assert torch.equal(found, functional.cross_entropy(scores, target, **options))


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_weights_and_smoothing_are_torchs_when_both_parts_agree(smoothing, reduction):
    """A method whose top-1 is a softmax: the operator's part must be torch's in every respect."""
    scores, target = problem(9, 5)
    target[2] = -100
    weight = torch.linspace(0.1, 2, 5, dtype=torch.float64)
    options = {"weight": weight, "label_smoothing": smoothing, "reduction": reduction}
    expected = functional.cross_entropy(scores, target, **options)
    found = _loss(scores, target, [1.0], method="sequential_softmax", top1="operator", **options)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-13)


def test_label_smoothing_is_a_mean_over_the_classes():
    scores, target = problem(4, 6)
    options = {"temperature": 0.6, "reduction": "none"}
    plain = _loss(scores, target, MIX, **options)
    others = [_loss(scores, torch.full_like(target, c), MIX, **options) for c in range(6)]
    found = _loss(scores, target, MIX, label_smoothing=0.2, **options)
    torch.testing.assert_close(found, 0.8 * plain + 0.2 * torch.stack(others).mean(0))


@pytest.mark.parametrize("shape", [(), (4,), (4, 3), (2, 3, 5)])
def test_trailing_axes_are_samples(shape):
    scores, target = problem(math.prod(shape), 7)
    temperature = torch.linspace(0.5, 1, math.prod(shape), dtype=torch.float64)
    expected = _loss(scores, target, MIX, temperature=temperature, reduction="none")
    moved = scores.reshape(*shape, 7).movedim(-1, 1 if shape else 0)
    options = {"temperature": temperature.reshape(shape), "reduction": "none"}
    found = _loss(moved, target.reshape(shape), MIX, **options)
    assert found.shape == shape
    torch.testing.assert_close(found.flatten(), expected)
    weights = torch.softmax(torch.randn(*shape, 4, dtype=torch.float64), -1)
    one = _loss(moved, target.reshape(shape), weights, per_sample=True, **options)
    flat = {"per_sample": True, "temperature": temperature, "reduction": "none"}
    other = _loss(scores, target, weights.reshape(-1, 4), **flat)
    torch.testing.assert_close(one.flatten(), other)


@pytest.mark.parametrize("top1", ["softmax", "operator"])
@pytest.mark.parametrize("method", ["laplace", "uniform", "softsort"])
def test_ignored_samples_are_not_there(top1, method):
    scores, target = problem(7, 9)
    partly, kept = target.clone(), torch.tensor([True, True, False, True, False, True, True])
    partly[~kept] = -100
    spoiled = torch.where(kept.unsqueeze(-1), scores, math.nan).requires_grad_()
    options = {"method": method, "top1": top1, "temperature": 5.0, "label_smoothing": 0.0}
    expected = _loss(scores[kept], target[kept], MIX, **options)
    loss = _loss(spoiled, partly, MIX, **options)
    torch.testing.assert_close(loss, expected)
    loss.backward()
    assert (spoiled.grad[~kept] == 0).all()
    assert spoiled.grad[kept].isfinite().all()
    none = _loss(spoiled, partly, MIX, reduction="none", **options)
    assert (none[~kept] == 0).all()
    assert _loss(scores, torch.full_like(target, -100), MIX, **options).isnan()  # as torch
    assert _loss(scores, torch.full_like(target, 3), MIX, ignore_index=3, reduction="sum") == 0

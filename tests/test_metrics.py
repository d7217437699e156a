"""Top-k accuracies against sklearn, and over batches."""

import math

import pytest
import torch
from sklearn.metrics import top_k_accuracy_score

import softorder as so

_accuracy = so.metrics.topk_accuracy


def _problem(rows=200, n=10):
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(rows, n, generator=generator)
    return scores, torch.randint(n, (rows,), generator=generator)


def test_is_sklearns():
    scores, target = _problem()
    found = _accuracy(scores, target, k=(1, 3, 5, 10, 12))
    for k, value in zip((1, 3, 5, 10), found, strict=False):
        truth = top_k_accuracy_score(target, scores, k=min(k, 9), labels=range(10))
        assert value.item() == pytest.approx(1 if k == 10 else truth)
    assert found[-1] == 1
    assert _accuracy(scores, target, k=3) == found[1]


def test_equal_scores_share():
    scores = torch.tensor([[1.0, 1.0, 1.0, 0.0]])
    found = _accuracy(scores, torch.tensor([1]), k=(1, 2, 3, 4))
    assert found.tolist() == pytest.approx([1 / 3, 2 / 3, 1, 1])
    expected = [so.hard.topk(scores[0], k)[1].item() for k in (1, 2, 3, 4)]
    assert found.tolist() == pytest.approx(expected)


def test_trailing_axes_ignored_samples_and_nan():
    scores, target = _problem(24)
    expected = _accuracy(scores, target)
    block = scores.reshape(4, 6, 10).movedim(-1, 1)
    torch.testing.assert_close(_accuracy(block, target.reshape(4, 6)), expected)
    torch.testing.assert_close(_accuracy(scores[0], target[0], k=(10,)), torch.ones(1).double())
    partly = target.clone()
    partly[:5] = -100
    torch.testing.assert_close(_accuracy(scores, partly), _accuracy(scores[5:], target[5:]))
    assert _accuracy(scores, torch.full_like(target, 7), ignore_index=7).isnan().all()
    assert _accuracy(torch.full((1, 3), math.nan), torch.tensor([0]), k=1) == 0


def test_batches_add_up():
    scores, target = _problem()
    metric = so.metrics.TopKAccuracy(k=(1, 5))
    for part in (slice(0, 50), slice(50, 53), slice(53, 200)):
        batch = metric(scores[part], target[part])
        torch.testing.assert_close(batch, _accuracy(scores[part], target[part]))
    torch.testing.assert_close(metric.compute(), _accuracy(scores, target))
    metric.reset()
    metric.update(scores[:7], target[:7])
    torch.testing.assert_close(metric.compute(), _accuracy(scores[:7], target[:7]))
    assert repr(metric) == "TopKAccuracy(k=(1, 5), ignore_index=-100)"
    assert so.metrics.TopKAccuracy(3)(scores, target).dim() == 0


def test_wrong_arguments():
    scores, target = _problem(3)
    with pytest.raises(ValueError, match=r"k must be at least 1, but got 0"):
        _accuracy(scores, target, k=(1, 0))
    with pytest.raises(TypeError, match=r"k must be an int, but got float"):
        so.metrics.TopKAccuracy(k=(1.5,))
    with pytest.raises(ValueError, match=r"target must be between 0 and 9"):
        _accuracy(scores, target + 20)

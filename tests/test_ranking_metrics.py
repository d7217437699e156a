"""Metrics of lists: the mean over all orders of equal scores, sklearn's, batches."""

import math

import pytest
import torch
from sklearn import metrics as sklearn

import softorder as so
from tests.oracles import ranking

_M = so.metrics
_FUNCTIONS = ("ndcg", "mrr", "average_precision", "precision", "recall", "hit_rate")
_CLASSES = {
    "ndcg": _M.NDCG,
    "mrr": _M.MRR,
    "average_precision": _M.AveragePrecision,
    "precision": _M.Precision,
    "recall": _M.Recall,
    "hit_rate": _M.HitRate,
}
_every = pytest.mark.parametrize("name", _FUNCTIONS)


def _lists(rows=6, n=6, ties=True, levels=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(rows, n, generator=generator, dtype=torch.float64)
    relevance = torch.randint(levels, (rows, n), generator=generator)
    relevance[:, 0] = 1
    return (scores.round() if ties else scores), relevance


@_every
@pytest.mark.parametrize("k", [None, 1, 3, 9])
def test_equal_scores_share_as_if_the_order_were_drawn(name, k):
    scores, relevance = _lists()
    scores[0] = 0
    found = getattr(_M, name)(scores, relevance, k, reduction="none")
    oracle = getattr(ranking, name)
    for row in range(len(scores)):
        lists = scores[row].tolist(), relevance[row].tolist()
        expected = ranking.expected(oracle, *lists, k)
        assert found[row].item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("k", [None, 1, 3, 8])
@pytest.mark.parametrize("ties", [False, True])
def test_ndcg_is_sklearns(k, ties):
    scores, relevance = _lists(20, 8, ties)
    for gain, gains in (("linear", relevance), ("exponential", 2**relevance - 1)):
        expected = sklearn.ndcg_score(gains, scores, k=k)
        assert _M.ndcg(scores, relevance, k, gain=gain).item() == pytest.approx(expected)


def test_average_precision_is_sklearns():
    scores, relevance = _lists(20, 8, ties=False, levels=2)
    each = [sklearn.average_precision_score(y, x) for x, y in zip(scores, relevance, strict=True)]
    found = _M.average_precision(scores, relevance)
    assert found.item() == pytest.approx(sum(each) / 20)


@_every
def test_is_one_minus_the_cold_loss(name):
    """Where there is one, for distinct scores."""
    losses = {
        "ndcg": so.losses.NDCGLoss(3, temperature=1e-9),
        "mrr": so.losses.MRRLoss(3, temperature=1e-9),
        "average_precision": so.losses.SmoothAPLoss(temperature=1e-9),
        "precision": so.losses.PrecisionAtK(3, temperature=1e-9),
        "recall": so.losses.RecallAtK(3, temperature=1e-9),
    }
    if name not in losses:
        pytest.skip("no loss")
    scores, relevance = _lists(8, 10, ties=False)
    k = None if name == "average_precision" else 3
    found = getattr(_M, name)(scores, relevance, k)
    assert found.item() == pytest.approx(1 - losses[name](scores, relevance).item())


@_every
def test_padding_axes_and_weights(name):
    scores, relevance = _lists()
    metric = getattr(_M, name)
    expected = metric(scores, relevance, 3, reduction="none")
    nothing = torch.full((6, 2), math.nan, dtype=torch.float64)
    padded = torch.cat([scores[:, :2], nothing, scores[:, 2:]], -1)
    labels = torch.cat([relevance[:, :2], nothing, relevance[:, 2:]], -1)
    found = metric(padded, labels, 3, mask=~padded.isnan(), reduction="none")
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(metric(scores.T, relevance.T, 3, dim=0), expected.mean())
    weight = torch.arange(6.0)
    mean = (expected * weight).sum() / weight.sum()
    torch.testing.assert_close(metric(scores, relevance, 3, weight=weight), mean)
    several = metric(scores, relevance, (1, 3))
    torch.testing.assert_close(several[1], expected.mean())
    one = metric(scores[0], relevance[0], (3,), reduction="none")
    torch.testing.assert_close(one, expected[:1])


@_every
def test_lists_with_nothing_relevant(name):
    scores, relevance = _lists()
    relevance[2] = 0
    metric = getattr(_M, name)
    keep = [0, 1, 3, 4, 5]
    mean = metric(scores[keep], relevance[keep])
    torch.testing.assert_close(metric(scores, relevance), mean)
    torch.testing.assert_close(metric(scores, relevance, empty=1.0), (5 * mean + 1) / 6)
    assert metric(scores, torch.zeros_like(relevance)).isnan()
    assert metric(torch.zeros(3, 0), torch.zeros(3, 0)).isnan()
    assert metric(scores, relevance, mask=torch.zeros(6, 1, dtype=torch.bool)).isnan()
    spoiled = scores.clone()
    spoiled[1, 1] = math.nan
    found = metric(spoiled, relevance, reduction="none")
    assert found.isnan().tolist() == [False, True, False, False, False, False]


def test_long_lists_of_equal_scores():
    """C(n, r) overflows; its logarithm does not."""
    scores, relevance = torch.zeros(20_000), torch.zeros(20_000)
    relevance[:10_000] = 1
    found = _M.mrr(scores, relevance).item()
    assert found == pytest.approx(2 * math.log(2) * 0.5, rel=1e-3)  # Σ 2^-m/m
    assert _M.hit_rate(scores, relevance, 3).item() == pytest.approx(7 / 8, rel=1e-3)
    assert _M.precision(scores, relevance, 7).item() == pytest.approx(0.5)


@_every
def test_batches_add_up(name):
    scores, relevance = _lists(20)
    relevance[3] = 0
    metric, function = _CLASSES[name](k=(1, 3)), getattr(_M, name)
    for part in (slice(0, 7), slice(7, 8), slice(8, 20)):
        batch = metric(scores[part], relevance[part])
        torch.testing.assert_close(batch, function(scores[part], relevance[part], (1, 3)))
    torch.testing.assert_close(metric.compute(), function(scores, relevance, (1, 3)))
    metric.reset()
    assert metric.compute().isnan().all()
    weight, mask = torch.arange(20.0), scores < 1
    metric.update(scores, relevance, mask, weight)
    expected = function(scores, relevance, (1, 3), mask=mask, weight=weight)
    torch.testing.assert_close(metric.compute(), expected)
    assert repr(metric).startswith(f"{type(metric).__name__}(k=(1, 3), dim=-1, empty=None")
    assert _CLASSES[name]()(scores, relevance).dim() == 0


def test_wrong_arguments():
    scores, relevance = _lists()
    with pytest.raises(ValueError, match=r"k must be at least 1, but got 0"):
        _M.ndcg(scores, relevance, (1, 0))
    with pytest.raises(TypeError, match=r"k must be an int, but got float"):
        _M.Recall(1.5)
    with pytest.raises(ValueError, match=r"gain must be one of linear, exponential"):
        _M.NDCG(gain="square")
    with pytest.raises(ValueError, match=r"relevance must be finite and >= 0, but got -1"):
        _M.mrr(scores, relevance - 1)
    with pytest.raises(TypeError, match=r"empty must be a real number, but got str"):
        _M.mrr(scores, relevance, empty="skip")
    with pytest.raises(ValueError, match=r"reduction must be 'mean', 'sum' or 'none'"):
        _M.recall(scores, relevance, reduction="max")

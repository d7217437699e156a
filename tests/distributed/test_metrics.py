"""Metrics whose lists are on several ranks."""

import torch
from torch import distributed

import softorder as so


def _lists():
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(7, 9, generator=generator, dtype=torch.float64)
    return scores, torch.randint(3, (7, 9), generator=generator)


def _classes():
    scores, _ = _lists()
    return scores, torch.arange(7)


def _computed():
    """Some of the lists on every rank, more on the last."""
    rank = distributed.get_rank()
    own = slice(0, 2) if rank == 0 else slice(2, 7)
    lists, classes = ([v[own] for v in pair] for pair in (_lists(), _classes()))
    metric, accuracy = so.metrics.NDCG((1, 3)), so.metrics.TopKAccuracy((1, 3))
    alone = so.metrics.NDCG((1, 3), sync_on_compute=False)
    for one in (metric, alone):
        one.update(*lists)
    accuracy.update(*classes)
    twice = [metric.compute() for _ in range(2)]  # what a rank has stays its own
    return *twice, accuracy.compute(), alone.compute()


def test_compute_is_over_all_ranks(pair):
    expected = so.metrics.ndcg(*_lists(), (1, 3))
    accuracy = so.metrics.topk_accuracy(*_classes(), (1, 3))
    answers = pair.run(_computed)
    for first, second, accuracies, _ in answers:
        for found, wanted in ((first, expected), (second, expected), (accuracies, accuracy)):
            torch.testing.assert_close(found, wanted)
    scores, relevance = _lists()
    own = so.metrics.ndcg(scores[:2], relevance[:2], (1, 3))
    torch.testing.assert_close(answers[0][-1], own)

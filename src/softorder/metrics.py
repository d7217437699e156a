"""Metrics for evaluation."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from softorder import _check


def topk_accuracy(
    preds: Tensor, target: Tensor, k: int | Sequence[int] = (1, 5), *, ignore_index: int = -100
) -> Tensor:
    """The share of samples whose class is among the k largest scores, for several k in one pass.

    Counts the scores above that of the target: nothing is sorted. Of scores that are equal to it at
    the edge, the target has its share, as if the order were drawn.

    Args:
        preds: scores (C), (N, C) or (N, C, d1, ...): logits or probabilities.
        target: classes (), (N) or (N, d1, ...).
        k: one number, or several.
        ignore_index: samples with this target do not count.

    Returns:
        Accuracies in float64, one for each k; a scalar for a single k. NaN without samples.

    >>> import torch, softorder as so
    >>> preds = torch.tensor([[0.1, 0.6, 0.3], [0.5, 0.2, 0.3]])
    >>> so.metrics.topk_accuracy(preds, torch.tensor([2, 0]), k=(1, 2))
    tensor([0.5000, 1.0000], dtype=torch.float64)
    """
    hits, count = _hits(preds, target, _ks(k), ignore_index)
    accuracies = hits / count
    return accuracies[0] if isinstance(k, int) else accuracies


class TopKAccuracy(nn.Module):
    """`topk_accuracy` over several batches: update, compute, reset, as in torchmetrics.

    Calling it updates it and returns the accuracies of that batch.

    >>> import torch, softorder as so
    >>> metric = so.metrics.TopKAccuracy(k=(1, 2))
    >>> metric(torch.tensor([[0.1, 0.6, 0.3]]), torch.tensor([2]))
    tensor([0., 1.], dtype=torch.float64)
    >>> metric.update(torch.tensor([[0.5, 0.2, 0.3]]), torch.tensor([0]))
    >>> metric.compute()
    tensor([0.5000, 1.0000], dtype=torch.float64)
    """

    hits: Tensor
    count: Tensor

    def __init__(self, k: int | Sequence[int] = (1, 5), *, ignore_index: int = -100) -> None:
        super().__init__()
        self.k = k if isinstance(k, int) else tuple(k)
        self.ignore_index = ignore_index
        zeros = torch.zeros(len(_ks(k)), dtype=torch.float64)
        self.register_buffer("hits", zeros, persistent=False)
        self.register_buffer("count", torch.zeros((), dtype=torch.float64), persistent=False)

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Adds a batch."""
        hits, count = _hits(preds, target, _ks(self.k), self.ignore_index)
        self.hits = self.hits + hits.to(self.hits.device)
        self.count = self.count + count.to(self.count.device)

    def compute(self) -> Tensor:
        """The accuracies of all batches since the last reset."""
        accuracies = self.hits / self.count
        return accuracies[0] if isinstance(self.k, int) else accuracies

    def reset(self) -> None:
        """Forgets everything."""
        self.hits, self.count = torch.zeros_like(self.hits), torch.zeros_like(self.count)

    def forward(self, preds: Tensor, target: Tensor) -> Tensor:
        self.update(preds, target)
        return topk_accuracy(preds, target, self.k, ignore_index=self.ignore_index)

    def extra_repr(self) -> str:
        return f"k={self.k}, ignore_index={self.ignore_index}"


def _ks(k: int | Sequence[int]) -> tuple[int, ...]:
    ks = (k,) if isinstance(k, int) else tuple(k)
    for one in ks:
        _check.count("k", one, least=1)
    return ks


def _hits(
    preds: Tensor, target: Tensor, ks: tuple[int, ...], ignore_index: int
) -> tuple[Tensor, Tensor]:
    """How many samples are hits, for every k, and how many there are."""
    _check.targets.classes(preds, target, ignore_index)
    preds = preds.detach()
    scores = preds if preds.dim() < 3 else preds.movedim(1, -1)
    kept = target != ignore_index
    own = scores.gather(-1, torch.where(kept, target, 0).long().unsqueeze(-1))
    above, equal = (scores > own).sum(-1), (scores == own).sum(-1)
    share = [((k - above) / equal.clamp(min=1)).clamp(0, 1) for k in ks]
    # no score equals NaN: a sample without a score is no hit
    hit = torch.stack(share, -1) * (kept & (equal > 0)).unsqueeze(-1)
    return hit.reshape(-1, len(ks)).sum(0, dtype=torch.float64), kept.sum(dtype=torch.float64)

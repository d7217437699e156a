"""Hard top-k hinge losses."""

from __future__ import annotations

import torch
from torch import Tensor

from softorder import _check
from softorder.losses._classes import MarginLoss, Samples


def top_k_hinge(
    scores: Tensor,
    target: Tensor,
    k: int = 5,
    *,
    margin: float = 1.0,
    average: bool = False,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """By how much the target misses the k-th best of the other classes, with a margin:

        max(0, margin + (k-th largest of scores_j, j ≠ y) - scores_y)

    0 as soon as the target is among the first k with the margin between. Not convex; `average`
    takes its convex bound instead, the mean of the k largest margin [j ≠ y] + scores_j - scores_y.

    Args:
        scores: logits (C), (N, C) or (N, C, d1, ...), as in torch's cross_entropy.
        target: classes (), (N) or (N, d1, ...).
        k: how many guesses there are, at least 1 and less than C.
        margin: how far above the target has to be.
        average: True for the convex bound.
        weight: one number for each class, as in torch.
        ignore_index: samples with this target have no loss and no gradient.
        reduction: "mean" (weighted, over what is not ignored), "sum" or "none".

    Papers: Top-k multiclass SVM (Lapin et al. 2015), for `average`; Berrada et al. (2018).

    >>> import torch, softorder as so
    >>> scores, target = torch.tensor([2.0, 1.9, -1.0, 0.5]), torch.tensor(3)
    >>> [round(so.losses.top_k_hinge(scores, target, k).item(), 3) for k in (1, 2, 3)]
    [2.5, 2.4, 0.0]
    """
    samples = Samples.of(scores, target, ignore_index)
    _check.count("k", k, least=1, most=samples.classes - 1)
    _check.positive("margin", margin)
    _check.flag("average", average)
    _check.weights.per_class(weight, samples.classes)
    _check.reduction(reduction)
    own, others = samples.split()
    best = margin + others.topk(k).values - own.unsqueeze(-1)
    if average:
        best = torch.cat([best, torch.zeros_like(best[:, :1])], -1).topk(k).values
        worst = best.mean(-1)
    else:
        worst = best[:, -1]
    return samples.reduce_weighted(worst.relu(), weight, reduction)


class TopKHingeLoss(MarginLoss):
    """`top_k_hinge` as a module.

    >>> import torch, softorder as so
    >>> criterion = so.losses.TopKHingeLoss(k=2)
    >>> round(criterion(torch.tensor([2.0, 1.9, -1.0, 0.5]), torch.tensor(3)).item(), 3)
    2.4
    """

    def __init__(
        self,
        k: int = 5,
        *,
        margin: float = 1.0,
        average: bool = False,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
    ) -> None:
        options = {"weight": weight, "ignore_index": ignore_index, "reduction": reduction}
        super().__init__(k, margin, **options)
        _check.flag("average", average)
        self.average = average

    def forward(self, scores: Tensor, target: Tensor) -> Tensor:
        return top_k_hinge(scores, target, average=self.average, **self.options())

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, average={self.average}"

"""The top-k entropy losses of Lapin et al. (2016): a softmax loss that forgives k - 1 classes."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from softorder import _check
from softorder.kernels._moved import taken
from softorder.losses._classes import ClassLoss, Samples
from softorder.losses.smooth import log_sum


def top_k_entropy(
    scores: Tensor,
    target: Tensor,
    k: int = 5,
    *,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """The top-k entropy loss: softmax cross-entropy in which no other class may weigh much.

    Softmax cross-entropy is a maximum over the shares x of the other classes; here none of them may
    have more than the k-th part of all. With a_j = scores_j - scores_y and s = Σ_j x_j, the loss is

        max_x  <a, x> - Σ_j x_j log x_j - (1 - s) log(1 - s)    over  s ≤ 1,  0 ≤ x_j ≤ s/k.

    With x = s q the best s is a sigmoid, and

        loss = log(1 + exp(L - scores_y))      L = max_q  Σ_{j≠y} scores_j q_j - Σ_j q_j log q_j
                                                   over  Σ_j q_j = 1,  0 ≤ q_j ≤ 1/k.

    The largest u < k of the other scores have q_j = 1/k, the rest q_j = (1 - u/k) exp(scores_j)/Z
    with Z the sum of their exp. u is the least number for which no share of the rest is too large,
    exp(scores_j)/Z ≤ 1/(k - u): found among the k - 1 largest scores, without iterations. Then

        L = (1/k) Σ_{j≤u} (scores_j + log k) + (1 - u/k) log(Z/(1 - u/k)).

    The gradient is p - e_y, with p_j = s q_j for the others, s = σ(L - scores_y), and p_y = 1 - s.
    Convex; with k = 1 it is softmax cross-entropy.

    Args:
        scores: logits (C), (N, C) or (N, C, d1, ...), as in torch's cross_entropy.
        target: classes (), (N) or (N, d1, ...).
        k: how many guesses there are, at least 1 and less than C. Where scores of -inf leave fewer
            than k other classes, the target is among the first k: no loss.
        weight: one number for each class, as in torch.
        ignore_index: samples with this target have no loss and no gradient.
        reduction: "mean" (weighted, over what is not ignored), "sum" or "none".

    Paper: Loss functions for top-k error (Lapin et al. 2016).

    >>> import torch, softorder as so
    >>> scores, target = torch.tensor([2.0, 1.9, -1.0, 0.5]), torch.tensor(3)
    >>> [round(so.losses.top_k_entropy(scores, target, k).item(), 3) for k in (1, 2, 3)]
    [2.278, 2.278, 1.755]
    """
    samples = _checked(scores, target, k, weight, ignore_index, reduction)
    own, others = samples.split()
    enough = (others > -math.inf).sum(-1, keepdim=True) >= k
    spoiled = others.isnan().any(-1, keepdim=True)
    most = _largest_mean(torch.where(enough | spoiled, others, 0.0), k)
    losses = torch.where(enough.squeeze(-1), functional.softplus(most - own), 0.0)
    return _reduced(samples, losses, weight, reduction)


def truncated_top_k_entropy(
    scores: Tensor,
    target: Tensor,
    k: int = 5,
    *,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """The truncated top-k entropy loss: softmax cross-entropy without the k - 1 best others:

        log(1 + Σ_j exp(scores_j - scores_y))    over all j ≠ y but the k - 1 largest scores.

    It is small as soon as the target is among the first k; not convex. The gradient is p - e_y,
    with p the softmax of the target and of those that are left. With k = 1 it is softmax
    cross-entropy.

    The arguments are those of `top_k_entropy`.

    Paper: Loss functions for top-k error (Lapin et al. 2016).

    >>> import torch, softorder as so
    >>> scores, target = torch.tensor([2.0, 1.9, -1.0, 0.5]), torch.tensor(3)
    >>> [round(so.losses.truncated_top_k_entropy(scores, target, k).item(), 3) for k in (1, 2, 3)]
    [2.278, 1.664, 0.201]
    """
    samples = _checked(scores, target, k, weight, ignore_index, reduction)
    own, others = samples.split()
    _, rest = _parted(others, k)
    return _reduced(samples, functional.softplus(rest - own), weight, reduction)


def _checked(
    scores: Tensor,
    target: Tensor,
    k: int,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
) -> Samples:
    samples = Samples.of(scores, target, ignore_index)
    _check.count("k", k, least=1, most=samples.classes - 1)
    _check.weights.per_class(weight, samples.classes)
    _check.reduction(reduction)
    return samples


def _reduced(samples: Samples, losses: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    """A NaN may have been among the classes that are left out."""
    losses = torch.where(samples.scores.isnan().any(-1), math.nan, losses)
    return samples.reduce_weighted(losses, weight, reduction)


def _parted(others: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k - 1 largest in descending order, and the logarithm of the sum of exp of the rest."""
    best = others.detach().topk(k - 1).indices
    return taken(others, best), log_sum(others.scatter(-1, best, -math.inf))


def _largest_mean(others: Tensor, k: int) -> Tensor:
    """L of `top_k_entropy`."""
    best, rest = _parted(others, k)
    falling = torch.cat([best, rest.unsqueeze(-1)], -1)
    log_z = falling.flip(-1).logcumsumexp(-1).flip(-1)  # of what u = 0, 1, ..., k - 1 leave over
    free = torch.arange(k, 0, -1, dtype=others.dtype, device=others.device)
    too_large = best > log_z[..., :-1] - free[:-1].log()
    u = too_large.sum(-1, keepdim=True)
    capped = torch.where(too_large, best + math.log(k), 0.0).sum(-1) / k
    left = free[u.squeeze(-1)] / k
    return capped + left * (log_z.gather(-1, u).squeeze(-1) - left.log())


class TopKEntropyLoss(ClassLoss):
    """`top_k_entropy` as a module.

    >>> import torch, softorder as so
    >>> criterion = so.losses.TopKEntropyLoss(k=3)
    >>> round(criterion(torch.tensor([2.0, 1.9, -1.0, 0.5]), torch.tensor(3)).item(), 3)
    1.755
    """

    def forward(self, scores: Tensor, target: Tensor) -> Tensor:
        return top_k_entropy(scores, target, **self.options())


class TruncatedTopKEntropyLoss(ClassLoss):
    """`truncated_top_k_entropy` as a module.

    >>> import torch, softorder as so
    >>> criterion = so.losses.TruncatedTopKEntropyLoss(k=2)
    >>> round(criterion(torch.tensor([2.0, 1.9, -1.0, 0.5]), torch.tensor(3)).item(), 3)
    1.664
    """

    def forward(self, scores: Tensor, target: Tensor) -> Tensor:
        return truncated_top_k_entropy(scores, target, **self.options())

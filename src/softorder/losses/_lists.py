"""What losses of lists share: one loss per row, of which some do not count."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor

from softorder import _axis, _check
from softorder._auto import Temperature
from softorder.kernels.ragged import Bucket
from softorder.kernels.shards import WHOLE, Whole
from softorder.losses._precision import dtype_of_loss
from softorder.nn._tempered import Tempered
from softorder.ops import _forms, soft_rank, soft_topk
from softorder.ops._method import method_of
from softorder.ops.calibration import of_order
from softorder.ragged import _jagged
from softorder.ragged._rows import Rows


def reduce_rows(
    losses: Tensor,
    counts: Tensor,
    reduction: str,
    dtype: torch.dtype,
    others: Whole = WHOLE,
    weight: Tensor | None = None,
) -> Tensor:
    """The mean over the rows that count, the sum, or the losses, with 0 where they do not.

    `others` are ranks that have more rows. The mean is that of the weights, too.
    """
    losses, shares = torch.where(counts, losses, 0.0), counts
    if weight is not None:
        weight = weight.to(losses.dtype).expand(losses.shape)
        losses, shares = losses * weight, torch.where(counts, weight, 0.0)
    if reduction == "none":
        return losses.to(dtype)
    total = others.common(losses.sum())
    return (total / others.add(shares.sum()) if reduction == "mean" else total).to(dtype)


class RankingLoss(Tempered):
    """A loss of lists: scores and relevances of the same shape, one list along `dim`.

    `criterion(scores, relevance, mask)`: elements where the mask is False are padding; they, and
    scores of -inf, take no part, whatever their relevance. A list that has nothing to be judged by
    costs 0, gets no gradient and does not count in the mean. `weight`, behind the mask, says how
    much each list counts: numbers >= 0 that broadcast over the lists (the shape of scores without
    `dim`); the mean is divided by their sum. `weights`, behind it, says how much each element
    counts: numbers >= 0 that broadcast to scores, constants without a gradient. With 1 nothing
    changes; what another number does, each loss says.

    Args:
        method: any of `so.methods()` that serves what the loss is made of.
        temperature: τ > 0, a number or a tensor that broadcasts over the lists: the shape of scores
            without `dim`, perhaps with an axis of size 1 behind it.
        dim: the axis of the lists; several of them, or None for all, make one list.
        reduction: "mean" over the lists that count, "sum", or "none" for one number per list.
        learnable_temperature: the temperature is a parameter, stored as its logarithm.
    """

    operators: tuple[str, ...]  #: what the method has to serve; none, if there is no method

    def __init__(
        self,
        *,
        method: str | object = "laplace",
        temperature: Temperature = 1.0,
        dim: int | tuple[int, ...] | None = -1,
        reduction: str = "mean",
        learnable_temperature: bool = False,
    ) -> None:
        operator = self.operators[0] if self.operators else None
        super().__init__(operator, method, temperature, learnable_temperature)
        _check.reduction(reduction)
        self.dim = dim
        self.reduction = reduction

    def forward(
        self,
        scores: Tensor,
        relevance: Tensor,
        mask: Tensor | None = None,
        weight: Tensor | None = None,
        weights: Tensor | None = None,
    ) -> Tensor:
        if _forms.is_jagged(scores):
            return self._jagged(scores, relevance, mask, weight, weights)
        _check.floating("scores", scores)
        _check.targets.relevance("relevance", relevance, scores)
        if weights is not None:
            _check.weights.per_score(weights, scores)
            weights = _axis.join(weights.expand(scores.shape), _axis.axes(scores, self.dim))
        scores, relevance, dim, mask = _forms.lists(scores, relevance, self.dim, mask)
        _check.scores(scores, dim)
        _check.mask(mask, scores)
        _check.weights.per_list(weight, scores, dim)
        x = _axis.rows(scores, dim, largest=True, mask=mask)
        self._find_temperature(x)
        _check.temperature(self.temperature, x, -1)
        present = x != -math.inf
        # what is padding may be anything
        wanted = torch.where(present, relevance.movedim(dim, -1).to(x.dtype), 0.0)
        if x.shape[-1] == 0:
            losses = x.sum(-1)
            counts = losses != 0
        else:
            losses, counts = self._losses(x, wanted, present, _constants(weights, present, x))
        return reduce_rows(losses, counts, self.reduction, dtype_of_loss(scores), weight=weight)

    def _find_temperature(self, x: Tensor) -> None:
        """In the first call, if the scores are to decide; the module keeps it."""
        of_order(self.temperature, x, method=self.method)

    def _jagged(
        self,
        scores: Tensor,
        relevance: Tensor,
        mask: Tensor | None,
        weight: Tensor | None,
        weights: Tensor | None,
    ) -> Tensor:
        """Lists of different lengths: those of about the same length are padded together."""
        jagged = _jagged.unpack(scores, self.dim)
        wanted = _jagged.beside("relevance", relevance, jagged)
        lists = Rows.checked(*jagged, _jagged.beside("mask", mask, jagged))
        assert wanted is not None
        _check.targets.relevance("relevance", wanted, lists.values)
        counted = _jagged.beside("weights", weights, jagged)
        if counted is not None:
            _check.weights.per_score(counted, lists.values)
        self._find_temperature(_jagged.pack(lists.values.detach(), jagged))
        if isinstance(self.temperature, Tensor):
            _check.one_for_all_rows("temperature", self.temperature)

        def each(x: Tensor, part: Bucket) -> Tensor:
            x = _axis.clean(x, part.mask)
            present = x != -math.inf
            own = None if counted is None else part.pad(counted)
            losses, counts = self._losses(
                x,
                torch.where(present, part.pad(wanted).to(x.dtype), 0.0),
                present,
                _constants(own, present, x),
            )
            return torch.stack([losses, counts.to(losses.dtype)], -1)

        losses, counts = lists.per_row(each).unbind(-1)
        _check.weights.per_list(weight, losses.unsqueeze(-1), -1)
        dtype = dtype_of_loss(lists.values)
        return reduce_rows(losses, counts > 0, self.reduction, dtype, weight=weight)

    @abstractmethod
    def _losses(
        self, x: Tensor, wanted: Tensor, present: Tensor, weights: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """The loss of every row, and whether it counts."""

    def _ranks(self, x: Tensor, descending: bool = True, weights: Tensor | None = None) -> Tensor:
        """Soft ranks; with weights from the top, as if every score were there so many times."""
        return self._ranks_at(self.temperature, x, descending, weights)

    def _ranks_at(
        self,
        tau: float | Tensor,
        x: Tensor,
        descending: bool = True,
        weights: Tensor | None = None,
    ) -> Tensor:
        """The same at another temperature."""
        if weights is not None:
            method: Any = method_of("fsum", self.method)
            found: Tensor = method.ranks_of_many(x, weights, _axis.per_row(tau, x))
            return found
        return soft_rank(x, method=self.method, temperature=tau, descending=descending)

    def extra_repr(self) -> str:
        return self.describe("method", "temperature", "dim", "reduction")


def _constants(weights: Tensor | None, present: Tensor, x: Tensor) -> Tensor | None:
    """Weights of elements as the losses take them: 0 for what takes no part."""
    if weights is None:
        return None
    weights = torch.where(present, weights.detach().to(x.dtype), 0.0)
    _check.targets.no_negatives("weights", weights)
    return weights


def shares(members: Tensor, weights: Tensor | None, like: Tensor) -> Tensor:
    """How much each element counts: its weight, or 1, if it is one of these, and else 0."""
    return torch.where(members, 1.0 if weights is None else weights, 0.0).to(like.dtype)


def mean_of(values: Tensor | float, share: Tensor) -> tuple[Tensor, Tensor]:
    """The mean of the values by their shares, and whether there are any."""
    total = share.sum(-1)
    counts = total > 0
    found = torch.where(share > 0, values, 0.0) * share
    return found.sum(-1) / torch.where(counts, total, 1.0), counts


class CutLoss(RankingLoss):
    """A loss of the first k places of a list, softly chosen; of all places if k is None."""

    numbers = ("k", *RankingLoss.numbers)

    def __init__(self, k: int | None = None, **options: Any) -> None:
        super().__init__(**options)
        if k is not None:
            _check.count("k", k, least=1)
            method_of("soft_topk", self.method)
        self.k = k

    def _chosen(self, x: Tensor) -> Tensor | None:
        """How much every element is among the first k; None without a k: all are."""
        if self.k is None:
            return None
        k = min(self.k, x.shape[-1])
        return soft_topk(x, k, method=self.method, temperature=self.temperature)

    def extra_repr(self) -> str:
        return f"k={self.k}, {super().extra_repr()}"


class ScoreLoss(RankingLoss):
    """A loss of the scores themselves: the temperature only divides them, and there is no method.

    Args:
        temperature: τ > 0, a number or a tensor that broadcasts over the lists.
        dim: the axis of the lists; several of them, or None for all, make one list.
        reduction: "mean" over the lists that count, "sum", or "none" for one number per list.
        learnable_temperature: the temperature is a parameter, stored as its logarithm.
    """

    operators = ()

    def __init__(
        self,
        *,
        temperature: float | Tensor = 1.0,
        dim: int | tuple[int, ...] | None = -1,
        reduction: str = "mean",
        learnable_temperature: bool = False,
    ) -> None:
        _check.temperature_alone(temperature)  # there is no choice whose softness could find it
        super().__init__(
            method=None,
            temperature=temperature,
            dim=dim,
            reduction=reduction,
            learnable_temperature=learnable_temperature,
        )

    def _find_temperature(self, x: Tensor) -> None:
        """It is given."""

    def _tempered(self, x: Tensor, present: Tensor) -> Tensor:
        """x/τ, with 0 for what takes no part; a list with a NaN passes no gradient."""
        tau = _axis.per_row(self.temperature, x).to(x.dtype)
        values = torch.where(present, x.detach(), 0.0)
        passes = present & ~values.isnan().any(-1, keepdim=True)
        return torch.where(passes, x, values) / tau.unsqueeze(-1)

    def extra_repr(self) -> str:
        return self.describe("temperature", "dim", "reduction")

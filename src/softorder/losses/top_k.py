"""The cross-entropy of being among the first k."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from softorder import _axis, _check
from softorder._auto import Temperature, wanted
from softorder.densities import Density
from softorder.kernels.one_entry import log_softmax
from softorder.kernels.shards import WHOLE, Whole
from softorder.losses import _sharded
from softorder.losses._classes import Samples
from softorder.losses._fused import Fused
from softorder.losses._mass import check_method, density_number, operator_for
from softorder.losses._mixture import Mixture
from softorder.losses._ragged import Candidates, TopK
from softorder.losses._reduced import Reduced
from softorder.losses._sharded import Cut
from softorder.nn._tempered import Tempered
from softorder.ops import _forms, calibration

#: What stands for k = 1: over which classes a softmax is, if it is one.
TOP1 = MappingProxyType(
    {
        "softmax": "all",
        "softmax_of_m": "m",
        "mixed_softmax": "all",
        "mixed_softmax_of_m": "m",
        "operator": None,
    }
)


APART = ("softmax", "softmax_of_m")  #: with a loss of its own, not in the mixture


def top_k_cross_entropy(
    scores: Tensor,
    target: Tensor,
    p_k: Tensor | Sequence[float],
    *,
    per_sample: bool = False,
    method: str | Density | object = "laplace",
    temperature: Temperature = 1.0,
    m: int | None = None,
    top1: str = "softmax",
    weight: Tensor | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
) -> Tensor:
    """How surely the true class y is among the first k guesses, for a k drawn from p_k.

    With S_k the soft share of y in the top k, `so.soft_topk(scores, k)[y]`, and p_k[0] the weight
    of k = 1, p_k[1] that of k = 2, and so on, the loss of a sample is

        -log Σ_k p_k S_k                                               top1="operator"
        p_1 softmax-CE - (1 - p_1) log Σ_{k≥2} p_k S_k                 top1="softmax"
        -log(p_1 softmax(scores)_y + Σ_{k≥2} p_k S_k)                  top1="mixed_softmax"

    (equations 2 and 4 of the paper, and the default of its code; a softmax guides a network that is
    trained from scratch. At its best the second one is -(1 - p_1) log(1 - p_1), not 0.) The softmax
    is that of all classes, or only of the m that compete: "softmax_of_m", "mixed_softmax_of_m".

    With one of the densities it takes one threshold per row and k, where p_k is not 0, nothing of
    size k×n is formed, and loss and gradient are right however far the target is below the rest.

    Args:
        scores: logits (C), (N, C) or (N, C, d1, ...), as in torch's cross_entropy; or a jagged
            tensor (N, *), each row with candidates of its own, and so without a weight and a p_k
            per class.
        target: classes (), (N) or (N, d1, ...).
        p_k: the weights of k = 1, 2, ..., K, a list or a tensor that may require grad; they sum to
            1. Shared by all samples (K), or per class (C, K): a sample takes the row of its target.
        per_sample: p_k has the shape of target and an axis for k instead.
        method: any of `so.methods()` that serves log_soft_topk, soft_permutation (its first k rows
            are added up) or soft_topk; or a density of your own. Rows and masks cost O(k n), their
            S_k may exceed 1 where the method says so, and an S_k that underflows has no gradient,
            but for transport: "sinkhorn_sort" (the paper's SinkhornSort; "sinkhorn" is the same
            here), "sorted_soft" with the largest k that has weight, and "soft" ("logistic" at τ/2).
        temperature: τ > 0, a number or a tensor that broadcasts over target. May require grad.
            "auto", or `so.Auto(softness=...)`: that of a choice of the largest k with a weight,
            among all classes.
        m: let only the m largest scores compete, the target always among them.
        top1: what stands for k = 1, "softmax", "mixed_softmax", both also with "_of_m", or
            "operator". The code of the paper calls "mixed_softmax_of_m" sm, "softmax_of_m" smce and
            "operator" sort, and adds 1e-7 to what the logarithm is taken of.
        weight: one number for each class, as in torch.
        ignore_index: samples with this target have no loss and no gradient.
        label_smoothing: as in torch, in [0, 1]; with m it is spread over the m that compete. Needs
            the shares of all classes, hence memory O(k n).
        reduction: "mean" (weighted, over what is not ignored), "sum" or "none".

    Papers: Differentiable top-k (Petersen et al. 2022); LapSum (Struski et al. 2025).

    >>> import torch, softorder as so
    >>> scores = torch.tensor([[2.0, 1.9, -1.0, 0.5]], requires_grad=True)
    >>> target = torch.tensor([1])  # the second guess
    >>> one = so.losses.top_k_cross_entropy(scores, target, [1.0])
    >>> two = so.losses.top_k_cross_entropy(scores, target, [0.0, 1.0], temperature=0.3)
    >>> round(one.item(), 3), round(two.item(), 3)
    (0.878, 0.038)
    """
    if weight is None and m is None and per_sample is False and _check.eager():
        known = _numbers_alone(p_k, method, temperature, top1, label_smoothing, reduction)
        if known is not None and known.serves(scores, target):
            loss = _of_numbers(scores, target, known, method, top1, ignore_index)
            if loss is not None:
                return loss
    if _forms.is_jagged(scores):
        _check.ragged.no_classes("weight", weight)
        settings = (
            per_sample,
            method,
            temperature,
            m,
            top1,
            ignore_index,
            label_smoothing,
            reduction,
        )
        return _of_jagged(scores, target, p_k, *settings)
    if wanted(temperature):
        temperature = _found(temperature, scores, p_k, method, m)
    options: dict[str, Any] = {
        "per_sample": per_sample,
        "method": method,
        "temperature": temperature,
        "m": m,
        "top1": top1,
        "weight": weight,
        "ignore_index": ignore_index,
        "label_smoothing": label_smoothing,
        "reduction": reduction,
    }
    if _forms.special(scores, -1):
        return _of_dtensor(scores, target, p_k, options)
    return part_of_top_k_cross_entropy(scores, target, p_k, None, WHOLE, **options)


def _numbers_alone(
    p_k: Tensor | Sequence[float],
    method: object,
    temperature: object,
    top1: object,
    label_smoothing: object,
    reduction: object,
) -> Reduced | None:
    """What the kernel is asked, if these are words and numbers, and it has an answer."""
    if type(p_k) is not tuple:
        if type(p_k) is not list:
            return None
        p_k = tuple(p_k)
    kinds = {type(temperature), type(label_smoothing), *map(type, p_k)}
    words = type(method) is type(top1) is type(reduction) is str
    if not words or not kinds <= _NUMBERS or label_smoothing:
        return None
    return _known(p_k, method, temperature, top1, reduction)


_NUMBERS = {float, int}


@lru_cache(maxsize=256)
def _known(
    p_k: tuple[float, ...], method: str, temperature: float, top1: str, reduction: str
) -> Reduced | None:
    """The same; what comes again and again is looked at once."""
    p = _check.weights.p_k(p_k)
    _check.choice("top1", top1, TOP1)
    _check.reduction(reduction)
    _check.temperature_alone(temperature)
    number, ks = density_number(method), _weighted(p_k)
    if number is None or reduction == "none" or (top1 == "softmax" and ks == (1,)):
        return None
    columns = _columns(ks, TOP1[top1])
    with torch.inference_mode(False):
        shares = p.unsqueeze(0).index_select(-1, _known_places(*ks))
    apart, mean = _is_apart(top1, columns), reduction == "mean"
    return Reduced(number, columns, shares, apart, temperature, mean, p_k)


def _of_numbers(
    scores: Tensor,
    target: Tensor,
    known: Reduced,
    method: object,
    top1: str,
    ignore_index: int,
) -> Tensor | None:
    """The loss, if no sample is ignored."""
    if not _check.targets.classes(scores, target, ignore_index):
        return None
    _check.weights.candidates(max(known.ks[-1], 1), None, scores.shape[1])

    def plain(scores: Tensor) -> Tensor:
        samples = Samples.of(scores, target, ignore_index)
        tau = _axis.per_row(known.temperature, scores)
        mixture = Mixture(method, tau, None, 0.0, TOP1[top1])
        shares, ks = _check.weights.p_k(known.p_k).unsqueeze(0), _weighted(known.p_k)
        losses = _losses(samples, mixture, ks, shares, None, top1)
        return samples.reduce(losses, None, "mean" if known.mean else "sum", WHOLE)

    return known.loss(scores, target, plain)


def _columns(ks: tuple[int, ...], softmax: str | None) -> tuple[int, ...]:
    """The k as the kernel knows them: 0 where a softmax stands for k = 1."""
    return tuple(0 if k == 1 and softmax is not None else k for k in ks)


def _is_apart(top1: str, columns: tuple[int, ...]) -> bool:
    """Whether the softmax is not part of the mixture."""
    return top1 in APART and columns[0] == 0


def _found(
    temperature: Temperature,
    scores: Tensor,
    p_k: Tensor | Sequence[float],
    method: object,
    m: int | None,
) -> float | Tensor:
    """The temperature that the scores decide, for the largest k that has a weight."""
    _check.floating_dtype("scores", scores)
    _check.weights.p_k(p_k)
    axis = 0 if scores.dim() == 1 else 1
    k = max(_weighted(p_k))
    _check.weights.candidates(k, m, scores.shape[axis])
    return calibration.of_topk(temperature, scores, k, method=method, dim=axis)


def _of_jagged(
    scores: Tensor,
    target: Tensor,
    p_k: Tensor | Sequence[float],
    per_sample: bool,
    method: object,
    temperature: Temperature,
    m: int | None,
    top1: str,
    ignore_index: int,
    label_smoothing: float,
    reduction: str,
) -> Tensor:
    """With as many candidates in every row as it has."""
    p, ks = _check.weights.p_k(p_k), _weighted(p_k)
    _check.choice("top1", top1, TOP1)
    _check.reduction(reduction)
    candidates = Candidates.of(scores, target, ignore_index)
    _check.ragged.per_row_p_k(p, len(target), per_sample)
    _check.weights.label_smoothing(label_smoothing)
    k = max(ks)
    _check.weights.candidates(k, m, None)
    tau = calibration.of_topk(temperature, scores, k, method=method, dim=1)
    _check.temperature(tau, candidates.rows.columns, -1)
    kind = TOP1[top1], top1 in APART
    loss = TopK(ks, check_method(method), tau, m, label_smoothing, *kind)
    return candidates.reduce(loss.losses(candidates, p), reduction)


def part_of_top_k_cross_entropy(
    scores: Tensor,
    target: Tensor,
    p_k: Tensor | Sequence[float],
    cut: Cut | None,
    others: Whole,
    *,
    per_sample: bool,
    method: str | Density | object,
    temperature: float | Tensor,
    m: int | None,
    top1: str,
    weight: Tensor | None,
    ignore_index: int,
    label_smoothing: float,
    reduction: str,
) -> Tensor:
    """The same where this rank has only some of the classes (`cut`), or of the rows (`others`)."""
    p = _check.weights.p_k(p_k)
    _check.choice("top1", top1, TOP1)
    _check.weights.label_smoothing(label_smoothing)
    _check.reduction(reduction)
    samples = Samples.of(scores, target, ignore_index, cut)
    axis = 0 if scores.dim() == 1 else 1
    _check.temperature(temperature, scores, axis)
    _check.weights.per_class(weight, samples.classes)
    ks = _weighted(p_k)
    _check.weights.candidates(max(ks), m, samples.classes)
    _check.weights.p_k_rows(p, samples.classes, target.shape, per_sample)
    alone = cut is None and others.alone
    if top1 == "softmax" and ks == (1,) and not p.requires_grad and alone:
        check_method(method)
        return functional.cross_entropy(
            scores,
            target,
            weight,
            ignore_index=ignore_index,
            label_smoothing=label_smoothing,
            reduction=reduction,
        )
    tau = _axis.per_row(_axis.of_rows(temperature, scores, axis), samples.scores)
    mixture = Mixture(check_method(method), tau, m, label_smoothing, TOP1[top1])
    shares = _shares(p, samples, per_sample)
    if alone and mixture.label_smoothing == 0 and (m is None or m >= samples.classes):
        loss = _fused(samples, mixture, ks, shares, weight, top1, reduction)
        if loss is not None:
            return loss
    losses = _losses(samples, mixture, ks, shares, weight, top1)
    return samples.reduce(losses, weight, reduction, others)


def _losses(
    samples: Samples,
    mixture: Mixture,
    ks: tuple[int, ...],
    shares: Tensor,
    weight: Tensor | None,
    top1: str,
) -> Tensor:
    """The loss of every row, weighted."""
    if top1 not in APART:
        return mixture.losses(samples, ks, shares, weight)
    first, rest = shares[:, 0], tuple(k for k in ks if k > 1)
    losses = torch.zeros_like(samples.target, dtype=torch.float64)
    if rest:
        losses = (1 - first) * mixture.losses(samples, rest, shares, weight)
    if 1 not in ks:
        return losses
    if top1 == "softmax":
        softmax = _softmax_losses(samples, weight, mixture.label_smoothing)
    else:
        softmax = mixture.losses(samples, (1,), torch.ones_like(shares[:1]), weight)
    return losses.to(softmax.dtype) + first.to(softmax.dtype) * softmax


def _fused(
    samples: Samples,
    mixture: Mixture,
    ks: tuple[int, ...],
    shares: Tensor,
    weight: Tensor | None,
    top1: str,
    reduction: str,
) -> Tensor | None:
    """The loss by one kernel, if there is one for this method, here and now."""
    number = density_number(mixture.method)
    if number is None:
        return None
    columns = _columns(ks, mixture.softmax)
    fused = Fused(number, columns, _is_apart(top1, columns), weight, reduction)
    chosen = shares
    if len(ks) < shares.shape[-1]:
        chosen = shares.index_select(-1, _places(ks, shares))
    tau = mixture.temperature
    if not fused.serves(samples, tau, chosen):
        return None

    def plain(scores: Tensor, temperature: Tensor, chosen: Tensor) -> Tensor:
        every = chosen.new_zeros(len(chosen), max(ks))
        every = every.index_copy(-1, _places(ks, chosen), chosen)
        rows = replace(samples, scores=scores)
        own = replace(mixture, temperature=temperature)
        if temperature.dim():
            own = replace(own, temperature=temperature.reshape(samples.shape))
        return samples.reduce(_losses(rows, own, ks, every, weight, top1), weight, reduction, WHOLE)

    return fused.loss(samples, tau, chosen, plain)


def _places(ks: tuple[int, ...], shares: Tensor) -> Tensor:
    """Where the shares of these k are."""
    if shares.is_cpu and _check.eager():
        return _known_places(*ks)
    return torch.tensor([k - 1 for k in ks], device=shares.device)


@lru_cache(maxsize=64)
def _known_places(*ks: int) -> Tensor:
    with torch.inference_mode(False):
        return torch.tensor([k - 1 for k in ks], device="cpu")


def _softmax_losses(samples: Samples, weight: Tensor | None, label_smoothing: float) -> Tensor:
    weight = weight if weight is None else weight.to(samples.scores.dtype)
    x, y = samples.scores, samples.target
    if samples.cut is not None:
        return _sharded.cross_entropy(x, y, weight, label_smoothing, samples.cut)
    if label_smoothing == 0:
        losses = -log_softmax(x, y)
        return losses if weight is None else losses * weight[y]
    options: dict[str, Any] = {"label_smoothing": label_smoothing, "reduction": "none"}
    return functional.cross_entropy(x, y, weight, **options)


def _of_dtensor(
    scores: Tensor, target: Tensor, p_k: Tensor | Sequence[float], options: dict[str, Any]
) -> Tensor:
    """With classes, samples or both cut among ranks."""
    axis = 0 if scores.dim() == 1 else 1
    pieces = _forms.Pieces(scores, (axis,))
    own = {**options, "temperature": pieces.number("temperature", options["temperature"])}
    cut = None if pieces.shards.alone else Cut.of(pieces.local, axis, pieces.cut_rows)
    y, p = pieces.number("target", target), p_k
    if options["per_sample"] and not pieces.other_rows.alone:
        _check.distributed.whole_rows("per_sample")
    loss = part_of_top_k_cross_entropy(pieces.local, y, p, cut, pieces.other_rows, **own)
    if options["reduction"] == "none":
        return pieces.per_row(loss, leading=False, keepdim=False)
    return pieces.alike_result(loss)


class TopKCrossEntropyLoss(Tempered):
    """`top_k_cross_entropy` as a module.

    p_k may be a parameter. A p_k of each sample is handed to the call: `criterion(scores, target,
    p_k)`, with the shape of target and an axis for k.

    >>> import torch, softorder as so
    >>> criterion = so.losses.TopKCrossEntropyLoss([0.5, 0, 0, 0, 0.5], temperature=0.3)
    >>> scores = torch.randn(8, 100, generator=torch.Generator().manual_seed(0), requires_grad=True)
    >>> criterion(scores, torch.arange(8)).backward()
    >>> criterion
    TopKCrossEntropyLoss(p_k=[0.5, 0, 0, 0, 0.5], method='laplace', temperature=0.3, m=None, ...)
    """

    numbers = ("p_k", "m", "ignore_index", "label_smoothing", *Tempered.numbers)
    weight: Tensor | None

    def __init__(
        self,
        p_k: Tensor | Sequence[float],
        *,
        method: str | object = "laplace",
        temperature: Temperature = 1.0,
        m: int | None = None,
        top1: str = "softmax",
        weight: Tensor | None = None,
        ignore_index: int = -100,
        label_smoothing: float = 0.0,
        reduction: str = "mean",
        learnable_temperature: bool = False,
    ) -> None:
        super().__init__(operator_for(method), method, temperature, learnable_temperature)
        _check.weights.p_k(p_k)
        _check.weights.candidates(max(_weighted(p_k)), m, None)
        _check.choice("top1", top1, TOP1)
        _check.weights.per_class(weight)
        _check.weights.label_smoothing(label_smoothing)
        _check.reduction(reduction)
        self.p_k = p_k
        self.register_buffer("weight", weight)
        self.m = m
        self.top1 = top1
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.reduction = reduction

    def forward(self, scores: Tensor, target: Tensor, p_k: Tensor | None = None) -> Tensor:
        return top_k_cross_entropy(
            scores,
            target,
            self.p_k if p_k is None else p_k,
            per_sample=p_k is not None,
            method=self.method,
            temperature=self.temperature,
            m=self.m,
            top1=self.top1,
            weight=self.weight,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            reduction=self.reduction,
        )

    def extra_repr(self) -> str:
        names = "p_k", "method", "temperature", "m", "top1", "ignore_index", "label_smoothing"
        return self.describe(*names, "reduction")


def _weighted(p_k: Tensor | Sequence[float]) -> tuple[int, ...]:
    """The k that matter: all of them where p_k learns or cannot be seen."""
    if isinstance(p_k, Tensor):
        every = tuple(range(1, p_k.shape[-1] + 1))
        if not _check.at_hand(p_k) or (p_k.requires_grad and torch.is_grad_enabled()):
            return every
        some = (p_k.reshape(-1, len(every)) != 0).any(0).tolist()
    else:
        rows = p_k if isinstance(p_k[0], Sequence) else [p_k]
        some = [any(column) for column in zip(*rows, strict=True)]
    return tuple(k for k, matters in enumerate(some, 1) if matters) or (1,)


def _shares(p: Tensor, samples: Samples, per_sample: bool) -> Tensor:
    """p_k of every row, (rows, K) or (1, K)."""
    p = p.to(samples.scores.device, torch.float64)
    if p.dim() == 1:
        return p.unsqueeze(0)
    if per_sample:
        return p.expand(*samples.shape, p.shape[-1]).reshape(-1, p.shape[-1])
    return p[samples.target]

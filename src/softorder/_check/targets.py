"""What the losses compare scores with: places, classes, shares, relevances."""

from __future__ import annotations

import torch
from torch import Tensor

from softorder._check import _kinds, _tensors
from softorder._check._mode import eager
from softorder._check._values import beside, extremes, first, refuse


def places(target: Tensor, scores: Tensor, dim: int, ignore_index: int) -> bool:
    """`target` holds places in [0, n), or ignore_index, and is shaped as scores.

    Tells whether it was seen that none of them is to be ignored.
    """
    _tensors.integers("target", target)
    beside("target", target, scores)
    if target.shape != scores.shape:
        raise ValueError(
            f"target must have the shape of scores, {tuple(scores.shape)}, "
            f"but got shape {tuple(target.shape)}"
        )
    n = scores.shape[dim]
    if eager() and target.numel():
        if target.is_cpu:
            low, high = extremes(target)
            if low >= 0 and high < n:  # what happens most
                return not low <= ignore_index <= high
        wrong = ((target < 0) | (target >= n)) & (target != ignore_index)
        refuse(
            "target",
            wrong,
            lambda: (
                f"target must be between 0 and {n - 1}, the last place along dim {dim}, or "
                f"ignore_index = {ignore_index}, but got {int(first(target, wrong))}"
            ),
        )
    return False


def once(target: Tensor, counted: Tensor | None) -> None:
    """No place of a row, on the last axis, is taken by two of those that are counted: or of all."""
    if not eager() or not target.numel():
        return
    n = target.shape[-1]
    if counted is None:
        taken = torch.zeros(target.shape, dtype=torch.uint8, device=target.device)
        ones = taken.new_ones(1).expand(target.shape)  # three times as fast as a number is
        if taken.scatter_(-1, target.long(), ones).amin():
            return
        counted = torch.ones_like(target, dtype=torch.bool)
    places = torch.where(counted, target, n).long()
    taken = torch.zeros(*target.shape[:-1], n + 1, dtype=torch.bool, device=target.device)
    found = taken.scatter_(-1, places, True)[..., :n].sum(-1)
    wrong = found != counted.sum(-1)
    refuse("target", wrong, lambda: _twice(places[wrong][0].tolist(), n))


def _twice(places: list[int], n: int) -> str:
    place = next(place for place in range(n) if places.count(place) > 1)
    return (
        "target must be a permutation, with one score for each place, but got the place "
        f"{place} for {places.count(place)} scores of a row"
    )


def classes(scores: Tensor, target: Tensor, ignore_index: int, total: int | None = None) -> bool:
    """Scores (C), (N, C) or (N, C, d1, ...), and classes (), (N) or (N, d1, ...), as in torch.

    `total` is the number of classes if these are not all. Tells whether it was seen that none of
    the targets is to be ignored.
    """
    _tensors.scores(scores, 0)
    _tensors.integers("target", target)
    beside("target", target, scores)
    shape = list(scores.shape)
    count = shape.pop(0 if len(shape) == 1 else 1)
    if list(target.shape) != shape:
        raise ValueError(
            f"target must have the shape {tuple(shape)}, that of scores without its axis of "
            f"classes, but got shape {tuple(target.shape)}"
        )
    if not eager() or not target.numel():
        return False
    count = count if total is None else total
    if target.is_cpu:
        low, high = extremes(target)
        if low >= 0 and high < count:
            return not low <= ignore_index <= high
    wrong = ((target < 0) | (target >= count)) & (target != ignore_index)
    refuse(
        "target",
        wrong,
        lambda: (
            f"target must be between 0 and {count - 1}, the last class, or ignore_index = "
            f"{ignore_index}, but got {int(first(target, wrong))}"
        ),
    )
    return False


def shares(target: Tensor, scores: Tensor) -> None:
    """`target` holds numbers in [0, 1], and is shaped as scores."""
    relevance("target", target, scores)
    if eager() and target.numel():
        wrong = ~((target >= 0) & (target <= 1))
        message = "target must be between 0 and 1, but got {}"
        refuse("target", wrong, lambda: message.format(first(target, wrong)))


def sums(found: Tensor, k: Tensor, present: Tensor) -> None:
    """The targets of every row sum to k, or to the number of scores that take part if less."""
    if not eager():
        return
    wanted = torch.minimum(k.to(found.device), present)
    wrong = (found - wanted).abs() > 1e-3 * wanted.clamp(min=1)
    refuse(
        "target",
        wrong,
        lambda: (
            f"target must sum to k = {first(wanted.expand_as(found), wrong):g} along dim, "
            f"but got a sum of {first(found, wrong):g}"
        ),
    )


def relevance(name: str, target: Tensor, scores: Tensor) -> None:
    """One real number for each score."""
    if not isinstance(target, Tensor):
        raise TypeError(f"{name} must be a tensor, but got {type(target).__name__}")
    if target.dtype.is_complex or target.is_quantized:
        raise TypeError(f"{name} must hold real numbers, but got a tensor of {target.dtype}")
    _kinds.dense(name, target)
    beside(name, target, scores)
    if target.shape != scores.shape:
        raise ValueError(
            f"{name} must have the shape of scores, {tuple(scores.shape)}, but got shape "
            f"{tuple(target.shape)}"
        )


def no_negatives(name: str, values: Tensor) -> None:
    """Finite numbers >= 0."""
    if eager() and values.numel():
        wrong = ~((values >= 0) & values.isfinite())
        message = "{} must be finite and >= 0, but got {}"
        refuse(name, wrong, lambda: message.format(name, first(values, wrong)))

"""The arguments of the losses, validated as in _check.py."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from softorder import _check

_SUM = 1e-4  # how far from 1 a distribution may sum


def classes(scores: Tensor, target: Tensor, ignore_index: int) -> None:
    """Scores (C), (N, C) or (N, C, d1, ...), and classes (), (N) or (N, d1, ...), as in torch."""
    _check.scores(scores, 0)
    _check.integers("target", target)
    shape = list(scores.shape)
    count = shape.pop(0 if len(shape) == 1 else 1)
    if list(target.shape) != shape:
        raise ValueError(
            f"target must have the shape {tuple(shape)}, that of scores without its axis of "
            f"classes, but got shape {tuple(target.shape)}"
        )
    if not _check.eager() or not target.numel():
        return
    wrong = ((target < 0) | (target >= count)) & (target != ignore_index)
    if wrong.any():
        raise ValueError(
            f"target must be between 0 and {count - 1}, the last class, or ignore_index = "
            f"{ignore_index}, but got {int(target[wrong].flatten()[0])}"
        )


def p_k(p_k: Tensor | Sequence[float]) -> None:
    """Weights >= 0 of k = 1, 2, ... on the last axis, that sum to 1."""
    values = as_p_k(p_k)
    if values.dim() == 0 or values.shape[-1] == 0:
        raise ValueError(
            "p_k must have the weights of k = 1, 2, ... on its last axis, but got shape "
            f"{tuple(values.shape)}"
        )
    if not _check.eager() or not values.numel():
        return
    values = values.detach()
    if not (values >= 0).all():
        raise ValueError(f"p_k must hold numbers >= 0, but got {float(values.min())}")
    sums = values.double().sum(-1)
    if not ((sums - 1).abs() <= _SUM).all():
        worst = sums.flatten()[(sums - 1).abs().nan_to_num(math.inf).argmax()].item()
        raise ValueError(f"p_k must sum to 1 over k, but got a sum of {worst:.6g}")


def as_p_k(p_k: Tensor | Sequence[float]) -> Tensor:
    """As a tensor of floats."""
    if isinstance(p_k, Tensor):
        if not p_k.dtype.is_floating_point:
            raise TypeError(f"p_k must hold real numbers, but got a tensor of {p_k.dtype}")
        return p_k
    try:
        return torch.tensor(p_k, dtype=torch.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"p_k must be a tensor or a list of numbers, but got {p_k!r}") from error


def p_k_rows(p_k: Tensor, classes: int, samples: Sequence[int], per_sample: bool) -> None:
    """`p_k` is shared (K), per class (C, K), or per sample with the shape of target and K."""
    rows = tuple(p_k.shape[:-1])
    if per_sample and not _check._broadcasts(rows, samples):
        raise ValueError(
            f"p_k per sample must have the shape of target, {tuple(samples)}, and a last axis for "
            f"k, but got shape {tuple(p_k.shape)}"
        )
    if not per_sample and rows not in ((), (classes,)):
        raise ValueError(
            f"p_k must have the shape (K,) or, per class, ({classes}, K), but got shape "
            f"{tuple(p_k.shape)}"
        )


def candidates(most_k: int, m: int | None, classes: int | None) -> None:
    """No k is larger than the number of classes, nor than m of them."""
    if classes is not None and most_k > classes:
        raise ValueError(
            f"p_k must have no weight beyond k = {classes}, the number of classes, but it has some "
            f"at k = {most_k}"
        )
    if m is not None:
        _check.count("m", m, least=max(most_k, 1))


def weight(weight: Tensor | None, classes: int | None = None) -> None:
    """`weight` is None, or one number for each class."""
    if weight is None:
        return
    if not isinstance(weight, Tensor):
        raise TypeError(f"weight must be a tensor or None, but got {type(weight).__name__}")
    if weight.dim() != 1 or (classes is not None and len(weight) != classes):
        shape = "(C,)" if classes is None else f"({classes},)"
        raise ValueError(f"weight must have the shape {shape}, but got {tuple(weight.shape)}")


def share(name: str, value: float) -> None:
    """A number in [0, 1]."""
    if _check._is_number(name, value) and not 0 <= value <= 1:
        raise ValueError(f"{name} must be between 0 and 1, but got {value}")


def positive(name: str, value: float) -> None:
    """A finite number > 0."""
    if isinstance(value, Tensor):
        raise TypeError(f"{name} must be a number, but got a tensor")
    if _check._is_number(name, value) and not 0 < value < math.inf:
        raise ValueError(f"{name} must be finite and > 0, but got {value}")


def shares(target: Tensor, scores: Tensor) -> None:
    """`target` holds numbers in [0, 1], and is shaped as scores."""
    relevance("target", target, scores)
    if _check.eager() and target.numel() and not ((target >= 0) & (target <= 1)).all():
        wrong = ~((target >= 0) & (target <= 1))
        raise ValueError(f"target must be between 0 and 1, but got {_check._first(target, wrong)}")


def relevance(name: str, target: Tensor, scores: Tensor) -> None:
    """One real number for each score."""
    if not isinstance(target, Tensor):
        raise TypeError(f"{name} must be a tensor, but got {type(target).__name__}")
    if target.dtype.is_complex:
        raise TypeError(f"{name} must hold real numbers, but got a tensor of {target.dtype}")
    if target.shape != scores.shape:
        raise ValueError(
            f"{name} must have the shape of scores, {tuple(scores.shape)}, but got shape "
            f"{tuple(target.shape)}"
        )


def sums(found: Tensor, k: Tensor, absent: Tensor) -> None:
    """The targets of every row sum to k, or to the number of scores that take part if less."""
    if not _check.eager():
        return
    present = (~absent).sum(-1)
    wanted = torch.minimum(k.to(found.device), present)
    wrong = (found - wanted).abs() > 1e-3 * wanted.clamp(min=1)
    if wrong.any():
        raise ValueError(
            f"target must sum to k = {_check._first(wanted.expand_as(found), wrong):g} along dim, "
            f"but got a sum of {_check._first(found, wrong):g}"
        )


def threshold_method(name: str, density: object, is_one: bool) -> None:
    """A density, and not another kind of method."""
    if not is_one:
        raise ValueError(
            f"{name} must be laplace, logistic, normal, cauchy, uniform or an even density of your "
            f"own, but got {density!r}"
        )


def between(name: str, value: float) -> None:
    """A number between 0 and 1, both excluded."""
    if isinstance(value, Tensor):
        raise TypeError(f"{name} must be a number, but got a tensor")
    if _check._is_number(name, value) and not 0 < value < 1:
        raise ValueError(f"{name} must be between 0 and 1, both excluded, but got {value}")


def no_negatives(name: str, values: Tensor) -> None:
    """Finite numbers >= 0."""
    if _check.eager() and values.numel():
        wrong = ~((values >= 0) & values.isfinite())
        if wrong.any():
            raise ValueError(
                f"{name} must be finite and >= 0, but got {_check._first(values, wrong)}"
            )

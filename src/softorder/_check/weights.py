"""How much the parts of a loss count: p_k for every k, a weight for every class."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

from softorder._check import _kinds, _values
from softorder._check._mode import eager
from softorder._check._options import count
from softorder._check._values import broadcasts, first, is_number, refuse
from softorder._check.targets import no_negatives

_SUM = 1e-4  # how far from 1 a distribution may sum


def p_k(p_k: Tensor | Sequence[float]) -> Tensor:
    """Weights >= 0 of k = 1, 2, ... on the last axis, that sum to 1; as a tensor of floats."""
    if isinstance(p_k, (list, tuple)) and eager() and all(type(p) in (float, int) for p in p_k):
        return _known(tuple(p_k))
    values = _as_tensor(p_k)
    _p_k(values)
    return values


def _p_k(values: Tensor) -> None:
    if values.dim() == 0 or values.shape[-1] == 0:
        raise ValueError(
            "p_k must have the weights of k = 1, 2, ... on its last axis, but got shape "
            f"{tuple(values.shape)}"
        )
    if not eager() or not values.numel():
        return
    values = values.detach()
    negative = ~(values >= 0)
    message = "p_k must hold numbers >= 0, but got {}"
    refuse("p_k", negative, lambda: message.format(first(values, negative)))
    sums = values.double().sum(-1)
    wrong = ~((sums - 1).abs() <= _SUM)
    total = "p_k must sum to 1 over k, but got a sum of {:.6g}"
    refuse("p_k", wrong, lambda: total.format(first(sums, wrong)))


@lru_cache(maxsize=256)
def _known(p_k: tuple[float, ...]) -> Tensor:
    """The same of a list that came before."""
    with torch.inference_mode(False):
        values = _as_tensor(p_k)
    _p_k(values)
    return values


def _as_tensor(p_k: Tensor | Sequence[float]) -> Tensor:
    if isinstance(p_k, Tensor):
        if not p_k.dtype.is_floating_point:
            raise TypeError(f"p_k must hold real numbers, but got a tensor of {p_k.dtype}")
        _kinds.dense("p_k", p_k)
        return p_k
    try:
        return torch.tensor(p_k, dtype=torch.float64, device="cpu")
    except (TypeError, ValueError) as error:
        raise TypeError(f"p_k must be a tensor or a list of numbers, but got {p_k!r}") from error


def p_k_rows(p_k: Tensor, classes: int, samples: Sequence[int], per_sample: bool) -> None:
    """`p_k` is shared (K), per class (C, K), or per sample with the shape of target and K."""
    rows = tuple(p_k.shape[:-1])
    if per_sample and not broadcasts(rows, samples):
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
        count("m", m, least=max(most_k, 1))


def per_class(weight: Tensor | None, classes: int | None = None) -> None:
    """`weight` is None, or one number for each class."""
    if weight is None:
        return
    if not isinstance(weight, Tensor):
        raise TypeError(f"weight must be a tensor or None, but got {type(weight).__name__}")
    _values.real_numbers("weight", weight)
    if weight.dim() != 1 or (classes is not None and len(weight) != classes):
        shape = "(C,)" if classes is None else f"({classes},)"
        raise ValueError(f"weight must have the shape {shape}, but got {tuple(weight.shape)}")


def label_smoothing(label_smoothing: float) -> None:
    """`label_smoothing` is a number in [0, 1]."""
    if is_number("label_smoothing", label_smoothing) and not 0 <= label_smoothing <= 1:
        raise ValueError(f"label_smoothing must be between 0 and 1, but got {label_smoothing}")


def per_score(weights: Tensor, scores: Tensor) -> None:
    """`weights` are real numbers that broadcast to scores."""
    if not isinstance(weights, Tensor):
        raise TypeError(f"weights must be a tensor or None, but got {type(weights).__name__}")
    _values.real_numbers("weights", weights)
    _values.beside("weights", weights, scores)
    if not broadcasts(weights.shape, scores.shape):
        raise ValueError(
            f"weights must broadcast to the shape of scores, {tuple(scores.shape)}, but got shape "
            f"{tuple(weights.shape)}"
        )


def per_list(weight: Tensor | None, scores: Tensor, dim: int) -> None:
    """`weight` is None, or finite numbers >= 0 that broadcast over the lists."""
    if weight is None:
        return
    if not isinstance(weight, Tensor):
        raise TypeError(f"weight must be a tensor or None, but got {type(weight).__name__}")
    _values.per_row("weight", weight, scores, dim)
    _values.beside("weight", weight, scores)
    no_negatives("weight", weight)

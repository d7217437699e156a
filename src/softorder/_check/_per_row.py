"""Numbers of rows: k, the levels q of quantiles, and the temperature."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from softorder._check import _values
from softorder._check._mode import eager
from softorder._check._values import PerRow, extremes, first, is_number, refuse


def k(k: PerRow, scores: Tensor, dim: int) -> None:
    """`k` is a number in [0, n], or a tensor of such numbers that broadcasts over the rows."""
    n, kind = scores.shape[dim], type(k)
    if (kind is int or kind is float) and 0 <= k <= n:
        return  # what happens most, in one call
    if not isinstance(k, Tensor):
        return k_among(k, n, dim)
    _values.per_row("k", k, scores, dim)
    if not eager() or k.numel() == 0:
        return
    if k.is_cpu:
        low, high = extremes(k)
        if low >= 0 and high <= n:
            return
    wrong = ~((k >= 0) & (k <= n))
    refuse("k", wrong, lambda: _k_range(n, dim, first(k, wrong)))


def k_among(k: PerRow, n: int, dim: object) -> None:
    """`k` is a number in [0, n]."""
    if is_number("k", k) and not 0 <= k <= n:
        raise ValueError(_k_range(n, dim, k))


def k_below(k: PerRow, scores: Tensor, dim: int) -> None:
    """`k` where there may be more scores than these."""
    if not isinstance(k, Tensor):
        return k_alone(k)
    _values.per_row("k", k, scores, dim)
    if eager() and k.numel():
        wrong = ~((k >= 0) & (k < math.inf))
        message = "k must be between 0 and the number of scores, but got {}"
        refuse("k", wrong, lambda: message.format(first(k, wrong)))


def k_alone(k: PerRow) -> None:
    """`k` as far as it can be judged before any scores are seen."""
    if is_number("k", k) and not 0 <= k < math.inf:
        raise ValueError(f"k must be between 0 and the number of scores, but got {k}")


def positive_k(k: PerRow) -> None:
    """`k` is a number > 0, or a tensor of numbers that will be judged with the scores."""
    if is_number("k", k) and not 0 < k < math.inf:
        raise ValueError(f"k must be finite and > 0, but got {k}")


def inner_k(k: PerRow, n: int) -> None:
    """The `k` that a learnable one starts from: between 0 and n, both excluded."""
    if not isinstance(k, Tensor):
        if not 0 < k < n:
            raise ValueError(_inner_range(n, k))
    elif eager() and k.numel():
        wrong = ~((k > 0) & (k < n))
        refuse("k", wrong, lambda: _inner_range(n, first(k, wrong)))


def _inner_range(n: int, given: PerRow) -> str:
    return (
        f"k must be between 0 and {n}, the number of scores, both excluded, where it is learnable, "
        f"but got {given}"
    )


def whole_k(k: int | None, n: int | None = None) -> None:
    """`k` is None, or a number of rows: an int in [0, n]. Without n, as far as it can be judged."""
    if k is None:
        return
    if not isinstance(k, (int, torch.SymInt)) or type(k) is bool:
        raise TypeError(f"k must be an int or None, but got {type(k).__name__}")
    if k < 0 or (n is not None and k > n):
        most = "the number of scores" if n is None else f"{n}, the number of scores"
        raise ValueError(f"k must be between 0 and {most}, but got {k}")


def q(q: PerRow, scores: Tensor, dim: int) -> None:
    """`q` is a number in [0, 1], or a tensor of them: quantiles first, then the rows."""
    if not isinstance(q, Tensor):
        return q_alone(q)
    _values.real_numbers("q", q)
    _values.reachable("q", q, scores)
    shape = _values.without(scores, dim)
    if q.dim() > 1 and not _values.broadcasts(q.shape[1:], shape):
        raise ValueError(
            f"q must be a scalar, or have its quantiles on the first axis and the others broadcast "
            f"over the rows of scores, shape {shape}, but got shape {tuple(q.shape)}"
        )
    if eager() and q.numel():
        wrong = ~((q >= 0) & (q <= 1))
        refuse("q", wrong, lambda: _q_range(first(q, wrong)))


def one_for_all_rows(name: str, value: Tensor) -> None:
    """A scalar, or one axis of numbers, for all rows alike."""
    if value.dim() > 1:
        raise ValueError(
            f"{name} must be a number or 1-D for a DTensor, but got shape {tuple(value.shape)}"
        )


def q_alone(q: PerRow) -> None:
    """`q` as far as it can be judged before any scores are seen."""
    if is_number("q", q) and not 0 <= q <= 1:
        raise ValueError(_q_range(q))


def _q_range(given: PerRow) -> str:
    return f"q must be between 0 and 1, but got {given}"


def _k_range(n: int, dim: object, given: PerRow) -> str:
    return f"k must be between 0 and {n}, the number of scores along dim {dim}, but got {given}"


def temperature(temperature: PerRow, scores: Tensor, dim: int) -> None:
    """`temperature` is a finite number > 0, or a tensor of them that broadcasts over the rows."""
    if type(temperature) is float and 0 < temperature < math.inf:
        return  # what happens most, in one call
    if not isinstance(temperature, Tensor):
        return temperature_alone(temperature)
    _values.per_row("temperature", temperature, scores, dim)
    if not eager() or temperature.numel() == 0:
        return
    if temperature.is_cpu:
        low, high = extremes(temperature)
        if low > 0 and high < math.inf:
            return
    wrong = ~((temperature > 0) & temperature.isfinite())
    refuse("temperature", wrong, lambda: _range(first(temperature, wrong)))


def temperature_alone(temperature: PerRow) -> None:
    """`temperature` as far as it can be judged before any scores are seen."""
    if is_number("temperature", temperature) and not 0 < temperature < math.inf:
        raise ValueError(_range(temperature))


def auto(word: str) -> None:
    """A `temperature` that is a word is the one that there is."""
    if word != "auto":
        raise ValueError(
            f"temperature must be a number, a tensor, 'auto' or so.Auto(...), but got {word!r}"
        )


def _range(given: PerRow) -> str:
    return f"temperature must be finite and > 0, but got {given}"

"""What quantiles take: a list of q, ways to interpolate, and weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor

from softorder._check import _options, _values
from softorder._check._mode import eager
from softorder._check._values import PerRow, first, refuse


def as_tensor(q: PerRow | Sequence[float]) -> PerRow:
    """A list of quantiles as a tensor; anything else as it is."""
    if not isinstance(q, (list, tuple)):
        return cast("PerRow", q)
    try:
        return torch.tensor(q, dtype=torch.float64, device="cpu")
    except (TypeError, ValueError) as error:
        raise TypeError(f"q must be a number, a list of them or a tensor, but got {q!r}") from error


def within(within: bool, interpolation: str) -> None:
    """`within` is a flag, which FSum⁻¹(q n) has no use for: it is -inf at q = 0."""
    _options.flag("within", within)
    if within and interpolation == "inverse":
        raise ValueError(
            "within must be False with interpolation 'inverse', but got True: choose one of "
            "torch.quantile's, such as 'linear'"
        )


def weights(weights: Tensor, scores: Tensor, interpolation: str) -> None:
    """`weights` are finite numbers >= 0 that broadcast to scores."""
    if interpolation != "inverse":
        raise ValueError(
            f"weights must be None with interpolation {interpolation!r}, which counts places: "
            "choose 'inverse'"
        )
    if not isinstance(weights, Tensor):
        raise TypeError(f"weights must be a tensor or None, but got {type(weights).__name__}")
    _values.real_numbers("weights", weights)
    _values.beside("weights", weights, scores)
    if not _values.broadcasts(weights.shape, scores.shape):
        raise ValueError(
            f"weights must broadcast to the shape of scores, {tuple(scores.shape)}, but got shape "
            f"{tuple(weights.shape)}"
        )
    if eager():
        wrong = ~((weights >= 0) & weights.isfinite())
        message = "weights must be finite and >= 0, but got {}"
        refuse("weights", wrong, lambda: message.format(first(weights, wrong)))

"""What quantiles take: a list of q, ways to interpolate, and weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor

from softorder._check import _options
from softorder._check._values import PerRow
from softorder._check.targets import no_negatives
from softorder._check.weights import per_score


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
    per_score(weights, scores)
    no_negatives("weights", weights)

"""Jagged nested tensors: torch's values and offsets in one object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from softorder import _check


def per_score(
    operator: Callable[..., Tensor], scores: Any, dim: object, mask: Any, *args: Any, **options: Any
) -> Any:
    """An operator of `so.ragged` with a result for every score: jagged as the scores are."""
    jagged = unpack(scores, dim)
    own = operator(*jagged, *args, mask=beside("mask", mask, jagged), **options)
    return pack(own, jagged)


def per_row(
    operator: Callable[..., Tensor],
    scores: Any,
    dim: object,
    mask: Any,
    keepdim: bool,
    *args: Any,
    **options: Any,
) -> Tensor:
    """The same with a result for every row, in a plain tensor."""
    jagged = unpack(scores, dim)
    found = operator(*jagged, *args, mask=beside("mask", mask, jagged), **options)
    return found.unsqueeze(-1) if keepdim else found


def quantile(
    operator: Callable[..., Tensor],
    scores: Any,
    dim: object,
    mask: Any,
    keepdim: bool,
    q: Any,
    weights: Any,
) -> Tensor:
    """The same of quantiles, with weights that are jagged as the scores are."""
    own = beside("weights", weights, unpack(scores, dim))
    return per_row(operator, scores, dim, mask, keepdim, q, weights=own)


def unpack(scores: Any, dim: object) -> tuple[Tensor, Tensor]:
    """Values without gaps, and offsets."""
    _check.ragged.jagged(scores, dim)
    if scores.lengths() is not None:
        scores = scores.contiguous()
    return scores.values(), scores.offsets()


def beside(name: str, value: Any, jagged: tuple[Tensor, Tensor]) -> Tensor | None:
    """The values of another jagged tensor with rows of the same lengths; None for None."""
    if value is None:
        return None
    _check.ragged.same_rows(name, value, jagged[1])
    found: Tensor = (value if value.lengths() is None else value.contiguous()).values()
    return found


def pack(values: Tensor, jagged: tuple[Tensor, Tensor]) -> Any:
    """Results in rows like those of the scores, which torch knows to be of the same shape."""
    found = torch.nested.nested_tensor_from_jagged(values, offsets=jagged[1])
    # a view of values cannot leave a graph that has a way back
    return found.clone() if torch.compiler.is_compiling() else found

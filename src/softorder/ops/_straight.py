"""hard=True: the hard limit there, the soft operator on the way back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from softorder import _check


def straight_through(
    operator: Callable[..., Tensor],
    limit: Callable[..., Tensor],
    hard: bool,
    arguments: tuple[Any, ...],
    options: Mapping[str, Any],
    **soft_options: Any,
) -> Tensor:
    """The value of the limit with the derivatives of the operator, as in gumbel_softmax."""
    _check.flag("hard", hard)
    soft = operator(*arguments, **options, **soft_options)
    return with_value(limit(*arguments, **options), soft)


def with_value(value: Tensor, soft: Tensor) -> Tensor:
    """The value of the one with all derivatives of the other.

    value + (soft - its value): the difference is 0, so that nothing is rounded, and carries the
    derivatives. Where the soft result is infinite (what a sort puts behind the others) it would be
    inf - inf; no derivative comes from there, and the difference is left out.
    """
    nothing = soft - soft.detach()
    return value.detach() + torch.where(nothing == 0, nothing, 0.0).to(value.dtype)

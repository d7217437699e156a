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
    """The value of the limit with the derivatives of the operator, as in gumbel_softmax.

    limit + (soft - its value): the difference is 0, so that nothing is rounded, and carries all
    derivatives. Where the soft result is infinite (what a sort puts behind the others) it would be
    inf - inf; no derivative comes from there, and the difference is left out.
    """
    _check.flag("hard", hard)
    soft = operator(*arguments, **options, **soft_options)
    nothing = soft - soft.detach()
    value = limit(*arguments, **options).detach()
    return value + torch.where(nothing == 0, nothing, 0.0)

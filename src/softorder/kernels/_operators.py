"""Defines torch.library operators whose tensors have their rows in front of one last axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

library = torch.library.Library("softorder", "FRAGMENT")


def define(schema: str, *, anywhere: Callable, cpu: Callable, fake: Callable) -> None:
    """An operator: plain torch for every device, a kernel for CPUs, and its output's shape."""
    name = library.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
    library.impl(name, anywhere, "CompositeExplicitAutograd")
    library.impl(name, cpu, "CPU")
    torch.library.register_fake(f"softorder::{name}", fake, lib=library)


def define_vmap(name: str, matrices: tuple[int, ...], numbers: tuple[int, ...]) -> None:
    """The vmap rule: the batch becomes the first axis of the rows.

    The arguments at the places `matrices` have rows and one more axis; those at `numbers` are
    numbers that broadcast over the rows.
    """
    operator = getattr(torch.ops.softorder, name)

    def rule(info: Any, in_dims: tuple, *arguments: Any) -> tuple[Any, Any]:
        values = list(arguments)
        rows = values[0].dim() - 1 - (in_dims[0] is not None)
        for place in (*matrices, *numbers):
            if values[place] is not None:
                axes = rows + (place in matrices)
                values[place] = in_front(values[place], in_dims[place], axes)
        for place in matrices:
            if values[place] is not None:
                values[place] = values[place].expand(info.batch_size, *values[place].shape[1:])
        result = operator(*values)
        return result, 0 if isinstance(result, Tensor) else (0,) * len(result)

    torch.library.register_vmap(f"softorder::{name}", rule, lib=library)


def in_front(value: Tensor, batch: int | None, axes: int) -> Tensor:
    """The batch axis in front of exactly `axes` others; of size 1 where there is no batch."""
    value = value.unsqueeze(0) if batch is None else value.movedim(batch, 0)
    missing = axes + 1 - value.dim()
    return value.reshape(value.shape[0], *(1,) * missing, *value.shape[1:])

"""What ranks have to have in common."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, distributed


def initialised() -> None:
    """There is a process group."""
    if not (distributed.is_available() and distributed.is_initialized()):
        raise RuntimeError(
            "softorder.distributed needs a process group: call "
            "torch.distributed.init_process_group first, as programs started by torchrun do"
        )


def alike(shards: Any, **numbers: Tensor) -> None:
    """Numbers that all ranks must have alike; costs one exchange of their extremes."""
    for name, value in numbers.items():
        value = value.detach().double().reshape(-1)
        highest, lowest = shards.most(torch.stack([value, -value]))
        if not torch.equal(highest, -lowest):
            raise ValueError(
                f"{name} must be the same on all ranks, but is between {(-lowest).min().item():g} "
                f"and {highest.max().item():g}"
            )


def enough(shards: Any, k: Tensor, scores: Tensor) -> None:
    """k is no more than the ranks have scores together."""
    n = shards.add(torch.full((), float(scores.shape[-1]), device=scores.device)).item()
    if not bool((k.detach() <= n).all()):
        raise ValueError(
            f"k must be between 0 and {n:g}, the number of scores on all ranks, but got "
            f"{k.max().item():g}"
        )


def whole_rows(name: str) -> None:
    """An option of samples that all ranks have alike."""
    raise TypeError(
        f"{name} must be False for a DTensor whose samples are cut among ranks: hand the part of "
        f"this rank to so.distributed"
    )


def method(method: object, density: bool) -> None:
    """Rows that are cut among ranks have methods that need no more than sums over them."""
    if not density:
        raise TypeError(
            f"method must be a density for a DTensor whose rows are cut among ranks, but got "
            f"{method!r}: redistribute it, so that every row is on one rank"
        )


def laplace(method: object, laplace: bool) -> None:
    """Rows that are cut among ranks are ranked and sorted by one method."""
    if not laplace:
        raise TypeError(
            f"method must be 'laplace' for a DTensor whose rows are cut among ranks, but got "
            f"{method!r}: redistribute it, so that every row is on one rank"
        )


def choice(k: object) -> None:
    """Of rows that are cut among ranks, the softness of a choice is known, not that of ranks."""
    if k is None:
        raise TypeError(
            "the softness of ranks is not known for a DTensor whose rows are cut among ranks: "
            "give a temperature, or redistribute it, so that every row is on one rank"
        )


def together(what: str) -> None:
    """What needs the whole row."""
    raise TypeError(
        f"{what} must be on one rank row by row, but got a DTensor whose rows are cut among ranks: "
        "redistribute it"
    )


def one_axis(dim: object) -> None:
    """Places along one axis are cut among the ranks of one group."""
    raise TypeError(
        f"dim must be one axis, cut along one dimension of the mesh, for a DTensor whose rows are "
        f"cut among ranks, but got {dim}"
    )

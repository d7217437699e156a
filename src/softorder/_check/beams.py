"""The arguments of beam search: its options, its decoder, its target."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from softorder._check import _values
from softorder._check._mode import eager
from softorder._check._options import at_least, count
from softorder._check._tensors import with_axes


def search(k: int, start: int, end: int, max_length: int, length_penalty: float) -> None:
    """The options of a beam search."""
    count("k", k, least=1)
    count("start", start, least=0)
    count("end", end, least=0)
    count("max_length", max_length, least=1)
    at_least("length_penalty", length_penalty, 0)


def embedding(embedding: nn.Module | Tensor, start: int, end: int) -> Tensor:
    """The table (V, features) of an embedding; start and end are tokens of it."""
    table = getattr(embedding, "weight", None) if isinstance(embedding, nn.Module) else embedding
    if not isinstance(table, Tensor):
        kind = type(embedding).__name__
        raise TypeError(f"embedding must be a tensor or an nn.Embedding, but got {kind}")
    with_axes("embedding", table, 2)
    if table.dim() != 2:
        shape = tuple(table.shape)
        raise ValueError(f"embedding must have the axes (V, features), but got shape {shape}")
    count("start", start, 0, len(table) - 1)
    count("end", end, 0, len(table) - 1)
    return table


def decoding(decoder: object, leaves: list[object]) -> None:
    """A decoder with `step`, and tensors with one batch axis as its state."""
    if not callable(getattr(decoder, "step", None)):
        raise TypeError(
            f"decoder must have a method step, but got {type(decoder).__name__}, which has none"
        )
    if not leaves:
        raise ValueError("state must hold at least one tensor, which tells the size of the batch")
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise TypeError(f"state must hold tensors, but got {type(leaf).__name__}")
    sizes = {tuple(leaf.shape[:1]) for leaf in leaves if isinstance(leaf, Tensor)}
    if len(sizes) > 1 or () in sizes:
        raise ValueError(
            "state must hold tensors with the batch on their first axis, "
            f"but got first axes of {sorted(sizes)}"
        )


def sequences(target: Tensor, batch: int, vocabulary: int, ignore_index: int) -> None:
    """Tokens (batch, T), T > 0; ignore_index only behind all of them."""
    if not isinstance(target, Tensor) or target.dtype != torch.long:
        given = _values.dtype(target) if isinstance(target, Tensor) else type(target).__name__
        raise TypeError(f"target must be a tensor of int64, but got {given}")
    if target.dim() != 2 or target.shape[0] != batch or target.shape[1] == 0:
        shape = tuple(target.shape)
        raise ValueError(f"target must have shape ({batch}, T) with T > 0, but got {shape}")
    if not eager() or target.numel() == 0:
        return
    token = target != ignore_index
    wrong = token & ((target < 0) | (target >= vocabulary))
    _values.refuse(
        "target",
        wrong,
        lambda: (
            f"target must be between 0 and {vocabulary - 1}, or ignore_index = "
            f"{ignore_index}, but got {int(target[wrong][0])}"
        ),
    )
    gaps = token[:, 1:] & ~token[:, :-1]
    _values.refuse("target", gaps, lambda: "target must have ignore_index only behind its tokens")

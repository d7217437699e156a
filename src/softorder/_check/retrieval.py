"""Embeddings that rank each other, and the losses of their lists."""

from __future__ import annotations

from torch import Tensor

from softorder._check import _kinds, _tensors
from softorder._check._options import together


def embeddings(
    queries: Tensor, labels: Tensor, items: Tensor | None, item_labels: Tensor | None
) -> None:
    """(q, width) and (q,), and perhaps (m, width) and (m,)."""
    together(items=items, item_labels=item_labels)
    _points("queries", queries, "labels", labels)
    if items is not None and item_labels is not None:
        _points("items", items, "item_labels", item_labels)
        if items.shape[-1] != queries.shape[-1]:
            raise ValueError(
                f"items must be as wide as queries, {queries.shape[-1]}, "
                f"but got shape {tuple(items.shape)}"
            )


def _points(name: str, points: Tensor, name_of_labels: str, labels: Tensor) -> None:
    _tensors.floating(name, points)
    if points.dim() != 2:
        raise ValueError(f"{name} must have two axes, but got shape {tuple(points.shape)}")
    if not isinstance(labels, Tensor):
        raise TypeError(f"{name_of_labels} must be a tensor, but got {type(labels).__name__}")
    _kinds.dense(name_of_labels, labels)
    if labels.shape != points.shape[:1]:
        raise ValueError(
            f"{name_of_labels} must have the shape {tuple(points.shape[:1])}, one for each of "
            f"{name}, but got shape {tuple(labels.shape)}"
        )


def sums(criterion: object) -> None:
    """A loss that does not take the mean of its lists."""
    if getattr(criterion, "reduction", "sum") == "mean":
        raise ValueError("criterion must have the reduction 'sum' or 'none', but got 'mean'")

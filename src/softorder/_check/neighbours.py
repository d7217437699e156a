"""The arguments of nearest neighbours: points, labels, and what a classifier remembers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from softorder._check._mode import eager
from softorder._check._options import count
from softorder._check._tensors import integers, with_axes
from softorder._check._values import beside


def enough(k: int, templates: int) -> None:
    """There are k templates at least."""
    if k > templates:
        raise ValueError(
            f"k must be between 1 and {templates}, the number of templates, but got {k}"
        )


def same_features(queries: Tensor, templates: Tensor) -> None:
    """Two tables of points in the same space."""
    for name, table in (("queries", queries), ("templates", templates)):
        with_axes(name, table, 2)
        if table.dim() != 2:
            raise ValueError(
                f"{name} must have the axes (points, features), but got shape {tuple(table.shape)}"
            )
    beside("templates", templates, queries, "queries")
    if queries.shape[1] != templates.shape[1]:
        raise ValueError(
            "queries and templates must have the same number of features, "
            f"but got {queries.shape[1]} and {templates.shape[1]}"
        )


def labels(name: str, value: Tensor, items: int) -> None:
    """One class index >= 0 for each item."""
    integers(name, value)
    if tuple(value.shape) != (items,):
        raise ValueError(
            f"{name} must have shape ({items},), one for each item, but got {tuple(value.shape)}"
        )
    if eager() and value.numel() and int(value.min()) < 0:
        raise ValueError(f"{name} must be >= 0, but got {int(value.min())}")


def known_labels(unknown: list[object], classes: list[object]) -> None:
    """No label that was not announced."""
    if unknown:
        raise ValueError(f"y must hold the classes {classes}, but got {unknown[0]!r} too")


def samples(k: int, n_samples: int) -> None:
    """Every sample has k others."""
    count("k", k, least=1)
    if k >= n_samples:
        raise ValueError(f"k must be less than n_samples={n_samples}, but got {k}")


def resumable(has_trainer: bool) -> None:
    """The estimator was trained here and not loaded from a file."""
    if not has_trainer:
        raise RuntimeError("a loaded model can predict, but partial_fit needs one that was fitted")


def remembered(count: int, call: str) -> None:
    """Something was remembered before it is asked for."""
    if count == 0:
        raise RuntimeError(f"there are no templates to compare with: call {call} first")


# ---- files ------------------------------------------------------------------------------------


def packed(path: Any, contents: Mapping[str, int]) -> None:
    """A file of torch.save, which packs nothing, is at least as long as what is in it."""
    size, unpacked = Path(path).stat().st_size, sum(contents.values())
    if unpacked > size:
        raise ValueError(
            f"path must be a file that save wrote, but {path} has {size} bytes, and unpacks to "
            f"{unpacked}"
        )


def saved(path: Any, content: Any, names: Collection[str]) -> None:
    """What was read is a dictionary with these names."""
    if not isinstance(content, dict) or set(content) != set(names):
        raise ValueError(
            f"path must be a file that save wrote, with {', '.join(names)}, but {path} is another"
        )


def held(path: Any, numbers: int, state: Mapping[str, Any]) -> None:
    """A network has no more numbers than were saved."""
    there = sum(value.numel() for value in state.values() if isinstance(value, Tensor))
    if numbers > there:
        raise ValueError(
            f"path must be a file that save wrote, but {path} wants a network of {numbers} "
            f"numbers, and {there} are in it"
        )


def short(path: Any, size: int) -> None:
    """The names of classes, all as long as the longest, take no more than 100 times the file."""
    most = 100 * Path(path).stat().st_size
    if size > most:
        raise ValueError(
            f"path must be a file that save wrote, but the classes of {path} take {size} bytes, "
            f"more than {most}"
        )

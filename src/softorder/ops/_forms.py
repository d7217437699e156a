"""Operators along several axes, and on tensors that are cut among ranks (DTensor).

An operator hands itself over with its arguments: along several axes it is called with these as one,
on a DTensor with the part that this rank has. Where the rows themselves are cut, another function
takes its place, which exchanges what is needed of the others.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from softorder import _axis, _check
from softorder._auto import wanted
from softorder.kernels.shards import WHOLE, Shards, Whole

Axes = int | tuple[int, ...] | None  #: one axis, several, or all of them
_OF_ROWS = ("k", "temperature")
NUMBERS = (float, int, *_check.PLAIN)  #: what a temperature is most of the time


def special(scores: Tensor, dim: Axes, temperature: object = 1.0) -> bool:
    """Whether the operator has to hand itself over, or to find its temperature first."""
    return (
        type(dim) is not int
        or (type(temperature) not in NUMBERS and wanted(temperature))
        or (type(scores) not in _check.PLAIN and is_dtensor(scores))
    )


def is_jagged(scores: Any) -> bool:
    """Whether its rows have different lengths: what `softorder.ragged` is for."""
    if type(scores) in _check.PLAIN:
        return False
    return isinstance(scores, Tensor) and scores.is_nested and scores.layout is torch.jagged


def is_dtensor(scores: Any) -> bool:
    """Whether it knows how it is cut among ranks."""
    tensor = sys.modules.get("torch.distributed.tensor")  # else nobody has one
    return tensor is not None and isinstance(scores, tensor.DTensor)


def elementwise(
    operator: Callable[..., Tensor],
    cut: Callable[..., Tensor],
    scores: Tensor,
    dim: Axes,
    mask: Tensor | None,
    numbers: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Tensor:
    """A result for every score. `numbers` broadcast over the rows; `cut` also takes shards."""
    if not is_dtensor(scores):
        return joined(operator, scores, dim, mask, **numbers, **options)
    pieces = Pieces(scores, _axis.axes(scores, dim))
    own = {name: pieces.number(name, value) for name, value in numbers.items()}
    if not pieces.shards.alone:
        operator = partial(cut, shards=pieces.shards)
    result = joined(operator, pieces.local, dim, pieces.mask(mask), **own, **options)
    return pieces.like_scores(result)


def joined(
    operator: Callable[..., Tensor], scores: Tensor, dim: Axes, mask: Tensor | None, **options: Any
) -> Tensor:
    """The same of a tensor in one piece, along one axis that is made of several."""
    axes = _axis.axes(scores, dim)
    return _axis.split(reduced(operator, scores, axes, mask, options), scores, axes)


def per_row(
    operator: Callable[..., Tensor],
    cut: Callable[..., Tensor],
    scores: Tensor,
    dim: Axes,
    mask: Tensor | None,
    levels: tuple[str, float | Tensor],
    numbers: Mapping[str, Any],
    options: Mapping[str, Any],
    keepdim: bool,
) -> Tensor:
    """Results for every row, or several with the shape of the levels in front."""
    axes = _axis.axes(scores, dim)
    name, level = levels
    leading = isinstance(level, Tensor) and level.dim() > 0
    if is_dtensor(scores):
        pieces = Pieces(scores, axes)
        own = {key: pieces.number(key, value) for key, value in numbers.items()}
        arguments = {**own, **options, name: pieces.alike(level)}
        local = partial(operator, keepdim=False)
        if not pieces.shards.alone:
            local = partial(cut, shards=pieces.shards)
        result = reduced(local, pieces.local, axes, pieces.mask(mask), arguments)
        return pieces.per_row(result, leading, keepdim)
    return along_axes(operator, scores, dim, mask, levels, keepdim, **numbers, **options)


def along_axes(
    operator: Callable[..., Tensor],
    scores: Tensor,
    dim: Axes,
    mask: Tensor | None,
    levels: tuple[str, float | Tensor],
    keepdim: bool,
    **options: Any,
) -> Tensor:
    """The same of a tensor in one piece."""
    axes, (name, level) = _axis.axes(scores, dim), levels
    arguments = {**options, name: level}
    result = reduced(partial(operator, keepdim=False), scores, axes, mask, arguments)
    leading = isinstance(level, Tensor) and level.dim() > 0
    return _with_axes(result, axes, leading) if keepdim else result


def reduced(
    operator: Callable[..., Tensor],
    scores: Tensor,
    axes: tuple[int, ...],
    mask: Tensor | None,
    arguments: Mapping[str, Any],
) -> Tensor:
    """What it makes of the rows of a tensor in one piece, along an axis made of several."""
    mask = joined_mask(mask, scores, axes)
    own = {name: rows_number(name, value, scores, axes) for name, value in arguments.items()}
    return operator(_axis.join(scores, axes), dim=-1, mask=mask, **own)


def lists(
    scores: Tensor, target: Tensor, dim: Axes, mask: Tensor | None
) -> tuple[Tensor, Tensor, int, Tensor | None]:
    """Scores, what is known of each, the axis and the mask: of several axes, as one at the end."""
    if isinstance(dim, int):
        return scores, target, dim, mask
    _check.same_shape("target", target, scores)
    axes = _axis.axes(scores, dim)
    mask = joined_mask(mask, scores, axes)
    return _axis.join(scores, axes), _axis.join(target, axes), -1, mask


def joined_mask(mask: Tensor | None, scores: Tensor, axes: tuple[int, ...]) -> Tensor | None:
    """The mask for scores whose axes are one, behind the others."""
    _check.mask(mask, scores)
    return None if mask is None else _axis.join(mask.expand(scores.shape), axes)


def rows_numbers(scores: Tensor, dim: Axes, **numbers: Any) -> tuple[Any, ...]:
    """Several of them, for `lists`."""
    if isinstance(dim, int):
        return tuple(numbers.values())
    axes = _axis.axes(scores, dim)
    return tuple(rows_number(name, value, scores, axes) for name, value in numbers.items())


def rows_number(name: str, value: Any, scores: Tensor, axes: tuple[int, ...]) -> Any:
    """k and the temperature without the axes that they may have kept; anything else as it is."""
    if name not in _OF_ROWS or not isinstance(value, Tensor) or value.dim() < scores.dim():
        return value
    _check.kept(name, value, scores, axes)
    return _axis.of_rows(value, scores, axes)


def _with_axes(result: Tensor, axes: tuple[int, ...], leading: bool) -> Tensor:
    """The axes that were reduced, of size 1."""
    for axis in axes:
        result = result.unsqueeze(axis + leading)
    return result


class Pieces:
    """The part of a DTensor that this rank has, and how to make a DTensor of results again.

    What is partial is reduced first. `shards` are those of the rows: the ranks among which the axes
    are cut along which scores compete.
    """

    def __init__(self, scores: Any, axes: tuple[int, ...]) -> None:
        from torch.distributed.tensor import Replicate

        placements: list[Any] = [Replicate() if p.is_partial() else p for p in scores.placements]
        if placements != list(scores.placements):
            scores = scores.redistribute(placements=placements)
        self.scores, self.mesh, self.placements = scores, scores.device_mesh, placements
        self.local: Tensor = scores.to_local()
        self.axes = axes
        self._rows = [axis for axis in range(scores.dim()) if axis not in axes]
        self.shards = self._shards()

    def like_scores(self, result: Tensor) -> Any:
        """A DTensor of results, placed as the scores are."""
        return self._made(result, self.placements, self.scores.shape)

    def per_row(self, result: Tensor, leading: bool, keepdim: bool) -> Any:
        """A DTensor of results for every row, alike on the ranks among which rows are cut."""
        from torch.distributed.tensor import Replicate, Shard

        kept = list(range(self.scores.dim())) if keepdim else self._rows
        if keepdim:
            result = _with_axes(result, self.axes, leading)
        shape = tuple(1 if axis in self.axes else self.scores.shape[axis] for axis in kept)
        shape = (result.shape[0], *shape) if leading else shape
        placements = [
            Shard(kept.index(p.dim) + leading)
            if p.is_shard() and p.dim in self._rows
            else Replicate()
            for p in self.placements
        ]
        return self._made(result, placements, shape)

    def alike_result(self, result: Tensor) -> Any:
        """A DTensor of what is the same on all ranks."""
        from torch.distributed.tensor import DTensor, Replicate

        every = [Replicate()] * self.mesh.ndim
        return DTensor.from_local(result, self.mesh, every, run_check=False)

    @property
    def cut_rows(self) -> Shards:
        """`shards`, where there are some."""
        assert isinstance(self.shards, Shards)
        return self.shards

    @property
    def other_rows(self) -> Whole:
        """The ranks that have other rows."""
        groups = [
            self.mesh.get_group(dimension)
            for dimension, placement in enumerate(self.placements)
            if placement.is_shard() and placement.dim in self._rows
        ]
        return Shards(*groups) if groups else WHOLE

    def alike(self, value: Any) -> Any:
        """A number, or numbers, that are the same for all rows."""
        if not isinstance(value, Tensor):
            return value
        _check.one_for_all_rows("q", value)
        from torch.distributed.tensor import Partial, Replicate

        others = [p.is_shard() and p.dim in self._rows for p in self.placements]
        gradients = [Partial() if other else Replicate() for other in others]
        every = [Replicate()] * self.mesh.ndim
        whole = self._replicated(value).redistribute(self.mesh, every)
        return whole.to_local(grad_placements=gradients)

    def number(self, name: str, value: Any) -> Any:
        """A number; or this rank's part of numbers that broadcast over the rows."""
        from torch.distributed.tensor import Partial, Replicate, Shard

        if not isinstance(value, Tensor):
            return value
        value = rows_number(name, self._replicated(value), self.scores, self.axes)
        shape = tuple(self.scores.shape[axis] for axis in self._rows)
        _check.broadcast_over_rows(name, value, shape)
        placements: list[Any] = []
        gradients: list[Any] = []
        for placement in self.placements:
            place = self._place(value, placement)
            if place is not None:
                placements.append(Shard(place))
                gradients.append(Shard(place))
            else:  # rows that others have add to the gradient of a number that all have
                others = placement.is_shard() and placement.dim in self._rows
                placements.append(Replicate())
                gradients.append(Partial() if others else Replicate())
        return value.redistribute(self.mesh, placements).to_local(grad_placements=gradients)

    def mask(self, mask: Tensor | None) -> Tensor | None:
        """This rank's part of a mask."""
        if mask is None:
            return None
        _check.any_mask(mask, self.scores)
        whole = self._replicated(mask).expand(self.scores.shape)
        own: Tensor = whole.redistribute(self.mesh, self.placements).to_local()
        return own

    def like_local(self, name: str, value: Tensor) -> Tensor:
        """This rank's part of a tensor with the shape of the scores."""
        _check.same_shape(name, value, self.scores)
        own: Tensor = self._replicated(value).redistribute(self.mesh, self.placements).to_local()
        return own

    def _replicated(self, value: Tensor) -> Any:
        """As a DTensor: a plain tensor is one that all ranks have alike."""
        from torch.distributed.tensor import DTensor, Replicate

        if isinstance(value, DTensor):
            return value
        every = [Replicate()] * self.mesh.ndim
        return DTensor.from_local(value, self.mesh, every, run_check=False)

    def _place(self, value: Tensor, placement: Any) -> int | None:
        """The axis of numbers per row that is cut by this placement of the scores, if any is."""
        if not placement.is_shard() or placement.dim not in self._rows:
            return None
        place = value.dim() - len(self._rows) + self._rows.index(placement.dim)
        return place if place >= 0 and value.shape[place] > 1 else None

    def _shards(self) -> Whole:
        cut = [
            self.mesh.get_group(dimension)
            for dimension, placement in enumerate(self.placements)
            if placement.is_shard() and placement.dim in self.axes
        ]
        return Shards(*cut) if cut else WHOLE

    def _made(self, local: Tensor, placements: list[Any], shape: tuple[int, ...]) -> Any:
        from torch.distributed.tensor import DTensor

        stride = torch.empty(shape, device="meta").stride()
        return DTensor.from_local(
            local, self.mesh, placements, run_check=False, shape=torch.Size(shape), stride=stride
        )


def number_of_scores(scores: Tensor, dim: Axes) -> int:
    """How many compete with each other."""
    return math.prod([scores.shape[axis] for axis in _axis.axes(scores, dim)])

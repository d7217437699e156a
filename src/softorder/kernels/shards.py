"""Rows that are cut among ranks: every rank has some of the scores of a row, perhaps none.

What a rank needs of the others are a few numbers per row. All of them get the same ones, so that
they decide alike and take the same steps. Three linear maps serve all derivatives; `total` stands
for the sum of what the ranks have:

                   forward     backward
    total          total       total       every rank goes on by itself, and their losses add up
    common         total       identity    all ranks go on alike, to one loss
    shared         identity    total       a number that all ranks have alike
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, distributed


class Whole:
    """Rows that nobody has cut."""

    alone = True  #: one rank has all of it

    def sum(self, values: Tensor) -> Tensor:
        """Over the last axis of a row, which stays: with `total`."""
        return self.total(values.sum(-1, keepdim=True))

    def total(self, values: Tensor) -> Tensor:
        """The sum over the ranks."""
        return values

    def add(self, values: Tensor) -> Tensor:
        """The same without a derivative."""
        return values

    def most(self, values: Tensor) -> Tensor:
        """The maximum over the ranks, without a derivative."""
        return values

    def common(self, values: Tensor) -> Tensor:
        """The sum over the ranks, for what all of them compute from it alike."""
        return values

    def shared(self, values: Tensor) -> Tensor:
        """Numbers that all ranks have alike."""
        return values


WHOLE = Whole()


class Shards(Whole):
    """Rows whose scores the ranks of a process group share; or of several groups, each with each.

    Without a group, those of the default one.
    """

    alone = False

    def __init__(self, *groups: Any) -> None:
        self.groups = groups or (None,)

    @property
    def group(self) -> Any:
        """The only one."""
        (group,) = self.groups
        return group

    @property
    def size(self) -> int:
        return distributed.get_world_size(self.group)

    @property
    def rank(self) -> int:
        return distributed.get_rank(self.group)

    def total(self, values: Tensor) -> Tensor:
        return _Map.apply(values, self, True, True)

    def common(self, values: Tensor) -> Tensor:
        return _Map.apply(values, self, True, False)

    def shared(self, values: Tensor) -> Tensor:
        return _Map.apply(values, self, False, True)

    def most(self, values: Tensor) -> Tensor:
        return self._reduce(values.detach(), distributed.ReduceOp.MAX)

    def add(self, values: Tensor) -> Tensor:
        return self._reduce(values.detach(), distributed.ReduceOp.SUM)

    def gather(self, values: Tensor) -> Tensor:
        """What all ranks have, of the same shape, side by side on the last axis."""
        parts = [torch.empty_like(values) for _ in range(self.size)]
        distributed.all_gather(parts, values.detach().contiguous(), group=self.group)
        return torch.cat(parts, -1)

    def before(self, own: int, like: Tensor) -> int:
        """How many elements the ranks before this one have together."""
        return sum(self.counts(own, like)[: self.rank])

    def counts(self, own: int, like: Tensor) -> list[int]:
        """How many elements every rank has."""
        sizes = torch.zeros(self.size, device=like.device, dtype=torch.float64)
        sizes[self.rank] = own
        return [int(size) for size in self.add(sizes).tolist()]

    def _reduce(self, values: Tensor, operation: Any) -> Tensor:
        values = values.clone(memory_format=torch.contiguous_format)
        for group in self.groups:
            distributed.all_reduce(values, operation, group=group)
        return values


class _Map(torch.autograd.Function):
    """A sum over the ranks, or nothing, on the way there and on the way back."""

    @staticmethod
    def forward(values: Tensor, shards: Shards, there: bool, back: bool) -> Tensor:
        return shards.add(values) if there else values.view_as(values)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, ctx.shards, ctx.there, ctx.back = inputs

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        return _Map.apply(upstream, ctx.shards, ctx.back, ctx.there), None, None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: Any) -> Tensor:
        # what all ranks have alike moves alike
        return ctx.shards.add(tangent) if ctx.there else tangent.view_as(tangent)

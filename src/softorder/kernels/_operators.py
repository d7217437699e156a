"""Defines torch.library operators whose tensors have their rows in front of one last axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

library = torch.library.Library("softorder", "FRAGMENT")


def define(schema: str, *, anywhere: Callable | None, cpu: Callable, fake: Callable) -> None:
    """An operator: plain torch for every device, a kernel for CPUs, and its output's shape."""
    name = library.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
    if anywhere is not None:
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


class Fused:
    """A compiled kernel that takes rows of scores to a result in one go, and the one back.

    Both are operators of torch.library, `softorder::<name>` and `softorder::<name>_vjp`, and the
    second is registered as the derivative of the first, so that torch.compile calls the same
    kernels as eager mode. Eager mode calls `forward` and `vjp` directly: the dispatcher would
    take ten microseconds to do that.

    forward(scores, temperature, descending, *options)
        a tuple of new tensors, the result first.
    keep(scores, found, *options)
        those of the scores and of what was found that `vjp` needs; the first of them has the
        shape of the scores.
    vjp(upstream, kept, temperature, descending, by_temperature, *options)
        the gradients of the scores and, if wanted, of the temperature of every row (float64).
    fake(scores, temperature, descending, *options)
        empty tensors of the shapes and types that `forward` returns.
    """

    def __init__(
        self,
        name: str,
        *,
        options: str,
        outputs: int,
        forward: Callable[..., tuple[Tensor, ...]],
        keep: Callable[..., Sequence[Tensor]],
        vjp: Callable[..., tuple[Tensor, Tensor]],
        fake: Callable[..., tuple[Tensor, ...]],
        learns_temperature: bool = False,
    ) -> None:
        self.forward, self.keep, self.vjp = forward, keep, vjp
        self.learns_temperature = learns_temperature
        settings = f"Tensor temperature, bool descending{{}}{options and ', ' + options}"
        define(
            f"{name}(Tensor scores, {settings.format('')}) -> ({', '.join(['Tensor'] * outputs)})",
            anywhere=None,
            cpu=lambda *arguments: _bare(forward(*arguments)),
            fake=lambda *arguments: _bare(fake(*arguments)),
        )
        define(
            f"{name}_vjp(Tensor upstream, Tensor[] kept,"
            f" {settings.format(', bool by_temperature')}) -> (Tensor, Tensor)",
            anywhere=None,
            cpu=vjp,
            fake=_fake_vjp,
        )
        self.operator = getattr(torch.ops.softorder, name)
        self._vjp_operator = getattr(torch.ops.softorder, f"{name}_vjp")
        torch.library.register_autograd(
            f"softorder::{name}", self._backward, setup_context=self._remember, lib=library
        )

    def traced(
        self, scores: Tensor, temperature: Tensor, descending: bool, *options: Any
    ) -> Tensor:
        """The result by the operator, which tracers see."""
        found = self.operator(scores, temperature, descending, *options)
        return found if isinstance(found, Tensor) else found[0]

    def _remember(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        scores, temperature, descending, *options = inputs
        found = (output,) if isinstance(output, Tensor) else output
        tensors = {i: v for i, v in enumerate(options) if isinstance(v, Tensor)}
        kept = self.keep(scores, found, *options)
        ctx.save_for_backward(temperature, *tensors.values(), *kept)
        ctx.statics = descending, [None if i in tensors else v for i, v in enumerate(options)]
        ctx.places = list(tensors)

    def _backward(self, ctx: Any, upstream: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
        temperature, *kept = ctx.saved_tensors
        descending, options = ctx.statics
        options = list(options)
        for place in ctx.places:
            options[place] = kept.pop(0)
        learns = ctx.needs_input_grad[1]
        by_scores, by_temperature = self._vjp_operator(
            upstream, kept, temperature, descending, learns, *options
        )
        by_temperature = by_temperature if learns else None
        return by_scores, by_temperature, None, *(None for _ in options)


def no_gradient(like: Tensor) -> Tensor:
    """What stands for the gradient of a temperature that wants none."""
    return like.new_empty(0, dtype=torch.float64)


def _bare(found: tuple[Tensor, ...]) -> Tensor | tuple[Tensor, ...]:
    """As the dispatcher wants it: a single output by itself."""
    return found[0] if len(found) == 1 else tuple(found)


def _fake_vjp(
    upstream: Tensor,
    kept: Sequence[Tensor],
    temperature: Tensor,
    descending: bool,
    by_temperature: bool,
    *options: Any,
) -> tuple[Tensor, Tensor]:
    like = kept[0]
    rows = like.shape[:-1] if by_temperature else (0,)
    return like.new_empty(like.shape), like.new_empty(rows, dtype=torch.float64)

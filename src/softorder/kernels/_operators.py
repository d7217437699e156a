"""Defines operators: schema, shapes, vmap, vector-Jacobian product, and who serves which device.

Every operator has a reference in plain torch, which serves every device, and may have a compiled
kernel for CPU tensors and a Triton kernel for CUDA tensors. torch's dispatcher chooses between
them, and so does the one bypass of it, for plain CPU tensors in eager mode. Tensors have their rows
in front of one last axis, and are the first arguments; some of them may be None.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from softorder import _check
from softorder.kernels import _native, _triton

library = torch.library.Library("softorder", "FRAGMENT")


class Operator:
    """`softorder::<name>`, as a function.

    reference(*arguments)
        the result in plain torch, on any device.
    cpu(*arguments)
        the same by a compiled kernel; `compiled(*arguments)` tells whether it knows these.
    triton(*arguments)
        the same by a Triton kernel, which knows what the compiled one knows.
    fake(*arguments)
        empty tensors of the shapes and types of the result.
    """

    every: ClassVar[dict[str, Operator]] = {}  #: by name, for tests that ask all of them

    def __init__(
        self,
        schema: str,
        *,
        reference: Callable,
        fake: Callable,
        cpu: Callable | None = None,
        triton: Callable | None = None,
        compiled: Callable[..., bool] | None = None,
    ) -> None:
        self.name = library.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
        self.reference, self._compiled = reference, compiled
        self._triton = triton or reference
        self._on_cpu = {"native": cpu or reference, "triton": self._triton, "torch": reference}
        self._tensors = len(re.findall(r"Tensor\??\s", schema.partition("->")[0]))
        library.impl(self.name, reference, "CompositeExplicitAutograd")
        library.impl(self.name, self.on_cpu, "CPU")
        if triton is not None:
            library.impl(self.name, self.on_cuda, "CUDA")
        torch.library.register_fake(f"softorder::{self.name}", fake, lib=library)
        self.dispatched = getattr(torch.ops.softorder, self.name)
        self.every[self.name] = self

    def __call__(self, *arguments: Any) -> Any:
        """The result. Without the dispatcher where that would only cost its ten microseconds."""
        if _check.eager() and _check.plain(*arguments[: self._tensors]):
            return self.on_cpu(*arguments)
        return self.dispatched(*arguments)

    def here(self, *arguments: Any) -> Any:
        """The result for tensors that are plain if they are on the CPU."""
        return (self.on_cpu if arguments[0].is_cpu else self.dispatched)(*arguments)

    def on_cpu(self, *arguments: Any) -> Any:
        """What the dispatcher calls for CPU tensors."""
        kernel = self._on_cpu[_native.kind()]
        if self._compiled is not None and not self._compiled(*arguments):
            kernel = self.reference
        return kernel(*arguments)

    def on_cuda(self, *arguments: Any) -> Any:
        """What the dispatcher calls for CUDA tensors."""
        known = self._compiled is None or self._compiled(*arguments)
        kernel = self._triton if known and _triton.serves(arguments[0]) else self.reference
        return kernel(*arguments)


class Pair(NamedTuple):
    """A fused kernel as one backend computes it: there and back."""

    forward: Callable[..., tuple[Tensor, ...]]
    vjp: Callable[..., tuple[Tensor, Tensor]]


class Fused:
    """A kernel that takes rows of scores to a result in one go, and the one back.

    Both are operators, `softorder::<name>` and `softorder::<name>_vjp`, and the second is the
    registered derivative of the first: torch.compile calls the same kernels as eager mode.

    forward(scores, temperature, *tensors, descending, *options)
        a tuple of new tensors, the result first. `tensors` names those that it takes beside the
        scores, without a derivative and plain where these are.
    keep(scores, found, *tensors, *options)
        those of the scores and of what was found that `vjp` needs; the first of them has the
        shape of the scores.
    vjp(upstream, kept, temperature, descending, by_temperature, *options)
        the gradients of the scores and, if wanted, of the temperature of every row (float64).
    fake(scores, temperature, *tensors, descending, *options)
        empty tensors of the shapes and types that `forward` returns.
    compiled(*options)
        whether the compiled library, and Triton's kernel, know these options.
    """

    def __init__(
        self,
        name: str,
        *,
        options: str,
        outputs: int,
        tensors: tuple[str, ...] = (),
        reference: Pair,
        cpu: Pair,
        triton: Pair | None = None,
        keep: Callable[..., Sequence[Tensor]],
        fake: Callable[..., tuple[Tensor, ...]],
        compiled: Callable[..., bool] = lambda *options: True,
        learns_temperature: bool = False,
    ) -> None:
        self.keep, self.compiled, self.learns_temperature = keep, compiled, learns_temperature
        self._has_triton, self._tensors = triton is not None, len(tensors)
        options = options and ", " + options
        given = "".join(f"Tensor {tensor}, " for tensor in ("scores", "temperature", *tensors))
        self.forward = Operator(
            f"{name}({given}bool descending{options}) -> ({', '.join(['Tensor'] * outputs)})",
            reference=_bare(reference.forward),
            cpu=_bare(cpu.forward),
            triton=triton and _bare(triton.forward),
            compiled=lambda *arguments: compiled(*arguments[3 + len(tensors) :]),
            fake=_bare(fake),
        )
        self.vjp = Operator(
            f"{name}_vjp(Tensor upstream, Tensor[] kept, Tensor temperature, bool descending,"
            f" bool by_temperature{options}) -> (Tensor, Tensor)",
            reference=reference.vjp,
            cpu=cpu.vjp,
            triton=triton and triton.vjp,
            compiled=lambda upstream, kept, tau, down, by_tau, *options: compiled(*options),
            fake=_fake_vjp,
        )
        torch.library.register_autograd(
            f"softorder::{name}", self._backward, setup_context=self._remember, lib=library
        )

    def serves(
        self, scores: Tensor, temperature: Tensor, *options: Any, tensors: Sequence[Tensor] = ()
    ) -> bool:
        """Whether there is more to this kernel than its reference, here and now.

        torch.func and forward mode are not content with a vector-Jacobian product.
        """
        if not self.compiled(*options):
            return False
        if temperature.requires_grad and torch.is_grad_enabled() and not self.learns_temperature:
            return False
        if _check.eager():
            if self._has_triton and _triton.serves(scores):
                return type(scores) in _check.PLAIN
            return _native.serves(scores, temperature, *tensors, most=_native.INT32)
        if not _check.traceable():
            return False
        return (self._has_triton and _triton.serves_traced(scores)) or (
            _native.serves_traced(scores)
        )

    def rows_of(self, scores: Tensor, *tensors: Tensor) -> Sequence[int]:
        """The shape of the rows."""
        return scores.shape[:-1]

    def takes(self, upstream: Tensor) -> bool:
        """Whether the way back may have this upstream."""
        if upstream.is_cpu:
            return _check.plain(upstream)
        return type(upstream) in _check.PLAIN and upstream.layout is torch.strided

    def _remember(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        scores, temperature = inputs[:2]
        tensors, (descending, *options) = inputs[2 : 2 + self._tensors], inputs[2 + self._tensors :]
        kept = self.keep(scores, as_tuple(output), *tensors, *options)
        ctx.save_for_backward(temperature, *kept)
        ctx.statics = descending, options

    def _backward(self, ctx: Any, upstream: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
        temperature, *kept = ctx.saved_tensors
        descending, options = ctx.statics
        learns = ctx.needs_input_grad[1]
        by_scores, by_temperature = self.vjp.dispatched(
            upstream, kept, temperature, descending, learns, *options
        )
        by_temperature = by_temperature if learns else None
        others = (None,) * (self._tensors + 1 + len(options))
        return by_scores, by_temperature, *others


def as_tuple(found: Tensor | tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """What an operator returned; the dispatcher has a single tensor by itself."""
    return (found,) if isinstance(found, Tensor) else found


def no_gradient(like: Tensor) -> Tensor:
    """What stands for the gradient of a temperature that wants none."""
    return like.new_empty(0, dtype=torch.float64)


def _bare(function: Callable[..., tuple[Tensor, ...]]) -> Callable[..., Any]:
    def run(*arguments: Any) -> Tensor | tuple[Tensor, ...]:
        found = function(*arguments)
        return found[0] if len(found) == 1 else found

    return run


def _fake_vjp(
    upstream: Tensor,
    kept: Sequence[Tensor],
    temperature: Tensor,
    descending: bool,
    by_temperature: bool,
    *options: Any,
) -> tuple[Tensor, Tensor]:
    like = kept[0]
    rows = torch.broadcast_shapes(like.shape[:-1], temperature.shape) if by_temperature else (0,)
    return like.new_empty(like.shape), like.new_empty(rows, dtype=torch.float64)


# ---- vmap ---------------------------------------------------------------------------------------


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

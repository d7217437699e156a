"""What can be seen of tensors at the moment of the call."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch._C import _are_functorch_transforms_active, _is_tracing, _len_torch_dispatch_stack
from torch._C._functorch import get_unwrapped, is_batchedtensor, is_functorch_wrapped_tensor
from torch.autograd import forward_ad
from torch.compiler import is_compiling, is_dynamo_compiling

PLAIN = (Tensor, torch.nn.Parameter)  #: the classes that add nothing to a tensor


def eager() -> bool:
    """Whether calls run at once on plain tensors: no tracing, torch.func, forward mode or modes."""
    return not (
        is_dynamo_compiling()  # without dynamo, torch.export has modes at work
        or _is_tracing()  # by torch.jit.trace; 30 ns, where torch.jit.is_tracing() takes 100
        or transformed()
        or _len_torch_dispatch_stack()
    )


def transformed() -> bool:
    """Whether torch.func or forward mode is at work, also within torch.compile.

    They are not content with an operator's own derivative.
    """
    return _are_functorch_transforms_active() or forward_ad._current_level >= 0


def traceable() -> bool:
    """Whether a graph is being recorded for which an operator's own derivative is enough."""
    return is_compiling() and not transformed()


def plain(*values: Any) -> bool:
    """Whether these are numbers in the memory of the CPU as they stand: the gate of the kernels.

    Python's own numbers are, and so is nothing.

    That is: no subclass, memory of their own, and no sign that is yet to be applied. Tensors of
    zeros without memory, functional ones and those whose storage was freed have the address 0, and
    so has an empty one; batches, what escaped from torch.func, and whatever is not strided have
    none. Of dense tensors only complex, quantized and nested ones have memory that says something
    else, and `_check.scores` and the like let none of these in.

    About 0.3 µs for each. To ask torch for its set of dispatch keys takes more than twice as long,
    and misses freed storage; a test holds the two against each other for every kind of tensor that
    torch ships.
    """
    try:
        for value in values:
            if value is None or type(value) is float or type(value) is int:
                continue
            if (
                type(value) not in PLAIN
                or not value.is_cpu
                or not value.data_ptr()
                or value.is_neg()
            ):
                return False
    except RuntimeError:  # there is no address
        return False
    return True


def unseen(*values: Tensor) -> bool:
    """Whether nobody can look at these numbers: a graph is being recorded, or vmap is at work."""
    return is_compiling() or (transformed() and any(map(_batched, values)))


def _batched(value: Tensor) -> bool:
    while is_functorch_wrapped_tensor(value):
        if is_batchedtensor(value):
            return True
        value = get_unwrapped(value)
    return False


def at_hand(*values: Tensor) -> bool:
    """Whether the host can ask for these numbers without waiting: on a CPU, and not traced.

    What is asked for may save time. It must not change a result: other devices are not asked.
    """
    return eager() and plain(*values)


def known_finite(scores: Tensor) -> bool:
    """Whether every score is finite, as far as this can be seen without waiting."""
    return scores.is_cpu and eager() and finite(scores)


def finite(scores: Tensor) -> bool:
    """Whether every score is finite. A sum tells it sooner, unless it overflows."""
    scores = scores.detach()
    return math.isfinite(scores.sum().item()) or bool(scores.isfinite().all())

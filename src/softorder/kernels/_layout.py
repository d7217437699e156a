"""Where the rows of tensors are, for kernels that read and write them there (csrc/rows.hpp)."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import torch
from torch import Tensor

#: FloatFormat of csrc/formats.hpp
FORMATS = {torch.float16: 0, torch.bfloat16: 1, torch.float32: 2, torch.float64: 3}


def layout_of(*operands: Tensor | None) -> array[int] | None:
    """The layout of operands of one shape, or None if all are dense.

    Kernels look at the strides of every operand. The last may be missing: the first stands in.
    """
    first, *others = operands
    for operand in operands:
        if operand is not None and not operand.is_contiguous():
            assert first is not None
            return array("q", layout([first, *(first if v is None else v for v in others)]))
    return None


def layout(operands: Sequence[Tensor]) -> list[int]:
    """The axes that number the rows, and the strides of all operands.

    Axes that every operand passes like a single one are one.
    """
    *sizes, n = operands[0].shape
    strides = [operand.stride() for operand in operands]
    axes: list[tuple[int, list[int]]] = []  # the size of each and its strides, from the last one
    for axis in reversed(range(len(sizes))):
        size, steps = sizes[axis], [stride[axis] for stride in strides]
        if size == 1:
            continue
        if axes and steps == [step * axes[-1][0] for step in axes[-1][1]]:
            axes[-1] = size * axes[-1][0], axes[-1][1]
        else:
            axes.append((size, steps))
    axes = axes[::-1] or [(1, [0] * len(operands))]
    numbers = [len(axes), *(size for size, _ in axes)]
    for place, stride in enumerate(strides):
        numbers += [steps[place] for _, steps in axes]
        numbers.append(stride[-1] if n > 1 else 1)
    return numbers

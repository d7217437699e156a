"""What the checks ask of a value: its kind, its shape, its extremes, the first that is wrong."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from softorder._check import _kinds

PerRow = float | Tensor  #: a number, or a tensor that broadcasts over the rows

FLOATING = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
NOT_COUNTS = (torch.bool, torch.complex32, torch.complex64, torch.complex128)


def is_number(name: str, value: object) -> bool:
    """True for a number, False for a tensor, and an error for anything else."""
    kind = type(value)
    if kind is float or kind is int:
        return True
    if isinstance(value, Tensor):
        return False
    if isinstance(value, (numbers.Real, torch.SymInt, torch.SymFloat)) and kind is not bool:
        return True
    raise TypeError(f"{name} must be a real number or a tensor, but got {kind.__name__}")


def real_numbers(name: str, value: Tensor, what: str = "real numbers") -> None:
    """A dense tensor that holds real numbers, whole or not."""
    if value.dtype in NOT_COUNTS or value.is_quantized:
        raise TypeError(f"{name} must hold {what}, but got a tensor of {dtype(value)}")
    _kinds.dense(name, value)


def per_row(name: str, value: Tensor, scores: Tensor, dim: int) -> None:
    """A tensor of real numbers that broadcasts over the rows of scores."""
    real_numbers(name, value)
    reachable(name, value, scores)
    if value.shape == scores.shape[:-1] and (dim == -1 or dim == scores.dim() - 1):
        return  # what happens most
    if value.dim() == scores.dim():  # more than the rows have: `dim` was kept
        kept(name, value, scores, (dim,))
    else:
        broadcast_over_rows(name, value, without(scores, dim))


def kept(name: str, value: Tensor, scores: Tensor, axes: Iterable[int]) -> None:
    """Numbers that have all axes of scores: size 1 along `axes`, and the others broadcast."""
    shape = list(scores.shape)
    for axis in axes:
        shape[axis] = 1
    if not broadcasts(value.shape, shape):
        raise ValueError(
            f"{name} must broadcast over the rows of scores, or have as many axes as scores and "
            f"broadcast to {tuple(shape)}, but got shape {tuple(value.shape)}"
        )


def reachable(name: str, value: Tensor, scores: Tensor) -> None:
    """Numbers that can be brought to the device of the scores: they are somewhere."""
    if value.is_meta and not scores.is_meta:
        beside(name, value, scores)


def beside(name: str, value: Tensor, other: Tensor, of: str = "scores") -> None:
    """A tensor on the device of the scores, or of another argument.

    Beside one without numbers, on the meta device, anything will do: the result has none either.
    """
    if value.device != other.device and not other.is_meta:
        raise ValueError(
            f"{name} must be on the device of {of}, {other.device}, but got a tensor on "
            f"{value.device}"
        )


def broadcast_over_rows(name: str, value: Tensor, shape: tuple[int, ...]) -> None:
    """Numbers that broadcast over rows of this shape."""
    if not broadcasts(value.shape, shape):
        raise ValueError(
            f"{name} must broadcast over the rows of scores, shape {shape}, "
            f"but got shape {tuple(value.shape)}"
        )


def without(scores: Tensor, dim: int) -> tuple[int, ...]:
    """The shape of the rows: that of scores without the axis dim."""
    shape = tuple(scores.shape)
    dim %= len(shape)
    return shape[:dim] + shape[dim + 1 :]  # torch.compile of torch 2.5 cannot delete from a list


def broadcasts(shape: Iterable[int], target: Iterable[int]) -> bool:
    """Whether the one shape broadcasts to the other."""
    shape, target = tuple(shape), tuple(target)
    ends = zip(reversed(shape), reversed(target), strict=False)
    return len(shape) <= len(target) and all(a == 1 or a == b for a, b in ends)


def refuse(name: str, wrong: Tensor, message: Callable[[], str]) -> None:
    """An error if anything is wrong with the entries of an argument.

    Another device is not waited for: it stops there by itself, as in the operators of torch.
    """
    if not wrong.is_cpu:
        torch._assert_async(~wrong.any(), f"softorder: an entry of {name} is not allowed")
    elif wrong.any():
        raise ValueError(message())


def extremes(value: Tensor) -> tuple[float, float]:
    """Smallest and largest entry; NaN if any is NaN."""
    value = value.detach()
    if value.numel() == 1:
        return (value.item(),) * 2
    low, high = torch.aminmax(value)
    return low.item(), high.item()


def first(value: Tensor, where: Tensor) -> float:
    """The first entry where `where` is True."""
    return value.detach()[where].flatten()[0].item()


def dtype(value: Tensor) -> str:
    """The name of the dtype, as messages write it."""
    return str(value.dtype).removeprefix("torch.")

"""Kinds of tensors: which of them nobody here can compute with, and what to do instead."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from softorder._check._mode import PLAIN, eager

#: Classes of torch that know the operations of torch, but not ours.
_ADVICE = {
    "DTensor": "call it on .full_tensor(), or on .to_local() where every row is on one device",
    "FakeTensor": "call it within its FakeTensorMode",
    "MaskedTensor": "hand its data and its mask over",
}


def dense(name: str, value: Tensor) -> None:
    """A tensor with a number at every place, which is as good as one in memory."""
    if value.layout is not torch.strided or value.is_nested:
        layout = str(value.layout).removeprefix("torch.").removeprefix("_")
        kind = "a nested one" if value.layout is torch.strided else f"one of layout {layout}"
        raise TypeError(f"{name} must be a dense tensor, but got {kind}")
    if type(value) not in PLAIN:
        _subclass(name, value)


def _subclass(name: str, value: Tensor) -> None:
    for kind in type(value).__mro__:
        if kind.__name__ in _ADVICE and kind.__module__.startswith("torch.") and eager():
            raise TypeError(
                f"{name} must be a plain tensor, but got a {kind.__name__}: "
                f"{_ADVICE[kind.__name__]}"
            )


def dense_gradient(result: Tensor) -> Tensor:
    """A result of plain torch, whose gradient is looked at as that of a kernel is."""
    if eager() and result.requires_grad:
        result.register_hook(partial(dense, "the gradient"))
    return result


def unpacked(values: Sequence[Tensor], like: Sequence[tuple[torch.Size, torch.dtype]]) -> None:
    """What autograd kept comes back as it was: a kernel reads as much as was there before."""
    for value, (shape, dtype) in zip(values, like, strict=True):
        if value.shape != shape or value.dtype != dtype:
            raise RuntimeError(
                f"autograd saved a tensor of {dtype} with shape {tuple(shape)}, but got back one "
                f"of {value.dtype} with shape {tuple(value.shape)}: look for saved_tensors_hooks"
            )


def no_wrapper(value: Tensor, what: str) -> None:
    """A tensor that no class of Python stands in front of, by __torch_dispatch__."""
    if type(value).__torch_dispatch__ is not Tensor.__torch_dispatch__:
        raise TypeError(f"{what} cannot be had for a {type(value).__name__}: use a plain tensor")

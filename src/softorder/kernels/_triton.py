"""Triton kernels: whether they can be used, when they are, how they are launched.

Triton is optional and imported when a kernel is first called, never before. It serves CUDA tensors
(ROCm's too, which torch calls by the same name), and CPU tensors by its interpreter: for tests,
with `SOFTORDER_KERNELS=triton` and `TRITON_INTERPRET=1`. Where it is missing or too old, CUDA
tensors are served by plain torch, said once.
"""

from __future__ import annotations

import importlib
import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from softorder.kernels import _native
from softorder.kernels._compiler import constant_in_graphs

OLDEST = (3, 3)  #: the first Triton whose histograms take a mask
REGISTERS = 65536  #: that the threads of a program share on a GPU of NVIDIA

LONGEST = 2**31 - 2**14  #: row whose places, and those of the tile that ends it, are int32

#: How often each kernel was launched, for tests that must know.
calls: Counter[str] = Counter()


# ---- whether, and when --------------------------------------------------------------------------


def serves(scores: Tensor) -> bool:
    """Whether tensors on the device of these are served by Triton kernels, here and now."""
    return _serves_for_good(scores.device.type) and scores.shape[-1] <= LONGEST


def serves_traced(scores: Tensor) -> bool:
    """The same while a graph is recorded. Rows that are too long are noticed when it runs."""
    return _serves_for_good(scores.device.type)


@constant_in_graphs
def _serves_for_good(device: str) -> bool:
    if device == "cuda":
        return _native.kind() != "torch" and _usable()
    return device == "cpu" and _native.kind() == "triton"


def problem() -> str | None:
    """Why Triton cannot be used; None if it can."""
    try:
        version = importlib.import_module("triton").__version__
    except ImportError as error:
        return f"Triton is missing ({error}): pip install 'softorder[gpu]'"
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if numbers < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        return f"Triton {version} is too old, {oldest} is the oldest: pip install -U triton"
    return None


def interpreted() -> bool:
    """Whether Triton runs kernels in Python, on the CPU."""
    return os.environ.get("TRITON_INTERPRET", "").lower() in ("1", "true", "on", "yes")


@lru_cache(maxsize=1)
def _usable() -> bool:
    reason = problem()
    if reason is not None:
        warnings.warn(
            f"softorder uses plain torch on this GPU, which is slower: {reason}. "
            "Or set SOFTORDER_KERNELS=torch to agree.",
            RuntimeWarning,
            stacklevel=2,
        )
    return reason is None


class Module:
    """Functions of a module that imports Triton: the import happens when one is first called."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, function: str) -> Callable[..., Any]:
        def run(*arguments: Any, **options: Any) -> Any:
            return getattr(importlib.import_module(self._name), function)(*arguments, **options)

        return run


# ---- launching ----------------------------------------------------------------------------------


def launch(
    kernel: Any, grid: tuple[int, ...], device: torch.device, warps: int, *arguments: Any
) -> None:
    """Runs a kernel on a device, and counts it."""
    calls[kernel.__name__] += 1
    with ExitStack() as stack:
        for context in _contexts(device):
            stack.enter_context(context)
        try:
            kernel[grid](*arguments, **compiler_options(warps))
        except Exception as error:
            raise RuntimeError(
                f"softorder: the Triton kernel {kernel.__name__} could not be compiled or run "
                f"({error}). Update Triton and the driver, or set SOFTORDER_KERNELS=torch"
            ) from error


def compiler_options(warps: int, nvidia: bool = torch.version.hip is None) -> dict[str, Any]:
    """Given a limit, NVIDIA's compiler uses all registers that fit; else it saves and spills."""
    options: dict[str, Any] = {"num_warps": warps, "enable_fp_fusion": True}
    if nvidia:
        options["maxnreg"] = min(255, REGISTERS // (32 * warps))
    return options


def _contexts(device: torch.device) -> Sequence[AbstractContextManager]:
    if device.type == "cuda":
        return (torch.cuda.device(device),)
    quiet = warnings.catch_warnings()  # NumPy would report every infinity
    return np.errstate(all="ignore"), quiet, _Silence()


class _Silence(AbstractContextManager):
    def __enter__(self) -> None:
        warnings.simplefilter("ignore")

    def __exit__(self, *_: object) -> None:
        return None


def per_row(value: Tensor, like: Tensor) -> tuple[Tensor, int]:
    """One number for all rows, or one for each, where the scores are: the tensor and its stride.

    A number comes on the CPU, and is written on the device without waiting for it.
    """
    if value.numel() == 1:
        if value.device == like.device:
            return value.reshape(1), 0
        return torch.full((1,), value.item(), dtype=value.dtype, device=like.device), 0
    return value.to(like.device).expand(like.shape[:-1]).contiguous(), 1


def power_of_two(n: int) -> int:
    """The least one that is not less than n."""
    return 1 << max(n - 1, 0).bit_length()


def processors(device: torch.device) -> int:
    """How many programs a device runs at the same time, at least."""
    if device.type != "cuda":
        return 8
    return torch.cuda.get_device_properties(device).multi_processor_count

"""The compiled library: where it is, when it is used, how it is called.

`SOFTORDER_KERNELS=torch|native` forces one kind of kernel; asking for native when the library is
missing raises. By default a missing library only means the slower path, said once.
"""

from __future__ import annotations

import ctypes
import os
import struct
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

KINDS = ("torch", "native")
DENSITIES = 5  # that the library knows: the first ones of softorder.densities.BUILT_IN

#: How often each compiled kernel ran, for tests that must know.
calls: Counter[str] = Counter()


def library_path() -> Path | None:
    """The compiled library of this installation, if it has one."""
    from softorder import kernels

    for folder in kernels.__path__:
        for library in sorted(Path(folder, "_lib").glob("libsoftorder.*")):
            return library
    return None


@contextmanager
def use(kind: str) -> Iterator[None]:
    """Uses one kind of kernel, "torch" or "native", within a with-statement, in every thread."""
    global _enabled
    wanted = _decide(kind)
    with _switch:
        before, _enabled = _enabled, wanted
    try:
        yield
    finally:
        with _switch:
            _enabled = before


def enabled() -> bool:
    """Whether CPU tensors are served by the compiled kernels."""
    global _enabled
    if _enabled is None:
        _enabled = _decide(os.environ.get("SOFTORDER_KERNELS", ""))
    return _enabled


def level() -> str:
    """The SIMD level that the library chose for this machine."""
    return _library().level().decode()


_switch = threading.Lock()
_enabled: bool | None = None  # None: not yet decided
_forked = False


def _decide(kind: str) -> bool:
    if kind and kind not in KINDS:
        raise ValueError(f"the kind of kernels must be one of {', '.join(KINDS)}, but got {kind!r}")
    if kind == "torch":
        return False
    if library_path() is not None:
        _library()
        return True
    if kind == "native":
        raise RuntimeError(
            "native kernels were asked for, but this installation of softorder has none: install "
            "it with a C++20 compiler at hand, or set SOFTORDER_KERNELS=torch"
        )
    warnings.warn(
        "softorder was installed without its compiled kernels and uses plain torch, which is "
        "slower. Reinstall it with a C++20 compiler at hand, or set SOFTORDER_KERNELS=torch "
        "to agree.",
        RuntimeWarning,
        stacklevel=2,
    )
    return False


def _remember_fork() -> None:
    # The child has no OpenMP threads, and libgomp would wait for them.
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_remember_fork)


# ---- calls -----------------------------------------------------------------------------------

# struct TopkForward and TopkBackward of csrc/topk.hpp, field by field: pointers, sizes, integers.
# A packed string of bytes is several times cheaper to make than a ctypes.Structure.
_FORWARD = struct.Struct("@7P4N3i0P")
_BACKWARD = struct.Struct("@9P3N3i0P")


class _Library:
    def __init__(self, path: Path) -> None:
        loaded = ctypes.CDLL(str(path))  # calls release the interpreter lock
        self.topk_forward = _function(loaded.softorder_topk_forward)
        self.topk_backward = _function(loaded.softorder_topk_backward)
        self.level: Callable[[], bytes] = loaded.softorder_level
        loaded.softorder_level.restype = ctypes.c_char_p
        self.loaded = loaded
        self.functions: dict[str, Callable[[bytes], int]] = {}

    def call(self, name: str, arguments: bytes) -> None:
        """Calls softorder_<name> with a packed struct of arguments."""
        function = self.functions.get(name)
        if function is None:
            function = self.functions[name] = _function(getattr(self.loaded, f"softorder_{name}"))
        calls[name] += 1
        failed = function(arguments)
        assert not failed


def _function(symbol: Any) -> Callable[[bytes], int]:
    symbol.argtypes, symbol.restype = [ctypes.c_char_p], ctypes.c_int
    function: Callable[[bytes], int] = symbol
    return function


@lru_cache(maxsize=1)
def _library() -> _Library:
    path = library_path()
    assert path is not None
    return _Library(path)


def call(name: str, arguments: bytes) -> None:
    """Runs one compiled kernel, and counts it."""
    _library().call(name, arguments)


def topk_forward(
    scores: Tensor, k: Tensor, temperature: Tensor, density: int
) -> tuple[Tensor, Tensor]:
    """p, and its thresholds: centres and rests, stacked."""
    x = scores.contiguous()
    p = torch.empty_like(x)
    return p, _solve(x, k, temperature, density, p.data_ptr(), 0)


def threshold(
    scores: Tensor, k: Tensor, temperature: Tensor, density: int
) -> tuple[Tensor, Tensor]:
    """Thresholds, and the number of passes that they took."""
    sweeps = torch.empty(scores.shape[:-1], dtype=torch.int32)
    return _solve(scores.contiguous(), k, temperature, density, 0, sweeps.data_ptr()), sweeps


def _solve(x: Tensor, k: Tensor, temperature: Tensor, density: int, p: int, sweeps: int) -> Tensor:
    """Thresholds of the last axis of float32 or float64 scores; fills p and sweeps if given."""
    calls["topk_forward"] += 1
    *shape, n = x.shape
    b = x.new_empty(2, *shape)
    rows, centre = b.numel() // 2, b.data_ptr()
    k, k_stride = dense(k, shape)
    temperature, temperature_stride = dense(temperature, shape)
    failed = _library().topk_forward(
        _FORWARD.pack(
            x.data_ptr(),
            k.data_ptr(),
            temperature.data_ptr(),
            p,
            centre,
            centre + rows * x.element_size(),
            sweeps,
            rows,
            n,
            k_stride,
            temperature_stride,
            density,
            x.dtype is torch.float64,
            threads(),
        )
    )
    assert not failed
    return b


def topk_backward(
    upstream: Tensor,
    scores: Tensor,
    temperature: Tensor,
    b: Tensor,
    density: int,
    by_temperature: bool,
    index: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Gradients of the scores; and per row of k, and of temperature if wanted, stacked.

    With an index (int64, one per row), upstream is 0 everywhere else: one number per row.
    """
    calls["topk_backward"] += 1
    *shape, n = scores.shape
    x, v = scores.contiguous(), upstream.contiguous()
    where = None if index is None else index.contiguous()
    by_scores = torch.empty_like(x)
    by_row = x.new_empty(1 + by_temperature, *shape, dtype=torch.float64)
    rows, centre, by_k = b.numel() // 2, b.data_ptr(), by_row.data_ptr()
    temperature, stride = dense(temperature, shape)
    failed = _library().topk_backward(
        _BACKWARD.pack(
            x.data_ptr(),
            v.data_ptr(),
            0 if where is None else where.data_ptr(),
            temperature.data_ptr(),
            centre,
            centre + rows * x.element_size(),
            by_scores.data_ptr(),
            by_k,
            by_k + rows * by_row.element_size() if by_temperature else 0,
            rows,
            n,
            stride,
            density,
            x.dtype is torch.float64,
            threads(),
        )
    )
    assert not failed
    return by_scores, by_row


def dense(value: Tensor, shape: Sequence[int]) -> tuple[Tensor, int]:
    """One number for all rows, or one for each, without gaps: the tensor and its stride."""
    if value.numel() == 1:
        return value, 0
    return value.expand(shape).contiguous(), 1


def threads() -> int:
    return 1 if _forked else torch.get_num_threads()

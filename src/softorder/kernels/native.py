"""The compiled library: where it is, when it is used, how it is called.

`SOFTORDER_KERNELS=torch|native` forces one kind of kernel; asking for native when the library is
missing raises. By default a missing library only means the slower path, said once.
"""

from __future__ import annotations

import ctypes
import os
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

from softorder import _check

KINDS = ("torch", "native")
INT32 = 2**31 - 1  #: the longest row of a kernel whose indices are int32

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


def serves(scores: Tensor, *others: Tensor, most: int | None = None) -> bool:
    """Whether a compiled kernel, for rows of so many scores at the most, may take these.

    `others` are all the tensors that become pointers with the scores.
    """
    return (
        _check.plain(scores, *others) and (most is None or scores.shape[-1] <= most) and enabled()
    )


def level() -> str:
    """The SIMD level that the library chose for this machine."""
    return library().level().decode()


_switch = threading.Lock()
_enabled: bool | None = None  # None: not yet decided
_forked = False


def _decide(kind: str) -> bool:
    if kind and kind not in KINDS:
        raise ValueError(f"the kind of kernels must be one of {', '.join(KINDS)}, but got {kind!r}")
    if kind == "torch":
        return False
    if library_path() is not None:
        library()
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
#
# Arguments travel as a C struct in a string of bytes, packed field by field: pointers, sizes,
# integers. That is several times cheaper to make than a ctypes.Structure.


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
def library() -> _Library:
    """The library, loaded once."""
    path = library_path()
    assert path is not None
    return _Library(path)


def call(name: str, arguments: bytes) -> None:
    """Runs one compiled kernel, and counts it."""
    library().call(name, arguments)


def dense(value: Tensor, shape: Sequence[int]) -> tuple[Tensor, int]:
    """One number for all rows, or one for each, without gaps: the tensor and its stride."""
    if value.numel() == 1:
        return value, 0
    return value.expand(shape).contiguous(), 1


def pointer(value: Tensor | None) -> int:
    """Where it begins; 0 for nothing. Every address that a kernel gets comes from here.

    A tensor without memory is an error, not a crash: `serves` and the dispatcher let none through,
    but a result that was allocated under a mode of torch may be one.
    """
    if value is None:
        return 0
    address = value.data_ptr()
    if not address and value.numel():
        raise TypeError(
            "compiled kernels need tensors with memory of their own on the CPU, but got a "
            f"{type(value).__name__} on the device {value.device} without any"
        )
    return address


def threads() -> int:
    return 1 if _forked else torch.get_num_threads()

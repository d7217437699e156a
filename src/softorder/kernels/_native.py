"""The compiled kernels: which library this CPU can run, when it is used, how it is called.

There is one library per SIMD level, and only the widest one that this CPU can run is opened;
`SOFTORDER_SIMD=baseline|avx2|avx512` asks for a narrower one.
`SOFTORDER_KERNELS=torch|native|triton` forces one kind of kernel; asking for one where it cannot be
had raises. By default that only means the slower path, said once, with the reason. On the CPU
Triton is its interpreter, for tests.
"""

from __future__ import annotations

import ctypes
import os
import struct
import threading
import warnings
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor

from softorder import _check
from softorder._axis import constant
from softorder.kernels._compiler import constant_in_graphs

KINDS = ("torch", "native")  #: of kernels for CPU tensors; and "triton", where it is interpreted
LEVELS = ("baseline", "avx2", "avx512")  #: from the narrowest to the widest
INT32 = 2**31 - 1  #: the longest row of a kernel whose indices are int32

#: The kernels, and the fields of their structs of arguments (csrc/*.hpp): P for pointers, N for
#: sizes, i for int32. Loading compares their sizes with those of the library.
KERNELS = {
    "topk_forward": "10P4N3i",
    "topk_backward": "12P3N3i",
    "sort": "4P2N2i",
    "fsum": "11P6N5i",
    "fsum_invert": "8P6N3i",
    "soft_rank_forward": "11P3N4i",
    "soft_rank_backward": "11P3N4i",
    "soft_sort_forward": "11P3N4i",
    "soft_sort_backward": "11P3N4i",
    "permutation_forward": "6P4N4i",
    "permutation_backward": "6P4N4i",
    "placement_forward": "14P3N4i",
    "placement_backward": "14P3N4i",
    "isotonic": "3P2N3i",
    "projected_rank_forward": "8P3N4i",
    "projected_rank_backward": "8P3N4i",
    "projected_sort_forward": "8P3N4i",
    "projected_sort_backward": "8P3N4i",
    "network": "10P5N5i",
    "row_softmax": "7P4N4i",
    "one_entry_forward": "10P5N5i",
    "one_entry_backward": "9P5N3i",
    "pairs": "8P3N4i",
    "pareto_forward": "6P3N2i",
    "pareto_backward": "4P2N2i",
    "subsets_forward": "7P4N2i",
    "subsets_backward": "8P4N2i",
    "transport_solve": "9P4N2i",
    "transport_plan_forward": "11P5N1i",
    "transport_plan_backward": "11P5N1i",
}
INTERFACE = 9  #: kInterface of csrc/kernels.hpp: what the fields mean

#: How often each compiled kernel ran, for tests that must know.
calls: Counter[str] = Counter()


class UnusableError(RuntimeError):
    """Why the compiled kernels cannot be used."""


# ---- when it is used -------------------------------------------------------------------------


@contextmanager
def use(kind: str) -> Iterator[None]:
    """Uses one kind of kernel, "torch", "native" or "triton", in every thread."""
    global _kind
    wanted = _decide(kind)
    with _switch:
        before, _kind = _kind, wanted
    try:
        yield
    finally:
        with _switch:
            _kind = before


def kind() -> str:
    """The kind of kernels in use."""
    global _kind
    if _kind is None:
        _kind = _decide(os.environ.get("SOFTORDER_KERNELS", ""))
    return _kind


def enabled() -> bool:
    """Whether CPU tensors are served by the compiled kernels."""
    return kind() == "native"


def serves(scores: Tensor, *others: Tensor, most: int | None = None) -> bool:
    """Whether a compiled kernel, for rows of so many scores at the most, may take these.

    `others` are all the tensors that become pointers with the scores.
    """
    return (
        _check.plain(scores, *others) and (most is None or scores.shape[-1] <= most) and enabled()
    )


def serves_traced(scores: Tensor) -> bool:
    """The same while a graph is recorded, where tensors have no memory yet."""
    return type(scores) in _TRACED and scores.device.type == "cpu" and _enabled_for_good()


# What tracers put in the place of a plain tensor; dynamo shows it as it was.
_TRACED = (*_check.PLAIN, FakeTensor, FunctionalTensor)


@constant_in_graphs
def _enabled_for_good() -> bool:
    return enabled()


_switch = threading.Lock()
_kind: str | None = None  # None: not yet decided
_forked = False


def _decide(wanted: str) -> str:
    if wanted and wanted not in (*KINDS, "triton"):
        known = ", ".join((*KINDS, "triton"))
        raise ValueError(f"the kind of kernels must be one of {known}, but got {wanted!r}")
    if wanted == "torch":
        return wanted
    if wanted == "triton":
        return _decide_triton()
    try:
        library()
    except UnusableError as reason:
        if wanted == "native":
            raise UnusableError(
                f"native kernels were asked for, but {reason}. "
                "Or set SOFTORDER_KERNELS=torch to use plain torch"
            ) from None
        warnings.warn(
            f"softorder uses plain torch, which is slower: {reason}. "
            "Or set SOFTORDER_KERNELS=torch to agree.",
            RuntimeWarning,
            stacklevel=2,
        )
        return "torch"
    return "native"


def _decide_triton() -> str:
    from softorder.kernels import _triton

    reason = _triton.problem()
    if reason is None and not (torch.cuda.is_available() or _triton.interpreted()):
        reason = "there is no GPU. Set TRITON_INTERPRET=1 to have them interpreted on the CPU"
    if reason is not None:
        raise UnusableError(f"Triton kernels were asked for, but {reason}")
    return "triton"


def _remember_fork() -> None:
    # The child has no OpenMP threads, and libgomp would wait for them.
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_remember_fork)


# ---- which library ---------------------------------------------------------------------------


def library_path(name: str) -> Path | None:
    """A compiled library of this installation, if it has one: "cpu", or a SIMD level."""
    from softorder import kernels

    for folder in kernels.__path__:
        for path in sorted(Path(folder, "_lib").glob(f"libsoftorder_{name}.*")):
            return path
    return None


def machine_level() -> str:
    """The widest SIMD level that this CPU can run."""
    asked = _open("cpu").softorder_cpu_level
    asked.argtypes, asked.restype = [], ctypes.c_char_p
    return asked().decode()


def level() -> str:
    """The SIMD level of the library that is in use."""
    return library().level


@contextmanager
def use_level(name: str) -> Iterator[None]:
    """Uses the library of one SIMD level within a with-statement, in every thread."""
    global _library
    before, _library = _library, _library_of(name)
    try:
        yield
    finally:
        _library = before


def usable_levels() -> list[str]:
    """The levels that this CPU can run and this installation has, from the narrowest up."""
    runnable = LEVELS[: LEVELS.index(machine_level()) + 1]
    return [name for name in runnable if library_path(name)]


def _choose_level() -> str:
    wanted, usable = os.environ.get("SOFTORDER_SIMD", ""), usable_levels()
    if not wanted:
        return usable[-1] if usable else LEVELS[0]
    if wanted not in LEVELS:
        raise ValueError(f"SOFTORDER_SIMD must be one of {', '.join(LEVELS)}, but got {wanted!r}")
    if wanted not in usable:
        raise ValueError(
            f"SOFTORDER_SIMD={wanted} is not to be had: this CPU runs {machine_level()} at the "
            f"most, and of that this installation has {', '.join(usable) or 'nothing'}"
        )
    return wanted


def _open(name: str) -> ctypes.CDLL:
    path = library_path(name)
    if path is None:
        raise UnusableError(
            "this installation of softorder has no compiled kernels. Reinstall it with a C++20 "
            "compiler at hand (pip install --force-reinstall --no-deps --no-cache-dir softorder)"
        )
    try:
        return _load(path)
    except OSError as error:
        raise UnusableError(f"the compiled kernels cannot be opened ({error})") from None


def _load(path: Path) -> ctypes.CDLL:
    # Calls release the interpreter lock. Threads are those of the OpenMP runtime that torch has
    # made global; a torch without one leaves its functions undefined, and the system's serves.
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        if "undefined symbol" not in str(error):
            raise
    ctypes.CDLL("libgomp.so.1", mode=ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(str(path))


# ---- calls -----------------------------------------------------------------------------------
#
# Arguments travel as a C struct in a string of bytes, packed field by field. That is several times
# cheaper to make than a ctypes.Structure.

_Call = Callable[[bytes], int]
_CALL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_char_p)
_UNKNOWN_CHOICE = -1  # of csrc/failure.hpp; above 0: how many bytes of memory could not be had


class _Entry(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("call", _CALL), ("argument_bytes", ctypes.c_size_t))


class _Description(ctypes.Structure):
    _fields_ = (
        ("interface", ctypes.c_int32),
        ("pack_bytes", ctypes.c_int32),
        ("level", ctypes.c_char_p),
        ("count", ctypes.c_size_t),
        ("kernels", ctypes.POINTER(_Entry)),
    )


class Library:
    """An opened library whose interface is the one that this file describes."""

    def __init__(self, name: str) -> None:
        self.opened = _open(name)
        told = self._describe()
        self.level: str = told.level.decode()
        self.pack_bytes: int = told.pack_bytes
        self.kernels: dict[str, tuple[_Call, Callable[..., bytes]]] = {}
        if told.interface != INTERFACE or self.level != name:
            raise _stale(f"interface {told.interface} of level {self.level!r}")
        for entry in told.kernels[: told.count]:
            self._add(entry.name.decode(), entry.call, entry.argument_bytes)
        if missing := KERNELS.keys() - self.kernels.keys():
            raise _stale(f"no kernel {', '.join(sorted(missing))}")

    def _describe(self) -> Any:
        describe = getattr(self.opened, "softorder_library", None)
        if describe is None:
            raise _stale("no function softorder_library")
        describe.argtypes, describe.restype = [], ctypes.POINTER(_Description)
        return describe().contents

    def _add(self, name: str, function: _Call, size: int) -> None:
        if name not in KERNELS:
            raise _stale(f"a kernel {name!r}")
        layout = struct.Struct(f"@{KERNELS[name]}0P")  # ends aligned, as the C struct does
        if layout.size != size:
            raise _stale(f"{size} bytes of arguments for {name} instead of {layout.size}")
        self.kernels[name] = function, layout.pack


def _stale(found: str) -> UnusableError:
    return UnusableError(
        f"the compiled kernels belong to another version of softorder (found {found}). "
        "Rebuild them: reinstall softorder"
    )


_library: Library | None = None  # None: not yet opened
_library_of = lru_cache(Library)


def library() -> Library:
    """The library in use: that of this CPU, opened at the first call."""
    global _library
    if _library is None:
        _library = _library_of(_choose_level())
    return _library


def call(name: str, *arguments: int) -> None:
    """Runs one compiled kernel with the fields of its struct of arguments, and counts it."""
    function, pack = (_library or library()).kernels[name]
    calls[name] += 1
    if outcome := function(pack(*arguments)):
        raise _failure(name, outcome)


def _failure(name: str, outcome: int) -> Exception:
    if outcome > 0:
        return MemoryError(f"softorder: the kernel {name} could not have {outcome} bytes of memory")
    if outcome == _UNKNOWN_CHOICE:
        return ValueError(f"softorder: the kernel {name} does not know the choice it was given")
    return RuntimeError(f"softorder: the kernel {name} failed unexpectedly (code {outcome})")


def dense(value: _check.PerRow, shape: Sequence[int]) -> tuple[Tensor, int]:
    """One number for all rows, or one for each, without gaps: the tensor and its stride."""
    if not isinstance(value, Tensor):
        return constant(value), 0
    if value.numel() == 1:
        return value, 0
    if value.shape != tuple(shape):
        value = value.expand(shape)
    return value.contiguous(), 1


def placed(value: _check.PerRow, shape: Sequence[int]) -> tuple[Tensor, int, int]:
    """The same with the address between the two."""
    if type(value) is float or type(value) is int:
        return _placed(value)
    value, stride = dense(value, shape)
    return value, pointer(value), stride


@lru_cache(maxsize=1024)
def _placed(value: float) -> tuple[Tensor, int, int]:
    number = constant(value)
    return number, pointer(number), 0


def rows_of(scores: Tensor, offsets: Tensor | None) -> torch.Size:
    """The shape of the rows: the axes before the last one, or as many as the offsets tell."""
    return scores.shape[:-1] if offsets is None else torch.Size((offsets.shape[0] - 1,))


def pointer(value: Tensor | None) -> int:
    """Where it begins; 0 for nothing. Every address of a tensor that a kernel gets comes from here.

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


def address(numbers: array[Any]) -> int:
    """Where numbers begin that no tensor holds."""
    return numbers.buffer_info()[0]


def threads() -> int:
    return 1 if _forked else torch.get_num_threads()

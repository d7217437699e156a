"""Calls of kernels as Python makes them, in a file that `count.cpp` can replay.

Little endian, every number a uint64: how many calls, then for each call

    name        its length and its bytes
    arguments   their size, and the struct with 0 for every pointer
    pointers    how many, and for each its place in the struct, its buffer and how far into it
    buffers     how many, and for each its size and what was in it before the call
"""

from __future__ import annotations

import re
import struct
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from unittest import mock

import torch
from torch import Tensor

from softorder.kernels import _native

_SIZES = {"P": 8, "N": 8, "i": 4}


@dataclass(frozen=True)
class Recorded:
    """One call: its arguments, and the memory that they point to."""

    kernel: str
    arguments: tuple[int, ...]
    buffers: tuple[tuple[int, bytes], ...]  # where each begins, and what was in it

    def place_of(self, address: int) -> tuple[int, int]:
        """The number of the buffer that it points into, and how far."""
        for number, (start, content) in enumerate(self.buffers):
            if start <= address < start + len(content):
                return number, address - start
        raise LookupError(f"{self.kernel} got the address of a tensor that nobody noted")


def record(work: Callable[[], object]) -> list[Recorded]:
    """The calls of kernels that the work makes, on one thread."""
    calls: list[Recorded] = []
    noted: dict[int, Tensor | array] = {}  # by where their memory begins
    pointer, address, call = _native.pointer, _native.address, _native.call

    def noted_pointer(value: Tensor | None) -> int:
        if value is not None:
            noted[value.untyped_storage().data_ptr()] = value
        return pointer(value)

    def noted_address(numbers: array) -> int:
        noted[address(numbers)] = numbers
        return address(numbers)

    def noted_call(name: str, *arguments: int) -> None:
        buffers = tuple((start, _content(value)) for start, value in noted.items())
        calls.append(Recorded(name, arguments, buffers))
        call(name, *arguments)
        noted.clear()

    with (
        _one_thread(),
        mock.patch.object(_native, "pointer", noted_pointer),
        mock.patch.object(_native, "address", noted_address),
        mock.patch.object(_native, "_placed", _native._placed.__wrapped__),  # not from its cache
        mock.patch.object(_native, "call", noted_call),
    ):
        work()
    return calls


def letters(kernel: str) -> str:
    """The layout of a kernel's struct of arguments, a letter for each field."""
    return re.sub(r"(\d+)(\w)", lambda m: int(m[1]) * m[2], _native.KERNELS[kernel])


def _content(value: Tensor | array) -> bytes:
    """All of its storage."""
    if isinstance(value, array):
        return value.tobytes()
    return bytes(torch.empty(0, dtype=torch.uint8).set_(value.untyped_storage()).numpy())


@contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def write(path: Path, calls: list[Recorded]) -> None:
    with open(path, "wb") as file:
        _numbers(file, len(calls))
        for call in calls:
            _write(file, call)


def _write(file: BinaryIO, call: Recorded) -> None:
    layout = letters(call.kernel)
    pointers, place = [], 0
    for argument, letter in zip(call.arguments, layout, strict=True):
        place = -(-place // _SIZES[letter]) * _SIZES[letter]  # aligned to its size
        if letter == "P" and argument:
            pointers.append((place, *call.place_of(argument)))
        place += _SIZES[letter]
    values = [0 if c == "P" else a for a, c in zip(call.arguments, layout, strict=True)]
    packed = struct.pack(f"@{_native.KERNELS[call.kernel]}0P", *values)
    _numbers(file, len(call.kernel))
    file.write(call.kernel.encode())
    _numbers(file, len(packed))
    file.write(packed)
    _numbers(file, len(pointers), *(number for pointer in pointers for number in pointer))
    _numbers(file, len(call.buffers))
    for _, content in call.buffers:
        _numbers(file, len(content))
        file.write(content)


def _numbers(file: BinaryIO, *numbers: int) -> None:
    file.write(struct.pack(f"<{len(numbers)}Q", *numbers))

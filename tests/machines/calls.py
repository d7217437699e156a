"""A file of kernel calls and their right answers, which a program without Python can replay.

Everything is little endian; a text is its length (uint32) and its bytes.

    file     "softordr", uint32 version of this format, uint32 interface of the kernels,
             uint32 number of calls, the calls
    call     text kernel, text description, text layout (a letter per field of the kernel's struct
             of arguments: P pointer, N size_t, i int32), text names of the fields, the fields
    field    uint8 tag, then by tag
       0     nothing: a null pointer
       1     int64: a number
       2     uint8 field number: the pointer of that earlier field
       3     array: what the kernel reads
       4     uint64 bytes: what the kernel writes, and nobody compares
       5     uint8 format, uint8 partner, uint64 count, count float64: what the kernel has to write;
             uint64 rows, rows float64: by how much it may be off, row by row
    array    uint64 bytes, the bytes

Formats are those of `FORMATS`, by their place. With a tolerance of 0 a number has to be the very
same, the sign of a zero included; with inf nothing is compared. A NaN has to be NaN, an infinity
the same infinity. A partner is the number of the field with the other half of an unevaluated sum,
255 for none: what counts is the sum, or the first half if that is not finite.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import torch
from torch import Tensor

from softorder.kernels import _native

VERSION = 1
FORMATS = (
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.int32,
    torch.int64,
)
ALONE = 255  #: the partner of an output that is no part of a sum

_ORDER = (
    "scores upstream temperature out values order segment rest slope grad_temperature offsets "
    "rows n temperature_stride density descending wide threads"
)
_PLACEMENT = (
    "scores temperature first last upstream losses values order rest slope segment gradient "
    "grad_temperature offsets rows n temperature_stride density descending wide threads"
)
_PERMUTATION = (
    "scores centre rest temperature out upstream rows k n temperature_stride "
    "density flip wide threads"
)
_PROJECTION = (
    "scores upstream temperature out values order starts ranks "
    "rows n temperature_stride descending entropic wide threads"
)
_TRANSPORT_PLAN = (
    "gains levels total temperature centre rest ks upstream out grad_temperature cold "
    "rows n thresholds columns temperature_stride threads"
)
#: The fields of every kernel's struct of arguments, in the order of csrc/*.hpp.
FIELDS = {
    "topk_forward": "scores k temperature p centre rest sweeps mask layout offsets "
    "rows n k_stride temperature_stride density format threads",
    "topk_backward": "scores upstream index temperature centre rest grad_scores grad_k "
    "grad_temperature mask layout offsets rows n temperature_stride density format threads",
    "sort": "scores values order offsets rows n format threads",
    "fsum": "sources source_rest targets target_rest weights temperature source_count "
    "target_count source_offsets target_offsets out rows m n temperature_stride "
    "source_count_stride target_count_stride "
    "density derivative moment wide threads",
    "fsum_invert": "sources levels temperature count source_offsets target_offsets centre rest "
    "rows m n level_stride temperature_stride count_stride density wide threads",
    "soft_rank_forward": _ORDER,
    "soft_rank_backward": _ORDER,
    "soft_sort_forward": _ORDER,
    "soft_sort_backward": _ORDER,
    "permutation_forward": _PERMUTATION,
    "permutation_backward": _PERMUTATION,
    "placement_forward": _PLACEMENT,
    "placement_backward": _PLACEMENT,
    "isotonic": "s w first rows n entropic wide threads",
    "projected_rank_forward": _PROJECTION,
    "projected_rank_backward": _PROJECTION,
    "projected_sort_forward": _PROJECTION,
    "projected_sort_backward": _PROJECTION,
    "network": "scores temperature count low high outputs weights upstream out by_weights "
    "rows n k size temperature_stride comparator matrix descending wide threads",
    "row_softmax": "scores temperature p order count upstream gradient "
    "rows k n temperature_stride family descending wide threads",
    "one_entry_forward": "scores index temperature k shares b log_p loss pull total "
    "rows n columns temperature_stride shares_stride density apart mean wide threads",
    "one_entry_backward": "scores index temperature k b pull upstream grad_scores "
    "grad_temperature rows n columns temperature_stride upstream_stride density wide threads",
    "pairs": "x grades own scores discount bound found gradient "
    "rows n first weighing hinge wide threads",
    "pareto_forward": "u size draws weights log_prob taken rows n count fine threads",
    "pareto_backward": "u size shares gradient rows n fine threads",
    "subsets_forward": "logits size draws b log_prob angle weight rows n count points wide threads",
    "subsets_backward": "logits size draws b angle weight upstream gradient "
    "rows n count points wide threads",
    "transport_solve": "gains levels total temperature tolerance centre rest iterations error "
    "rows n thresholds temperature_stride max_iterations threads",
    "transport_plan_forward": _TRANSPORT_PLAN,
    "transport_plan_backward": _TRANSPORT_PLAN,
}


@dataclass(frozen=True)
class Unchecked:
    """Written by the kernel, and not unique: nobody compares it."""

    shape: tuple[int, ...]
    dtype: torch.dtype


@dataclass(frozen=True)
class Expected:
    """Written by the kernel: these values (rows, ...), but for `tolerance`, one for each row."""

    values: Tensor
    dtype: torch.dtype
    tolerance: Tensor = field(default_factory=lambda: torch.zeros(1))
    partner: str | None = None  #: the field with the other half of an unevaluated sum


@dataclass(frozen=True)
class SameAs:
    """The pointer of another field."""

    name: str


Value = Tensor | Unchecked | Expected | SameAs | int | None


@dataclass
class Call:
    """One call of a kernel. Fields that are not named are null pointers; of numbers, none is."""

    kernel: str
    about: str
    values: dict[str, Value]

    @property
    def names(self) -> list[str]:
        return FIELDS[self.kernel].split()

    @property
    def layout(self) -> str:
        return re.sub(r"(\d+)(\w)", lambda m: int(m[1]) * m[2], _native.KERNELS[self.kernel])


class Recipe(NamedTuple):
    """A call that is yet to be made: right answers take time."""

    kernel: str
    make: Callable[[], Call]


def later(kernel: str, make: Callable[..., Call], *arguments: object, **options: object) -> Recipe:
    """make(*arguments) gives a call of that kernel."""
    return Recipe(kernel, partial(make, *arguments, **options))


def write(path: Path, calls: Iterable[Call]) -> None:
    """The file of these calls."""
    calls = list(calls)
    with open(path, "wb") as file:
        file.write(b"softordr" + struct.pack("<III", VERSION, _native.INTERFACE, len(calls)))
        for call in calls:
            _write_call(file, call)


def _write_call(file: BinaryIO, call: Call) -> None:
    names, layout = call.names, call.layout
    if len(names) != len(layout) or not call.values.keys() <= set(names):
        raise ValueError(
            f"{call.kernel}: {layout} does not fit {names}, or {[*call.values]} does not"
        )
    for text in (call.kernel, call.about, layout, " ".join(names)):
        file.write(struct.pack("<I", len(text.encode())) + text.encode())
    for name, letter in zip(names, layout, strict=True):
        value = call.values.get(name)
        if (letter == "P") == isinstance(value, int):
            raise ValueError(f"{call.kernel}: {name} is of type {letter}, but got {value!r}")
        _write_field(file, value, names)


def _write_field(file: BinaryIO, value: Value, names: list[str]) -> None:
    if value is None:
        file.write(b"\0")
    elif isinstance(value, int):
        file.write(struct.pack("<Bq", 1, value))
    elif isinstance(value, SameAs):
        file.write(struct.pack("<BB", 2, names.index(value.name)))
    elif isinstance(value, Tensor):
        content = _bytes(value)
        file.write(struct.pack("<BQ", 3, len(content)) + content)
    elif isinstance(value, Unchecked):
        size = int(np.prod(value.shape)) * value.dtype.itemsize
        file.write(struct.pack("<BQ", 4, size))
    else:
        _write_expected(file, value, names)


def _write_expected(file: BinaryIO, value: Expected, names: list[str]) -> None:
    partner = ALONE if value.partner is None else names.index(value.partner)
    file.write(struct.pack("<BBB", 5, FORMATS.index(value.dtype), partner))
    for numbers in (value.values, value.tolerance):
        file.write(struct.pack("<Q", numbers.numel()) + _bytes(numbers.double()))


def _bytes(value: Tensor) -> bytes:
    value = value.detach().flatten().clone(memory_format=torch.contiguous_format)
    return value.view(torch.uint8).numpy().tobytes() if value.numel() else b""

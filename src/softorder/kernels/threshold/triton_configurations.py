"""The ways in which the Triton top-k is launched, to be compiled where there is no GPU."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from triton.language import float32, float64

from softorder.kernels._density_numbers import COMPILED, NUMBERED
from softorder.kernels._triton_compile import LENGTHS, Configuration
from softorder.kernels.threshold.triton_rows import topk_backward, topk_forward
from softorder.kernels.threshold.triton_split import (
    topk_gradient_pieces,
    topk_step,
    topk_sweep_pieces,
    topk_write_gradients,
    topk_write_pieces,
)
from softorder.kernels.threshold.triton_tiles import ROOMS, SPLIT, Tile, tile


def configurations(dtype: str, lengths: Sequence[int] = LENGTHS) -> Iterator[Configuration]:
    """Every way in which the kernels are launched for rows of these lengths."""
    for density in range(COMPILED):
        for kernel in _of_density(density, dtype, lengths):
            yield replace(kernel, name=f"{NUMBERED[density].name}: {kernel.name}")


def _of_density(density: int, dtype: str, lengths: Sequence[int]) -> Iterator[Configuration]:
    wide = dtype == "fp64"
    for size, streamed in _sizes(lengths, wide, density):
        yield from _of_rows(size, streamed, density, dtype)
    for name, (one_entry, by_temperature) in _GRADIENTS.items():
        crowded = by_temperature or dtype in ("fp16", "bf16")
        for size, streamed in _sizes(lengths, wide, density, True, crowded):
            kind = f"{name}, {_length(size, streamed)} scores", one_entry, by_temperature
            yield _of_gradients(*kind, size, streamed, density, dtype)
    if max(lengths) >= SPLIT:
        yield from _of_pieces(tile(SPLIT, wide, density), density, dtype)


def _sizes(lengths: Sequence[int], *kind: Any) -> Iterable[tuple[Tile, bool]]:
    """The tiles for rows of these lengths, and whether they are streamed."""
    sizes = ((tile(n, *kind), n) for n in lengths)
    return dict.fromkeys((size, n > size.width) for size, n in sizes)


def _pointers(dtype: str) -> tuple[str, str]:
    """To scores, and to what is kept in more digits."""
    return f"*{dtype}", "*fp64" if dtype == "fp64" else "*fp32"


def _of_rows(size: Tile, streamed: bool, density: int, dtype: str) -> Iterator[Configuration]:
    x, b = _pointers(dtype)
    kinds = [("p", True, False), ("threshold", False, False)]
    if streamed:
        kinds.append(("threshold, if not yet solved", False, True))
    for name, writes, skips in kinds:
        yield Configuration(
            f"{name}, {_length(size, streamed)} scores",
            topk_forward,
            (x, "*fp64", "*fp64", x, b, "*i32", "*i32", *("i32",) * 4),
            (density, size.height, size.width, streamed, writes, skips),
            size.warps,
            size.height * size.width,
            f"passes + {1 + writes}" if streamed else "1",
            str(int(writes)),
        )


#: Gradients: whether upstream is one entry, and whether the temperature has one.
_GRADIENTS = {
    "gradient": (False, False),
    "gradient τ": (False, True),
    "gradient of one entry": (True, False),
    "gradient τ of one entry": (True, True),
}


def _of_gradients(
    name: str,
    one_entry: bool,
    by_temperature: bool,
    size: Tile,
    streamed: bool,
    density: int,
    dtype: str,
) -> Configuration:
    x, b = _pointers(dtype)
    index = "*i64" if one_entry else x
    return Configuration(
        name,
        topk_backward,
        (x, index, x, "*fp64", b, x, "*fp64", *("i32",) * 3),
        (density, size.height, size.width, streamed, one_entry, by_temperature),
        size.warps,
        size.height * size.width,
        str((1 + streamed) * (2 - one_entry)),
        "1",
    )


def _length(size: Tile, streamed: bool) -> str:
    return "more" if streamed else str(size.width)


def _of_pieces(size: Tile, density: int, dtype: str) -> Iterator[Configuration]:
    (x, b), exact = _pointers(dtype), float64 if dtype == "fp64" else float32
    numbers = ("i32",) * 4
    yield Configuration(
        "sums, in pieces",
        topk_sweep_pieces,
        (x, "*fp64", "*fp64", "*i32", "*fp64", *numbers),
        (exact, density, size.width),
        size.warps,
        size.width,
        "1",
        "0",
    )
    for room in ROOMS:
        yield Configuration(
            f"step, up to {room} pieces",
            topk_step,
            ("*fp64", "*fp64", "*fp64", "*fp64", "*i32", b, "*i32", "i32", *numbers),
            (density, room),
            4,
            9 * room,
            "0",
            "0",
        )
    yield Configuration(
        "p, in pieces",
        topk_write_pieces,
        (x, "*fp64", b, x, *numbers),
        (density, size.width),
        size.warps,
        size.width,
        "1",
        "1",
    )
    yield from _of_gradient_pieces(size, density, dtype)


def _of_gradient_pieces(size: Tile, density: int, dtype: str) -> Iterator[Configuration]:
    (x, b), numbers = _pointers(dtype), ("i32",) * 4
    for name, (one_entry, by_temperature) in _GRADIENTS.items():
        inputs = (x, "*i64" if one_entry else x, x, "*fp64", b, "*fp64")
        reads = str(2 - one_entry)
        if not by_temperature:
            yield Configuration(
                f"{name} sums, in pieces",
                topk_gradient_pieces,
                (*inputs, *numbers),
                (density, size.width, one_entry),
                size.warps,
                size.width,
                reads,
                "0",
            )
        for room in ROOMS:
            yield Configuration(
                f"{name}, up to {room} pieces",
                topk_write_gradients,
                (*inputs, x, "*fp64", *numbers),
                (density, size.width, one_entry, by_temperature, room),
                size.warps,
                size.width,
                reads,
                "1",
            )

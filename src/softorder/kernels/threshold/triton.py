"""Launches of the Triton top-k: the thresholds, p, and its gradients."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor
from triton.language import float32, float64

from softorder.kernels._density_numbers import COMPILED, NUMBERED
from softorder.kernels._triton import interpreted, launch, per_row, power_of_two, processors
from softorder.kernels._triton_compile import LENGTHS, Configuration
from softorder.kernels.formulas import exact, laid_out
from softorder.kernels.threshold.triton_rows import topk_backward, topk_forward
from softorder.kernels.threshold.triton_split import (
    SUMS,
    topk_gradient_pieces,
    topk_step,
    topk_sweep_pieces,
    topk_write_gradients,
    topk_write_pieces,
)


class Tile(NamedTuple):
    """The scores that a program holds at a time, and how many warps it has."""

    height: int  # rows
    width: int  # scores of each, a power of two
    warps: int

    def programs(self, rows: int) -> int:
        return -(-rows // self.height)


_SHORT = 64  # so many scores: several rows in one program of one warp, which needs no barrier
_LONG = 4096  # so many float32 scores stay in the registers of 8 warps, of float64 a quarter
_SPLIT = 2**15  # rows of so many scores are split, where they are few
_SAMPLE = 4096  # scores of such a row are solved first
_ROOMS = (256, 1024)  # for the sums of the pieces of a row
_ROUNDS = 3  # then so many passes are made; what they leave takes longer


def tile(n: int, wide: bool, density: int, gradient: bool = False, crowded: bool = False) -> Tile:
    """The tile for rows of n scores, of float64 if it is wide. Longer rows than it are streamed.

    `softorder gpu` shows that none of them spills a register. What has few sums has room for more:
    Laplace's p in float32, and the gradients, most of all if not `crowded` by that of τ or by half
    formats. With 16 warps a thread has 128 registers, of which a row of 16,384 takes 32, and its
    upstream as many.
    """
    width, size = max(power_of_two(n), 16), 1 + wide
    if width <= _SHORT:
        return Tile(max(64 // (size * width), 2 // size), width, 1)
    longest = _LONG // size**2
    more = 2 if gradient or (density == 0 and not wide) else 1
    if gradient and not (wide or crowded):
        more = 4
    if longest < width <= more * longest:
        return Tile(1, width, 16)
    width = min(width, longest)
    return Tile(1, width, min(max(width * size // 256, 1), 8))


def forward(
    scores: Tensor, k: Tensor, temperature: Tensor, mask: Tensor | None, density: int
) -> tuple[Tensor, Tensor]:
    """p, and its thresholds: centres and rests, stacked."""
    x = _filled(scores, mask, -torch.inf)
    p = torch.empty_like(x)
    b, _ = _solve(x, k, temperature, density, p)
    return laid_out(p, scores), b


def _filled(value: Tensor, mask: Tensor | None, filler: float) -> Tensor:
    """Without gaps, and with the filler where the mask is False."""
    return (value if mask is None else torch.where(mask, value, filler)).contiguous()


def threshold(
    scores: Tensor, k: Tensor, temperature: Tensor, density: int
) -> tuple[Tensor, Tensor]:
    """Thresholds, and the number of passes that they took."""
    return _solve(scores.contiguous(), k, temperature, density, None)


def _solve(
    x: Tensor, k: Tensor, temperature: Tensor, density: int, p: Tensor | None
) -> tuple[Tensor, Tensor]:
    *shape, n = x.shape
    b = x.new_empty(2, *shape, dtype=exact(x.dtype))
    sweeps = x.new_empty(shape, dtype=torch.int32)
    rows = sweeps.numel()
    if rows == 0 or n == 0:
        return b.fill_(torch.inf), sweeps.zero_()
    k, k_stride = per_row(k, x)
    temperature, temperature_stride = per_row(temperature, x)
    size = _tile(n, rows, b.dtype, density)
    pieces = _pieces(n, rows, size, x.device)
    if pieces > 1:
        problem = Problem(x, k, temperature, k_stride, temperature_stride, density, b, sweeps)
        _solve_in_pieces(problem, pieces, size, p)
        return b, sweeps
    launch(
        topk_forward,
        (size.programs(rows),),
        x.device,
        size.warps,
        x,
        k,
        temperature,
        x if p is None else p,
        b,
        sweeps,
        sweeps,
        rows,
        n,
        k_stride,
        temperature_stride,
        density,
        size.height,
        size.width,
        n > size.width,
        p is not None,
        False,
    )
    return b, sweeps


class Problem(NamedTuple):
    """What is asked of long rows, and where the answer goes."""

    x: Tensor
    k: Tensor
    temperature: Tensor
    k_stride: int
    temperature_stride: int
    density: int
    b: Tensor
    sweeps: Tensor


def _solve_in_pieces(ask: Problem, pieces: int, size: Tile, p: Tensor | None) -> None:
    x, n, rows = ask.x, ask.x.shape[-1], ask.sweeps.numel()
    solved = torch.zeros_like(ask.sweeps)
    sample = x.reshape(rows, n)[:, :: n // _SAMPLE].contiguous()
    share = sample.shape[-1] / n
    start, _ = _solve(sample, ask.k * share, ask.temperature, ask.density, None)
    place = start.double()
    ask.sweeps.fill_(1)  # the sample, and the step from it
    sums = x.new_empty(rows, SUMS.value, pieces, dtype=torch.float64)
    piece = _piece(n, pieces, size)
    exact = float64 if ask.b.dtype is torch.float64 else float32
    for _ in range(_ROUNDS):
        launch(
            topk_sweep_pieces,
            (rows, pieces),
            x.device,
            size.warps,
            x,
            ask.temperature,
            place,
            solved,
            sums,
            rows,
            n,
            piece,
            ask.temperature_stride,
            exact,
            ask.density,
            size.width,
        )
        launch(
            topk_step,
            (rows,),
            x.device,
            4,
            sums,
            ask.k,
            ask.temperature,
            place,
            solved,
            ask.b,
            ask.sweeps,
            rows,
            n,
            pieces,
            ask.k_stride,
            ask.temperature_stride,
            ask.density,
            _room(pieces),
        )
    launch(
        topk_forward,
        (rows,),
        x.device,
        size.warps,
        x,
        ask.k,
        ask.temperature,
        x,
        ask.b,
        ask.sweeps,
        solved,
        rows,
        n,
        ask.k_stride,
        ask.temperature_stride,
        ask.density,
        1,
        size.width,
        True,
        False,
        True,
    )
    if p is not None:
        launch(
            topk_write_pieces,
            (rows, pieces),
            x.device,
            size.warps,
            x,
            ask.temperature,
            ask.b,
            p,
            rows,
            n,
            piece,
            ask.temperature_stride,
            ask.density,
            size.width,
        )


def backward(
    upstream: Tensor,
    scores: Tensor,
    temperature: Tensor,
    b: Tensor,
    mask: Tensor | None,
    density: int,
    by_temperature: bool,
    index: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Gradients of the scores; and per row of k, and of temperature if wanted, stacked.

    With an index (int64, one per row), upstream is 0 everywhere else: one number per row.
    """
    *shape, n = scores.shape
    x = _filled(scores, mask, -torch.inf)
    v = _filled(upstream.to(scores.dtype), mask if index is None else None, 0.0)
    by_scores = torch.empty_like(x)
    by_row = x.new_empty(1 + by_temperature, *shape, dtype=torch.float64)
    rows = b.numel() // 2
    if rows == 0 or n == 0:
        return laid_out(by_scores, scores), by_row.zero_()
    temperature, stride = per_row(temperature, x)
    crowded = by_temperature or x.element_size() < 4
    size = _tile(n, rows, b.dtype, density, True, crowded)
    pieces = _pieces(n, rows, size, x.device)
    if pieces > 1:
        inputs = (v, x if index is None else index.contiguous(), x, temperature, b.contiguous())
        sums = x.new_empty(rows, 4, pieces, dtype=torch.float64)
        numbers = (rows, n, _piece(n, pieces, size), stride, density, size.width, index is not None)
        grid = (rows, pieces)
        launch(topk_gradient_pieces, grid, x.device, size.warps, *inputs, sums, *numbers)
        outputs = (sums, by_scores, by_row)
        rest = (by_temperature, _room(pieces))
        launch(topk_write_gradients, grid, x.device, size.warps, *inputs, *outputs, *numbers, *rest)
        return laid_out(by_scores, scores), by_row
    launch(
        topk_backward,
        (size.programs(rows),),
        x.device,
        size.warps,
        v,
        x if index is None else index.contiguous(),
        x,
        temperature,
        b.contiguous(),
        by_scores,
        by_row,
        rows,
        n,
        stride,
        density,
        size.height,
        size.width,
        n > size.width,
        index is not None,
        by_temperature,
    )
    return laid_out(by_scores, scores), by_row


def _pieces(n: int, rows: int, size: Tile, device: torch.device) -> int:
    """How many programs share a row: more than one where the rows are long and few."""
    busy = processors(device)
    if n < _SPLIT or rows >= busy:
        return 1
    return min(2 * busy // rows, -(-n // (2 * size.width)), _ROOMS[-1])


def _room(pieces: int) -> int:
    """For the sums of so many pieces. Two sizes are enough: every other one is compiled anew."""
    return next(size for size in _ROOMS if pieces <= size)


def _piece(n: int, pieces: int, size: Tile) -> int:
    return -(-n // (pieces * size.width)) * size.width


def _tile(
    n: int,
    rows: int,
    dtype: torch.dtype,
    density: int,
    gradient: bool = False,
    crowded: bool = False,
) -> Tile:
    size = tile(n, dtype is torch.float64, density, gradient, crowded)
    if interpreted():  # there a program takes its time, whatever its size
        most = max(2**16 // size.width, 1)
        return size._replace(height=min(power_of_two(rows), most) if n < _SPLIT else 1)
    return size


# ---- what may be launched -----------------------------------------------------------------------


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
    if max(lengths) >= _SPLIT:
        yield from _of_pieces(tile(_SPLIT, wide, density), density, dtype)


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
    for room in _ROOMS:
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
        for room in _ROOMS:
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

"""Launches of the Triton F-sums and of their roots, for the densities with a linear algorithm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from softorder.kernels._triton import interpreted, launch, per_row, power_of_two, processors
from softorder.kernels._triton_compile import LENGTHS, Configuration, of_densities
from softorder.kernels.formulas import beside, factor_for, multiplied
from softorder.kernels.fsum import reference
from softorder.kernels.fsum.triton_laplace import (
    laplace_at_targets,
    laplace_pieces,
    laplace_roots,
    laplace_scan,
)
from softorder.kernels.fsum.triton_uniform import uniform_at_targets, uniform_roots, uniform_tree

_LAPLACE = 0
_SPLIT = 2**15  # rows of so many sources are split, where they are few
_INTERPRETED = 2**13  # entries of a tile there, where a program takes its time, whatever its size


class Tile(NamedTuple):
    """The entries that a program holds at a time, and how many warps it has."""

    height: int  # rows
    width: int  # entries of each, a power of two
    warps: int

    def grid(self, rows: int, n: int) -> tuple[int, int]:
        return -(-rows // self.height), -(-n // self.width)


def tile(n: int, most: int) -> Tile:
    """Short rows share a program of one warp; of longer ones it takes `most` entries at a time."""
    width = min(max(power_of_two(n), 16), most)
    return Tile(max(64 // width, 1), width, min(max(width // 128, 1), 8))


def sized(rows: int, n: int, most: int) -> Tile:
    """The same; where they are interpreted, one that takes many rows."""
    if not interpreted():
        return tile(n, most)
    width = min(max(power_of_two(n), 16), _INTERPRETED)
    height = power_of_two(rows) if n <= width else 1
    return Tile(min(height, _INTERPRETED // width), width, 1)


#: so many for each kernel: more would spill registers, see `softorder gpu`
_SCAN, _SCAN_MOMENTS, _TREE, _AT_TARGETS = 512, 256, 512, 512


def fsum(
    sources: Tensor,
    source_rest: Tensor | None,
    targets: Tensor,
    target_rest: Tensor | None,
    weights: Tensor | None,
    temperature: Tensor,
    source_count: Tensor | None,
    target_count: Tensor | None,
    density: int,
    derivative: int,
    moment: int,
) -> Tensor:
    """The sum at every target. What few ask for is served by plain torch: second moments, which
    only the second derivative by temperature has, and weighted sums of F itself.
    """
    rows = sources.shape[:-1].numel()
    if moment > 1 or (derivative == 0 and weights is not None):
        return reference.fsum(
            sources,
            source_rest,
            targets,
            target_rest,
            weights,
            temperature,
            source_count,
            target_count,
            density,
            derivative,
            moment,
        )
    if rows == 0 or sources.shape[-1] == 0 or targets.shape[-1] == 0:
        return torch.zeros_like(targets)
    if density != _LAPLACE and derivative > 1:
        return torch.zeros_like(targets)
    x = Sources.of(sources, source_rest, weights, temperature, source_count)
    t = Targets.of(targets, target_rest, target_count, x)
    if density != _LAPLACE:
        needs_tree = weights is not None or derivative == 0 or moment == 1
        tree = _tree(x) if needs_tree else x.x.new_empty(1, dtype=torch.float64)
        return _uniform_at(x, t, tree, derivative, moment, x.x.new_empty(t.t.shape))
    same = _same(sources, targets) and _same(source_rest, target_rest)
    if same and _same(source_count, target_count) and derivative != 2:
        out = (torch.empty_like if source_count is None else torch.zeros_like)(x.x)
        _laplace_scan(x, moment, derivative, out)
        return out
    return _laplace_at(x, t, _laplace_scan(x, moment), derivative, moment)


def invert(
    sources: Tensor, levels: Tensor, temperature: Tensor, count: Tensor | None, density: int
) -> tuple[Tensor, Tensor]:
    """centre and rest of the root of every level."""
    shape = levels.shape
    if sources.shape[-1] == 0 or levels.numel() == 0:
        return reference.invert(sources, levels, temperature, count, density)
    factor = factor_of(sources, count)
    sources, temperature = factor * sources, multiplied(temperature, factor)
    x = Sources.of(sources, None, None, temperature, count)
    centre, rest = (sources.new_empty(shape) for _ in range(2))
    if density == _LAPLACE:
        laplace_roots_of(x, levels, centre, rest)
    else:
        _uniform_roots(x, levels, centre, rest)
    return centre / factor, rest / factor


def factor_of(sources: Tensor, count: Tensor | None) -> Tensor:
    """What sorted sources and τ are multiplied by, as in the reference; mostly ones, a column."""
    last = sources[..., -1:]
    if count is not None:
        taken = beside(count, sources).expand(last.shape[:-1]).unsqueeze(-1)
        last = sources.gather(-1, (taken - 1).clamp(min=0))
    factor = factor_for(torch.maximum(sources[..., :1].abs(), last.abs()))
    return torch.ones_like(last) if factor is None else factor


class Sources(NamedTuple):
    """Sorted rows of sources, dense; what is missing is said, and its tensor is some other."""

    x: Tensor
    rest: Tensor
    weights: Tensor
    temperature: Tensor
    taken: Tensor  # how many count
    temperature_stride: int
    count_stride: int
    has_rest: bool
    weighted: bool
    counted: bool

    @staticmethod
    def of(
        sources: Tensor,
        rest: Tensor | None,
        weights: Tensor | None,
        temperature: Tensor,
        count: Tensor | None,
    ) -> Sources:
        x = sources.contiguous()
        heat, heat_stride = per_row(temperature, x)
        taken, taken_stride = (heat, 0) if count is None else per_row(count, x)
        return Sources(
            x,
            x if rest is None else rest.contiguous(),
            x if weights is None else weights.contiguous(),
            heat,
            taken,
            heat_stride,
            taken_stride,
            rest is not None,
            weights is not None,
            count is not None,
        )

    @property
    def rows(self) -> int:
        return self.x.numel() // self.m

    @property
    def m(self) -> int:
        return self.x.shape[-1]

    @property
    def steps(self) -> int:
        """Halvings of a search among them."""
        return self.m.bit_length()

    def sized(self, n: int, most: int) -> Tile:
        return sized(self.rows, n, most)


class Targets(NamedTuple):
    """Sorted rows of targets, likewise."""

    t: Tensor
    rest: Tensor
    taken: Tensor  # how many are wanted
    count_stride: int
    has_rest: bool
    counted: bool

    @staticmethod
    def of(targets: Tensor, rest: Tensor | None, count: Tensor | None, x: Sources) -> Targets:
        t = targets.contiguous()
        taken, stride = (x.temperature, 0) if count is None else per_row(count, x.x)
        beside = t if rest is None else rest.contiguous()
        return Targets(t, beside, taken, stride, rest is not None, count is not None)

    @property
    def n(self) -> int:
        return self.t.shape[-1]


def _same(a: Tensor | None, b: Tensor | None) -> bool:
    """Whether two tensors are the same memory seen in the same way."""
    if a is None or b is None:
        return a is b
    return a.is_set_to(b)


# ---- laplace ------------------------------------------------------------------------------------


def _laplace_scan(
    x: Sources, moment: int, derivative: int = 0, answers: Tensor | None = None
) -> Tensor:
    """The sums along the sources; or what they are at the sources, into `answers`."""
    size = x.sized(x.m, _SCAN_MOMENTS if moment else _SCAN)
    pieces = pieces_of(x.rows, x.m, size, x.x.device)
    streamed = x.m > size.width
    piece = x.m if pieces == 1 else _piece(x.m, pieces, size)
    none = x.x.new_empty(1, dtype=torch.float64)
    inputs = x.x, x.rest, x.weights, x.temperature, x.taken
    strides = x.temperature_stride, x.count_stride
    given = x.has_rest, x.weighted, x.counted
    piece_sums = none
    if pieces > 1:
        piece_sums = none.new_empty(x.rows, 4, pieces)
        numbers = x.m, piece, *strides, moment, *given, size.width
        grid = (x.rows, pieces)
        launch(laplace_pieces, grid, x.x.device, size.warps, *inputs, piece_sums, *numbers)
    planes = 2 * (1 + moment)
    keeps = streamed or answers is None
    sums = none.new_empty(planes, x.rows, x.m) if keeps else none
    launch(
        laplace_scan,
        (size.grid(x.rows, x.m)[0], pieces),
        x.x.device,
        size.warps,
        *inputs,
        piece_sums,
        sums,
        none if answers is None else answers,
        x.rows,
        x.m,
        piece,
        *strides,
        derivative,
        moment,
        *given,
        answers is not None,
        size.height,
        size.width,
        streamed,
        power_of_two(pieces),
    )
    return sums


def pieces_of(rows: int, m: int, size: Tile, device: torch.device) -> int:
    """How many programs share a row: more than one where the rows are long and few."""
    busy = processors(device)
    if m < _SPLIT or rows >= busy:
        return 1
    return min(2 * busy // rows, -(-m // (2 * size.width)), 1024)


def _piece(m: int, pieces: int, size: Tile) -> int:
    return -(-m // (pieces * size.width)) * size.width


def _laplace_at(x: Sources, t: Targets, sums: Tensor, derivative: int, moment: int) -> Tensor:
    out = torch.empty_like(t.t)
    size = x.sized(t.n, _AT_TARGETS)
    launch(
        laplace_at_targets,
        size.grid(x.rows, t.n),
        x.x.device,
        size.warps,
        x.x,
        x.rest,
        t.t,
        t.rest,
        sums,
        x.temperature,
        x.taken,
        t.taken,
        out,
        x.rows,
        x.m,
        t.n,
        x.steps,
        x.temperature_stride,
        x.count_stride,
        t.count_stride,
        derivative,
        moment,
        x.has_rest,
        t.has_rest,
        x.counted,
        t.counted,
        size.height,
        size.width,
    )
    return out


def laplace_roots_of(
    x: Sources,
    levels: Tensor,
    centre: Tensor,
    rest: Tensor,
    segment: Tensor | None = None,
    slope: Tensor | None = None,
) -> None:
    """Writes the roots; and if asked, how many sources are below them, and the slopes there."""
    sums, n = _laplace_scan(x, 0), levels.shape[-1]
    levels, stride = _levels(levels, x)
    size = x.sized(n, _AT_TARGETS)
    launch(
        laplace_roots,
        size.grid(x.rows, n),
        x.x.device,
        size.warps,
        x.x,
        sums,
        levels,
        x.temperature,
        x.taken,
        centre,
        rest,
        centre if segment is None else segment,
        centre if slope is None else slope,
        x.rows,
        x.m,
        n,
        x.steps,
        stride,
        x.temperature_stride,
        x.count_stride,
        x.counted,
        segment is not None,
        size.height,
        size.width,
    )


def _levels(levels: Tensor, x: Sources) -> tuple[Tensor, int]:
    """One row of levels for all, where it was expanded, or one for each; and the stride."""
    n, levels = levels.shape[-1], levels.to(x.x.device)
    if any(levels.stride()[:-1]):
        return levels.contiguous(), n
    return levels[(0,) * (levels.dim() - 1)].contiguous(), 0


# ---- uniform ------------------------------------------------------------------------------------


def _tree(x: Sources) -> Tensor:
    """Sums over aligned ranges of sources; see triton_uniform.py."""
    size = _tree_size(x)
    tree = x.x.new_empty(2, x.rows, 2 * size, dtype=torch.float64)
    levels = size.bit_length() - 1
    level = 0
    while level < levels:
        nodes = size >> level
        shape = x.sized(nodes, _TREE)
        higher = shape.width.bit_length() - 1
        launch(
            uniform_tree,
            shape.grid(x.rows, nodes),
            x.x.device,
            shape.warps,
            x.x,
            x.rest,
            x.weights,
            x.temperature,
            x.taken,
            tree,
            x.rows,
            x.m,
            size,
            level,
            min(higher, levels - level),
            x.temperature_stride,
            x.count_stride,
            x.has_rest,
            x.weighted,
            x.counted,
            level == 0,
            shape.height,
            shape.width,
        )
        level += higher
    return tree


def _tree_size(x: Sources) -> int:
    return max(power_of_two(x.m), 16)


def _uniform_at(
    x: Sources,
    t: Targets,
    tree: Tensor,
    derivative: int,
    moment: int,
    out: Tensor,
    shift: float = 0.0,
) -> Tensor:
    size = x.sized(t.n, _AT_TARGETS)
    launch(
        uniform_at_targets,
        size.grid(x.rows, t.n),
        x.x.device,
        size.warps,
        x.x,
        x.rest,
        t.t,
        t.rest,
        tree,
        x.temperature,
        x.taken,
        t.taken,
        out,
        x.rows,
        x.m,
        t.n,
        _tree_size(x),
        _tree_size(x).bit_length(),
        shift,
        x.temperature_stride,
        x.count_stride,
        t.count_stride,
        derivative,
        moment,
        x.has_rest,
        t.has_rest,
        x.weighted,
        x.counted,
        t.counted,
        size.height,
        size.width,
    )
    return out


def _uniform_roots(x: Sources, levels: Tensor, centre: Tensor, rest: Tensor) -> None:
    tree, n = _tree(x), levels.shape[-1]
    t = Targets(x.x, x.x, x.taken, x.count_stride, False, x.counted)
    ends, begins = (
        _uniform_at(x, t, tree, 0, 0, x.x.new_empty(x.x.shape, dtype=torch.float64), side)
        for side in (0.5, -0.5)
    )
    levels, stride = _levels(levels, x)
    size = x.sized(n, _AT_TARGETS)
    launch(
        uniform_roots,
        size.grid(x.rows, n),
        x.x.device,
        size.warps,
        x.x,
        tree,
        ends,
        begins,
        levels,
        x.temperature,
        x.taken,
        centre,
        rest,
        x.rows,
        x.m,
        n,
        _tree_size(x),
        _tree_size(x).bit_length(),
        stride,
        x.temperature_stride,
        x.count_stride,
        x.counted,
        size.height,
        size.width,
    )


# ---- what may be launched -----------------------------------------------------------------------

_WIDTHS = (16, 64, 256, 512, 1024, 10**6)
_MOST_PIECES = 256


def configurations(dtype: str, lengths: Sequence[int] = LENGTHS) -> Iterator[Configuration]:
    """Every way in which the kernels are launched for rows of these lengths."""
    return of_densities(_of_density, dtype, lengths)


def _of_density(density: int, wide: bool, widths: Sequence[int]) -> Iterator[Configuration]:
    """The ways in which the kernels are launched for rows of any length, with all they may be given
    and, where that makes another kernel, without.
    """
    if density == _LAPLACE:
        yield from _laplace_configurations(wide, widths)
    elif density == 4:
        yield from _uniform_configurations(wide, widths)


def _laplace_configurations(wide: bool, widths: Sequence[int]) -> Iterator[Configuration]:
    x, number = "*fp64" if wide else "*fp32", "i32"
    scan = x, x, x, "*fp64", "*i64", "*fp64", "*fp64", x, *(number,) * 5
    for name, derivative, moment, given, answers in (
        ("ranks", 0, 0, False, True),
        ("gradient of ranks", 1, 0, True, True),
        ("sums along sources", 0, 0, False, False),
        ("moments along sources", 1, 1, True, False),
    ):
        sizes = ((tile(n, _SCAN_MOMENTS if moment else _SCAN), n) for n in widths)
        for size, streamed in dict.fromkeys((size, n > size.width) for size, n in sizes):
            length = "more" if streamed else size.width
            for pieces in (1, _MOST_PIECES) if streamed else (1,):
                constants: tuple[Any, ...] = derivative, moment, given and not answers, given, True
                yield Configuration(
                    f"{name}, {length} scores{', in pieces' if pieces > 1 else ''}",
                    laplace_scan,
                    scan,
                    (*constants, answers, size.height, size.width, streamed, pieces),
                    size.warps,
                    size.height * size.width,
                    str(2 * (1 + streamed) * (1 + given)),
                    "1" if answers and not streamed else "2",
                )
    if max(widths) >= _SPLIT:
        size = tile(_SPLIT, _SCAN_MOMENTS)
        yield Configuration(
            "moments of pieces",
            laplace_pieces,
            (x, x, x, "*fp64", "*i64", "*fp64", *(number,) * 4),
            (1, True, True, True, size.width),
            size.warps,
            size.width,
            "3",
            "0",
        )
    for size in dict.fromkeys(tile(n, _AT_TARGETS) for n in widths):
        held = size.height * size.width
        yield Configuration(
            f"moments at targets, {size.width} scores",
            laplace_at_targets,
            (x, x, x, x, "*fp64", "*fp64", "*i64", "*i64", x, *(number,) * 7),
            (2, 1, True, True, True, True, size.height, size.width),
            size.warps,
            held,
            "searches",
            "1",
        )
        yield Configuration(
            f"roots, {size.width} levels",
            laplace_roots,
            (x, *("*fp64",) * 3, "*i64", x, x, "*i32", x, *(number,) * 7),
            (True, True, size.height, size.width),
            size.warps,
            held,
            "a search",
            "2",
        )


def _uniform_configurations(wide: bool, widths: Sequence[int]) -> Iterator[Configuration]:
    x, number = "*fp64" if wide else "*fp32", "i32"
    for size in dict.fromkeys(tile(n, _TREE) for n in widths):
        for leaves in (True, False):
            yield Configuration(
                f"tree over {size.width} {'scores' if leaves else 'nodes'}",
                uniform_tree,
                (x, x, x, "*fp64", "*i64", "*fp64", *(number,) * 7),
                (True, True, True, leaves, size.height, size.width),
                size.warps,
                size.height * size.width,
                "3",
                "4",
            )
    for size in dict.fromkeys(tile(n, _AT_TARGETS) for n in widths):
        held = size.height * size.width
        at = x, x, x, x, "*fp64", "*fp64", "*i64", "*i64"
        for name, derivative, moment, given in (
            ("ranks", 0, 0, False),
            ("moments at targets", 1, 1, True),
        ):
            yield Configuration(
                f"{name}, {size.width} scores",
                uniform_at_targets,
                (*at, x, *(number,) * 5, "fp32", *(number,) * 3),
                (derivative, moment, *(given,) * 3, True, True, size.height, size.width),
                size.warps,
                held,
                "searches",
                "1",
            )
        yield Configuration(
            f"roots, {size.width} levels",
            uniform_roots,
            (x, *("*fp64",) * 5, "*i64", x, x, *(number,) * 8),
            (True, size.height, size.width),
            size.warps,
            held,
            "searches",
            "2",
        )

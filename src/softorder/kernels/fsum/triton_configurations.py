"""The ways in which the Triton F-sums are launched, to be compiled where there is no GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from softorder.kernels._triton_compile import LENGTHS, Configuration, of_densities
from softorder.kernels.fsum.triton_given import AT_TARGETS, SCAN, SCAN_MOMENTS, SPLIT, TREE, tile
from softorder.kernels.fsum.triton_laplace import (
    laplace_at_targets,
    laplace_pieces,
    laplace_roots,
    laplace_scan,
)
from softorder.kernels.fsum.triton_uniform import uniform_at_targets, uniform_roots, uniform_tree

_LAPLACE, _UNIFORM = 0, 4
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
    elif density == _UNIFORM:
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
        sizes = ((tile(n, SCAN_MOMENTS if moment else SCAN), n) for n in widths)
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
    if max(widths) >= SPLIT:
        size = tile(SPLIT, SCAN_MOMENTS)
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
    for size in dict.fromkeys(tile(n, AT_TARGETS) for n in widths):
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
    for size in dict.fromkeys(tile(n, TREE) for n in widths):
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
    for size in dict.fromkeys(tile(n, AT_TARGETS) for n in widths):
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

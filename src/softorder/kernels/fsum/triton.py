"""Launches of the Triton F-sums and of their roots, for the densities with a linear algorithm."""

from __future__ import annotations

import torch
from torch import Tensor

from softorder.kernels._triton import launch, power_of_two
from softorder.kernels.formulas import beside, factor_for, multiplied
from softorder.kernels.fsum import reference
from softorder.kernels.fsum.triton_configurations import configurations
from softorder.kernels.fsum.triton_given import (
    AT_TARGETS,
    SCAN,
    SCAN_MOMENTS,
    TREE,
    Sources,
    Targets,
    levels_of,
    piece_of,
    pieces_of,
    same,
)
from softorder.kernels.fsum.triton_laplace import (
    laplace_at_targets,
    laplace_pieces,
    laplace_roots,
    laplace_scan,
)
from softorder.kernels.fsum.triton_uniform import uniform_at_targets, uniform_roots, uniform_tree

__all__ = ["configurations", "factor_of", "fsum", "invert", "laplace_roots_of"]

_LAPLACE = 0


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
    alike = same(sources, targets) and same(source_rest, target_rest)
    if alike and same(source_count, target_count) and derivative != 2:
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


# ---- laplace ------------------------------------------------------------------------------------


def _laplace_scan(
    x: Sources, moment: int, derivative: int = 0, answers: Tensor | None = None
) -> Tensor:
    """The sums along the sources; or what they are at the sources, into `answers`."""
    size = x.sized(x.m, SCAN_MOMENTS if moment else SCAN)
    pieces = pieces_of(x.rows, x.m, size, x.x.device)
    streamed = x.m > size.width
    piece = x.m if pieces == 1 else piece_of(x.m, pieces, size)
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


def _laplace_at(x: Sources, t: Targets, sums: Tensor, derivative: int, moment: int) -> Tensor:
    out = torch.empty_like(t.t)
    size = x.sized(t.n, AT_TARGETS)
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
    levels, stride = levels_of(levels, x)
    size = x.sized(n, AT_TARGETS)
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


# ---- uniform ------------------------------------------------------------------------------------


def _tree(x: Sources) -> Tensor:
    """Sums over aligned ranges of sources; see triton_uniform.py."""
    size = _tree_size(x)
    tree = x.x.new_empty(2, x.rows, 2 * size, dtype=torch.float64)
    levels = size.bit_length() - 1
    level = 0
    while level < levels:
        nodes = size >> level
        shape = x.sized(nodes, TREE)
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
    size = x.sized(t.n, AT_TARGETS)
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
    levels, stride = levels_of(levels, x)
    size = x.sized(n, AT_TARGETS)
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

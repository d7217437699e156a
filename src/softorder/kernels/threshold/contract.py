"""The threshold b of a soft top-k: Σ_i F((x_i - b)/τ) = k over the last axis.

Contract. `scores` is float32 or float64, with any number of leading axes, the rows; `k` and
`temperature` are float64 and broadcast over the rows. The threshold comes as an unevaluated sum
b = centre + rest in the dtype of the scores, so that scores - centre is exact near b: a row near
10^6 with τ = 10^-6 needs it. The operators stack the two, (2, rows).

p and its gradients are there for float16 and bfloat16 too, with thresholds in float32, and results
are laid out in memory like the scores. A `mask`, boolean, broadcasts to the scores: where it is
False a score counts as -inf and the upstream as 0, whatever they are.

Rows whose threshold is not a finite number:

    k <= 0                           centre = +inf, rest = +inf       every p is 0
    k >= number of scores > -inf     centre = -inf, rest = 0          these p are 1
    exactly k scores are +inf        centre = +inf, rest = -inf       these p are 1
    m > k scores are +inf            centre = +inf, rest = -τ F⁻¹(k/m)  these p are k/m
    a score is NaN                   centre = NaN

A score of -inf always gets p = 0, and no gradient passes where the centre is not finite.

Finite scores may be as large as they like: only u = (x - b)/τ counts. b may be beyond the largest
number, which is what the rest is for then; a u that is beyond it is infinite, so that p is 0 or 1,
log p is -inf or 0, and no gradient passes.

The operators `softorder::threshold`, `softorder::soft_topk_forward` and `..._backward` are not
differentiable: relaxations/threshold.py is.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from softorder import _axis, _check
from softorder._check import PerRow
from softorder.densities import BUILT_IN, Density, UserDensity
from softorder.kernels import _native, _triton
from softorder.kernels._density_numbers import COMPILED, NUMBERED, number_of
from softorder.kernels._operators import Operator, in_front, library
from softorder.kernels.formulas import exact
from softorder.kernels.threshold import cpu, reference

_gpu = _triton.Module("softorder.kernels.threshold.triton")


class Threshold(NamedTuple):
    """b = centre + rest of every row, the two stacked, and how many passes over the row it took."""

    b: Tensor
    sweeps: Tensor

    @property
    def centre(self) -> Tensor:
        return self.b[0]

    @property
    def rest(self) -> Tensor:
        return self.b[1]


def solve(scores: Tensor, k: Tensor, temperature: Tensor, density: str | Density) -> Threshold:
    """The threshold of every row, by whichever kernel serves the device."""
    if isinstance(density, str):
        density = BUILT_IN[density]
    elif density not in NUMBERED and not isinstance(density, UserDensity):
        density = UserDensity(density)
    scores, k, temperature = scores.detach(), k.detach(), temperature.detach()
    return Threshold(*_solve(scores, k, temperature, number_of(density)))


def topk(
    scores: Tensor,
    k: PerRow,
    temperature: PerRow,
    mask: Tensor | None,
    density: int,
    dim: int = -1,
) -> Tensor:
    """p alone, along any axis; in eager mode."""
    if _compiled(density, scores, k, temperature, mask):
        return cpu.topk(scores, k, temperature, mask, density, dim)
    return _along(scores, k, temperature, mask, density, dim)[0]


def forward(
    scores: Tensor, k: PerRow, temperature: PerRow, mask: Tensor | None, density: int
) -> tuple[Tensor, Tensor]:
    """p and its threshold."""
    k, temperature = _axis.per_rows(k, temperature, scores)
    found: tuple[Tensor, Tensor] = _forward(scores, k, temperature, mask, density)
    return found


def remembered(
    scores: Tensor,
    k: PerRow,
    temperature: PerRow,
    mask: Tensor | None,
    density: int,
    dim: int = -1,
) -> tuple[Tensor, Tensor | cpu.Numbers]:
    """The same, for `backward_of_scores` and `thresholds`: the threshold need not be a tensor."""
    if _compiled(density, scores, k, temperature, mask):
        return cpu.remembered(scores, k, temperature, mask, density, dim)
    return _along(scores, k, temperature, mask, density, dim)


def _along(
    scores: Tensor, k: PerRow, temperature: PerRow, mask: Tensor | None, density: int, dim: int
) -> tuple[Tensor, Tensor]:
    """p along any axis, and its threshold."""
    x, own = _axis.last(scores, dim), _axis.beside(mask, scores, dim)
    p, b = forward(x, k, temperature, own, density)
    return _axis.back(p, scores, dim), b


def thresholds(b: Tensor | cpu.Numbers, scores: Tensor) -> Tensor:
    """What was remembered, as a tensor."""
    if isinstance(b, Tensor):
        return b
    return torch.frombuffer(b, dtype=exact(scores.dtype)).view(2, *scores.shape[:-1])


def backward(
    upstream: Tensor,
    scores: Tensor,
    temperature: PerRow,
    b: Tensor,
    mask: Tensor | None,
    density: int,
    by_temperature: bool,
) -> tuple[Tensor, Tensor]:
    """Gradients of the scores; and per row of k, and of temperature if wanted."""
    _check.dense("the gradient", upstream)
    temperature = _axis.per_row(temperature, scores)
    found: tuple[Tensor, Tensor] = _backward(
        upstream, scores, temperature, b, mask, density, by_temperature
    )
    return found


def backward_of_scores(
    upstream: Tensor,
    scores: Tensor,
    temperature: PerRow,
    b: Tensor | cpu.Numbers,
    mask: Tensor | None,
    density: int,
    dim: int = -1,
) -> Tensor:
    """Gradients of the scores alone."""
    _check.dense("the gradient", upstream)
    if (
        not isinstance(b, Tensor)
        and _check.eager()
        and _compiled(density, upstream, scores, temperature, mask)
    ):
        return cpu.backward_of_scores(upstream, scores, temperature, b, mask, density, dim)
    x, v = _axis.last(scores, dim), _axis.last(upstream, dim)
    b, own = thresholds(b, x), _axis.beside(mask, scores, dim)
    by_scores, _ = backward(v, x, temperature, b, own, density, by_temperature=False)
    return _axis.back(by_scores, scores, dim)


def backward_of_one(
    weight: Tensor,
    index: Tensor,
    scores: Tensor,
    temperature: Tensor,
    b: Tensor,
    density: int,
    by_temperature: bool,
) -> tuple[Tensor, Tensor]:
    """The same where the upstream of a row (rows, n) is `weight` at `index` and 0 elsewhere."""
    weight = weight.to(scores.dtype)
    if (
        _native.enabled()
        and density < COMPILED
        and _check.plain(weight, index, scores, temperature, b)
    ):
        return cpu.backward(weight, scores, temperature, b, None, density, by_temperature, index)
    if density < COMPILED and _check.eager() and _triton.serves(scores):
        return _gpu.backward(weight, scores, temperature, b, None, density, by_temperature, index)
    upstream = torch.zeros_like(scores)
    upstream.scatter_(-1, index.unsqueeze(-1), weight.unsqueeze(-1))
    return backward(upstream, scores, temperature, b, None, density, by_temperature)


def _compiled(density: int, *values: PerRow | None) -> bool:
    """Whether the compiled kernel may be called with these at once, in eager mode.

    Beside what an operator would do, it leaves out what nobody asks for, and a number that serves
    all rows need not be a tensor: a small call takes three quarters of the time.
    """
    return density < COMPILED and _native.kind() == "native" and _check.plain(*values)


# ---- the operators ------------------------------------------------------------------------------


def _fake_threshold(
    scores: Tensor, k: Tensor, temperature: Tensor, density: int
) -> tuple[Tensor, Tensor]:
    rows = scores.shape[:-1]
    return scores.new_empty((2, *rows)), scores.new_empty(rows, dtype=torch.int32)


def _fake_forward(
    scores: Tensor, k: Tensor, temperature: Tensor, mask: Tensor | None, density: int
) -> tuple[Tensor, Tensor]:
    b = scores.new_empty((2, *scores.shape[:-1]), dtype=exact(scores.dtype))
    return torch.empty_like(scores), b


def _fake_backward(
    upstream: Tensor,
    scores: Tensor,
    temperature: Tensor,
    b: Tensor,
    mask: Tensor | None,
    density: int,
    by_temperature: bool,
) -> tuple[Tensor, Tensor]:
    by_row = (1 + by_temperature, *b.shape[1:])
    return torch.empty_like(scores), b.new_empty(by_row, dtype=torch.float64)


_solve = Operator(
    "threshold(Tensor scores, Tensor k, Tensor temperature, int density)"
    " -> (Tensor b, Tensor sweeps)",
    reference=reference.solve,
    cpu=cpu.threshold,
    triton=_gpu.threshold,
    compiled=lambda scores, k, temperature, density: density < COMPILED,
    fake=_fake_threshold,
)
_forward = Operator(
    "soft_topk_forward(Tensor scores, Tensor k, Tensor temperature, Tensor? mask, int density)"
    " -> (Tensor p, Tensor b)",
    reference=reference.forward,
    cpu=cpu.forward,
    triton=_gpu.forward,
    compiled=lambda scores, k, temperature, mask, density: density < COMPILED,
    fake=_fake_forward,
)
_backward = Operator(
    "soft_topk_backward(Tensor upstream, Tensor scores, Tensor temperature, Tensor b, Tensor? mask,"
    " int density, bool by_temperature) -> (Tensor grad_scores, Tensor grad_k_and_temperature)",
    reference=reference.backward,
    cpu=cpu.backward,
    triton=_gpu.backward,
    compiled=lambda upstream, scores, temperature, b, mask, density, _: density < COMPILED,
    fake=_fake_backward,
)


# ---- vmap ---------------------------------------------------------------------------------------


@torch.library.register_vmap("softorder::threshold", lib=library)
def _(
    info: object, in_dims: tuple, scores: Tensor, k: Tensor, temperature: Tensor, density: int
) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
    axes = scores.dim() - 1 - (in_dims[0] is not None)
    k, temperature = (
        in_front(v, d, axes) for v, d in zip((k, temperature), in_dims[1:], strict=False)
    )
    scores = in_front(scores, in_dims[0], axes + 1)
    batch = torch.broadcast_shapes(*(v.shape[:1] for v in (scores, k, temperature)))
    scores = scores.expand(*batch, *scores.shape[1:])
    return torch.ops.softorder.threshold(scores, k, temperature, density), (1, 0)

"""What kernels and methods share: 1/τ, u = (x - b)/τ, and the gradients of p = F(u)."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from softorder import _check
from softorder.kernels import _native


def at_hand(*values: Tensor) -> bool:
    """`_check.at_hand`, but not where the CPU stands for a GPU, whose paths tests want to see."""
    return _check.at_hand(*values) and _native.kind() != "triton"


def exact(dtype: torch.dtype) -> torch.dtype:
    """What thresholds are kept in, and what is computed in."""
    return torch.float64 if dtype is torch.float64 else torch.float32


def laid_out(result: Tensor, like: Tensor) -> Tensor:
    """A result in the dtype of another tensor and where torch.empty_like would put it."""
    empty = torch.empty_like(like)
    if result.dtype == empty.dtype and result.stride() == empty.stride():
        return result
    return empty.copy_(result)


def distance(scores: Tensor, b: Tensor, temperature: Tensor) -> Tensor:
    """u = (x - b)/τ, in a new tensor."""
    centre, rest = b.unsqueeze(-1).unbind()
    scale = scale_of(temperature, scores.dtype)
    if at_hand(b) and _all_near(b):
        return (scores - centre).sub_(rest).mul_(scale)
    return exact_distance(scores, centre, rest, scale)


def far_from(dtype: torch.dtype) -> float:
    """Less than half of the last digit of the largest number: it never makes a sum overflow."""
    limits = torch.finfo(dtype)
    return limits.max * limits.eps / 8


def _all_near(b: Tensor) -> bool:
    """Whether all thresholds are numbers so near to 0 that no difference overflows."""
    most = torch.linalg.vector_norm(b, math.inf) if b.numel() > 0 else b.sum()
    return most.item() < far_from(b.dtype)


def exact_distance(scores: Tensor, centre: Tensor, rest: Tensor, scale: float | Tensor) -> Tensor:
    """The same by the contract's conventions for infinite thresholds; takes columns of numbers."""
    part = part_of(centre, rest)
    beside = torch.where(centre.isfinite(), rest, 0.0)
    z = torch.where(scores == centre, -rest * part, minus(scores, centre, beside, part))
    absent = (scores == -math.inf) & (centre == centre)  # a NaN spoils its whole row
    return torch.where(absent, -math.inf, z * stretched(scale, part))


def part_of(centre: Tensor, rest: Tensor) -> float | Tensor:
    """1, or 1/4 beside a threshold so far from 0 that a score minus it may overflow.

    (x part - b part)/part is then x - b: a power of two rounds nothing.
    """
    most = far_from(centre.dtype)
    near = (centre.abs() < most) & (rest.abs() < most)
    if at_hand(near) and near.all():
        return 1.0
    return torch.where(near, 1.0, 0.25).to(centre.dtype)


def stretched(scale: float | Tensor, part: float | Tensor) -> float | Tensor:
    """scale/part, finite as the scale is."""
    if isinstance(part, float):
        return scale
    return (torch.finfo(part.dtype).max * part).clamp(max=scale) / part


def minus(scores: Tensor, centre: Tensor, rest: Tensor, part: float | Tensor) -> Tensor:
    """(x - b) part."""
    if isinstance(part, float):
        return (scores - centre) - rest
    return (scores * part - centre * part) - rest * part


def beside(value: Tensor, scores: Tensor) -> Tensor:
    """Numbers per row, where the scores are. A single one is written there, without waiting."""
    if value.device == scores.device:
        return value
    if value.numel() == 1 and not value.requires_grad and _check.at_hand(value):
        return torch.full(value.shape, value.item(), dtype=value.dtype, device=scores.device)
    return value.to(scores.device)


def inverse(temperature: Tensor, dtype: torch.dtype) -> Tensor:
    """1/τ as a column in the dtype of the scores, always finite. The solver rounds it alike."""
    return column(reciprocal(temperature, dtype))


def column(value: Tensor) -> Tensor:
    """Numbers per row beside the scores. One number needs no axis, and may stay on the CPU then."""
    return value.unsqueeze(-1) if value.dim() else value


def reciprocal(temperature: Tensor, dtype: torch.dtype) -> Tensor:
    """The same, one number per row."""
    return temperature.reciprocal().clamp(max=torch.finfo(dtype).max).to(dtype)


def scale_of(temperature: float | Tensor, dtype: torch.dtype) -> float | Tensor:
    """The same; as a number, wherever it is, if it is one."""
    if isinstance(temperature, float):
        return min(1 / temperature, torch.finfo(dtype).max)
    if temperature.numel() == 1 and at_hand(temperature):
        return scale_of(temperature.item(), dtype)
    return inverse(temperature, dtype)


#: Leaves room for n² differences in float64, in which sums are taken, and for one in float32.
FACTORS = {torch.float64: 2.0**-64, torch.float32: 2.0**-8}


def far_from_zero(dtype: torch.dtype) -> float:
    """What |score| may be without."""
    return FACTORS[dtype] * torch.finfo(dtype).max


def factor_for(most: Tensor) -> Tensor | None:
    """What rows of scores up to ±`most`, a column, are to be multiplied by, and τ with them.

    A power of two, so that no sum of differences overflows: all that counts is scores/τ. None: 1.
    """
    far = most > far_from_zero(most.dtype)
    if at_hand(far) and not bool(far.any()):
        return None
    return torch.where(far, FACTORS[most.dtype], 1.0).to(most.dtype)


def factor_of(scores: Tensor) -> Tensor | None:
    """The same for rows of scores, some of which may be infinite or NaN."""
    x = scores.detach()
    if not _check.known_finite(scores):
        x = torch.where(x.isfinite(), x, 0.0)
    return factor_for(x.abs().amax(-1, keepdim=True))


def with_gradient_of(value: Tensor, like: Tensor) -> Tensor:
    """The value with the gradient of something else.

    Sorted scores have the unit of scores: where both are multiplied by a factor, their gradients
    stay what they are, and need not be divided by it, which may overflow.
    """
    like = torch.where(like.isfinite(), like, 0.0)
    return value.detach() + (like - like.detach())


def damped(value: Tensor, factor: Tensor) -> Tensor:
    """The value, infinite or not, with its derivatives multiplied by a factor.

    For what has no unit, made of scores that are multiplied by it but keep their gradients: to
    multiply on the way to the slopes, not behind them, keeps those in the format.
    """
    if torch.compiler.is_compiling():  # no function with a jvp: there infinities have no slope
        return with_gradient_of(value, factor * value)
    return _Damped.apply(value, factor)


class _Damped(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(value: Tensor, factor: Tensor) -> Tensor:
        return value.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(inputs[1])
        ctx.save_for_forward(inputs[1])

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        return upstream * ctx.saved_tensors[0], None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, _: None) -> Tensor:
        return tangent * ctx.saved_tensors[0]


def multiplied(temperature: Tensor, factor: Tensor) -> Tensor:
    """τ in those units, where it does not become 0."""
    tau = beside(temperature, factor) * factor.squeeze(-1).to(temperature.dtype)
    return tau.clamp(min=torch.finfo(tau.dtype).tiny)


def upstream_of(upstream: Tensor, mask: Tensor | None, dtype: torch.dtype) -> Tensor:
    """What came from upstream for p, but nothing for what takes no part."""
    upstream = upstream if upstream.dtype == dtype else upstream.to(dtype)
    return upstream if mask is None else torch.where(mask, upstream, 0.0)


def vjp(upstream: Tensor, u: Tensor, pdf: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of the scores; and per row of k and of temperature, stacked; differentiable.

    With d = f(u)/τ, scale = 1/τ, q = d/Σd and upstream v: ∂L/∂x = d ⊙ (v - <q,v>), ∂L/∂k = <q,v>,
    ∂L/∂τ = -Σ v d (u - <q,u>). All are 0 where Σd underflows.
    """
    total = pdf.sum(-1, keepdim=True)
    flat = total < torch.finfo(pdf.dtype).tiny
    share = pdf / torch.where(flat, math.inf, total)  # 1/total² may overflow, unlike share/total
    mean = (share * upstream).sum(-1, keepdim=True)
    by_scores = torch.where(flat, 0.0, scale) * pdf * (upstream - mean)
    u = torch.nan_to_num(u, posinf=0.0, neginf=0.0)  # there f(u) = 0, and the product is 0
    by_temperature = -(by_scores * u).sum(-1)
    wide = torch.float32 if pdf.device.type == "mps" else torch.float64
    return by_scores, torch.stack([mean.squeeze(-1), by_temperature]).to(wide)

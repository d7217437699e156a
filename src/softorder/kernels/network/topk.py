"""A soft top-k by networks: of every row, the sum of the rows of the network that selects ⌈k⌉.

Which network that is depends on k, and the result's shape does not: so the operator may be recorded
by torch.compile and batched by vmap without a look at k.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from softorder import _check
from softorder.kernels import _autograd, _native
from softorder.kernels._operators import Operator, define_vmap, library, no_gradient
from softorder.kernels.network import cpu, reference
from softorder.kernels.network.comparators import COMPILED
from softorder.networks.choice import selecting

#: Σ_j w_j P_j of a descending P, from scores (rows, n), finite or -inf, and w (rows, size).
Select = Callable[[Tensor, Tensor, Tensor, int], Tensor]


def topk(scores: Tensor, k: Tensor, temperature: Tensor, select: Select, finite: bool) -> Tensor:
    """p, differentiable as `select` is; k and temperature are those of every row.

    What is certain has no wire, and does not count in the k that choose the network.
    """
    if finite:
        return _without_certain(scores, k, temperature, select)
    certain = scores == math.inf
    crowd = certain.sum(-1)
    left = torch.where(k > crowd, k - crowd, 0.0)
    present = torch.where(scores.isfinite(), scores, -math.inf)
    p = _without_certain(present, left, temperature, select)
    share = (k / crowd.clamp(min=1)).clamp(max=1).unsqueeze(-1).to(p.dtype)
    p = torch.where(certain, share, p)
    return torch.where(scores.isnan().any(-1, keepdim=True), math.nan, p)


def _without_certain(scores: Tensor, k: Tensor, temperature: Tensor, select: Select) -> Tensor:
    """Rows of scores do not meet, but those with the same network go together."""
    x = scores.reshape(-1, scores.shape[-1])
    k, temperature = k.reshape(-1), temperature.reshape(-1)
    wanted = k.detach().ceil().clamp(min=1)
    sizes = wanted.unique().long().tolist()
    if len(sizes) == 1:
        return _selected(x, k, temperature, select, sizes[0]).reshape(scores.shape)
    p = x if not sizes else torch.zeros_like(x)  # without rows, the empty input
    for size in sizes:
        chosen = wanted == size
        part = _selected(x[chosen], k[chosen], temperature[chosen], select, size)
        p = p.index_put((chosen,), part)
    return p.reshape(scores.shape)


def _selected(x: Tensor, k: Tensor, temperature: Tensor, select: Select, size: int) -> Tensor:
    """By the network that selects `size`, also where that is all."""
    place = torch.arange(size, device=x.device)
    open_k = torch.where(k > 0, k, 0.0)  # at 0 nothing moves
    weights = (open_k.unsqueeze(-1) - place).clamp(0, 1)
    p = select(x, weights, temperature, size).to(x.dtype)
    there = x != -math.inf
    p = torch.where(there, p, 0.0)
    all_of_them = (k >= there.sum(-1)).unsqueeze(-1) & ~p.isnan()
    return torch.where(all_of_them, there.to(p.dtype), p)  # columns sum to 1, but for roundings


def plain(kind: str | None, comparator: str) -> Select:
    """In plain torch, and in float64: steep comparators enlarge rounding errors."""

    def select(x: Tensor, weights: Tensor, temperature: Tensor, size: int) -> Tensor:
        x, weights = x.double(), weights.double()
        p = reference.output(x, temperature, True, kind_for(kind, size), comparator, size, True)
        return (p * weights.unsqueeze(-1)).sum(-2)

    return select


def compiled(kind: str | None, comparator: str) -> Select:
    """By the compiled kernel, which has one row for all of them; values in float64 there, too."""

    def select(x: Tensor, weights: Tensor, temperature: Tensor, size: int) -> Tensor:
        if torch.is_grad_enabled() and temperature.requires_grad:
            return plain(kind, comparator)(x, weights, temperature, size)
        options = kind_for(kind, size), comparator
        return _apply(x, weights.to(x.dtype), temperature, *options)

    return select


def kind_for(kind: str | None, size: int) -> str | None:
    """Of the network that selects `size`, also where that is all."""
    return kind or selecting(size)


class _Weighted(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weights: Tensor, temperature: Tensor, *options: Any) -> Tensor:
        ctx.save_for_backward(x, weights, temperature)
        ctx.options = options
        return cpu.weighted(x, weights, temperature, *options)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        x, weights, temperature = ctx.saved_tensors
        if torch.is_grad_enabled() or not _check.plain(upstream):
            with torch.enable_grad():
                p = plain(*ctx.options)(x, weights, temperature, weights.shape[-1])
                p = torch.where(x != -math.inf, p, 0.0).to(x.dtype)
            grads = _autograd.wanted(p, (x, weights), ctx.needs_input_grad[:2], upstream)
        else:
            grads = cpu.weighted_vjp(upstream, x, weights, temperature, *ctx.options)
        return (*grads, None, None, None)


# As in relaxations/fused.py: within an operator torch.func has been dealt with.
_apply = super(torch.autograd.Function, _Weighted).apply


# ---- the operators ------------------------------------------------------------------------------


def _forward(
    scores: Tensor, k: Tensor, temperature: Tensor, kind: str | None, comparator: str
) -> Tensor:
    rows = scores.shape[:-1]
    k, temperature = k.expand(rows), temperature.expand(rows)
    return topk(scores, k, temperature, _select(scores, kind, comparator), finite=False)


def _vjp(
    upstream: Tensor,
    scores: Tensor,
    k: Tensor,
    temperature: Tensor,
    by_temperature: bool,
    kind: str | None,
    comparator: str,
) -> tuple[Tensor, Tensor, Tensor]:
    rows = scores.shape[:-1]
    k, temperature = k.expand(rows), temperature.expand(rows)
    select = _select(scores, kind, comparator)

    def result(scores: Tensor, k: Tensor, temperature: Tensor = temperature) -> Tensor:
        return topk(scores, k, temperature, select, finite=False)

    inputs = (scores, k, temperature) if by_temperature else (scores, k)
    by_scores, by_k, *by_others = _autograd.vjp(result, inputs, upstream)
    return by_scores, by_k, by_others[0] if by_others else no_gradient(by_k)


def _select(scores: Tensor, kind: str | None, comparator: str) -> Select:
    here = scores.is_cpu and _native.enabled() and comparator in COMPILED
    return (compiled if here else plain)(kind, comparator)


def _fake(scores: Tensor, *_: Any) -> Tensor:
    return scores.new_empty(scores.shape)


def _fake_vjp(
    upstream: Tensor, scores: Tensor, k: Tensor, temperature: Tensor, by_temperature: bool, *_: Any
) -> tuple[Tensor, Tensor, Tensor]:
    rows = scores.shape[:-1]
    numbers = k.new_empty(rows), temperature.new_empty(rows if by_temperature else 0)
    return scores.new_empty(scores.shape), *numbers


_OPTIONS = "str? kind, str comparator"
traced = Operator(
    f"network_topk(Tensor scores, Tensor k, Tensor temperature, {_OPTIONS}) -> Tensor",
    reference=_forward,
    fake=_fake,
)
traced_vjp = Operator(
    "network_topk_vjp(Tensor upstream, Tensor scores, Tensor k, Tensor temperature,"
    f" bool by_temperature, {_OPTIONS}) -> (Tensor, Tensor, Tensor)",
    reference=_vjp,
    fake=_fake_vjp,
)
define_vmap("network_topk", (0,), (1, 2))
define_vmap("network_topk_vjp", (0, 1), (2, 3))


def _remember(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    scores, k, temperature, *ctx.options = inputs
    ctx.save_for_backward(scores, k, temperature)


def _backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
    learns = ctx.needs_input_grad[2]
    run = _BatchedVjp.apply if _check.transformed() else traced_vjp.dispatched
    found = run(upstream, *ctx.saved_tensors, learns, *ctx.options)
    return *found[:2], found[2] if learns else None, None, None


torch.library.register_autograd(
    "softorder::network_topk", _backward, setup_context=_remember, lib=library
)


_ONCE = (
    "under vmap, where nobody can look at k, soft_topk by a network has first derivatives in "
    "reverse mode only: take more of them without vmap, or use so.soft_permutation, whose k is a "
    "number"
)


def _no_more(ctx: Any, *_: Any) -> Any:
    raise NotImplementedError(_ONCE)


class _BatchedVjp(torch.autograd.Function):
    """The way back for torch.func, and no further."""

    generate_vmap_rule = True

    @staticmethod
    def forward(*arguments: Any) -> Any:
        return traced_vjp.dispatched(*arguments)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Nothing is kept."""

    jvp = backward = staticmethod(_no_more)


class _Batched(torch.autograd.Function):
    """The operator for torch.func, which is not content with its own derivative."""

    generate_vmap_rule = True

    @staticmethod
    def forward(*arguments: Any) -> Tensor:
        return traced.dispatched(*arguments)

    setup_context = staticmethod(_remember)
    backward = staticmethod(_backward)
    jvp = staticmethod(_no_more)


def unseen(
    scores: Tensor, k: Tensor, temperature: Tensor, kind: str | None, comparator: str
) -> Tensor:
    """p where nobody can look at k: once differentiable."""
    run = _Batched.apply if _check.transformed() else traced.dispatched
    return run(scores, k, temperature, kind, comparator)

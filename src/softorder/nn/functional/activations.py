"""topk_activation and batch_topk_activation."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from softorder import _axis, _check
from softorder.nn._choices import best
from softorder.ops import soft_topk
from softorder.ops._straight import with_value


def topk_activation(
    x: Tensor,
    k: int,
    *,
    method: str | object = "laplace",
    temperature: float | Tensor = 1.0,
    dim: int | tuple[int, ...] | None = -1,
    hard: bool = False,
) -> Tensor:
    """A rectifier that lets k of n features through, softly.

        y = max(x, 0) ⊙ p      p = so.soft_topk(x, k)

    With d and q of `so.soft_topk` and upstream v, where w = max(x, 0) ⊙ v,

        ∂L/∂x = [x > 0] ⊙ p ⊙ v + d ⊙ (w - <q,w>)

    The first term is that of a hard top-k; the second one compares what the features at the
    threshold are good for, so that those outside hear that they are wanted.

    Args:
        x: features along dim.
        k: how many are let through, an int in [1, n].
        method: as in `so.soft_topk`.
        temperature: as in `so.soft_topk`.
        dim: the axis of the features; several of them, or None for all, are taken as one.
        hard: exactly k, with the derivative of the soft top-k (straight-through).

    Papers: k-sparse autoencoders (Makhzani & Frey 2014); Gao et al. 2024.

    >>> import torch, softorder as so
    >>> x = torch.tensor([2.0, -1.0, 0.5, 1.0])
    >>> so.nn.functional.topk_activation(x, 2, temperature=0.2).numpy().round(3)
    array([1.998, 0.   , 0.072, 0.857], dtype=float32)
    >>> so.nn.functional.topk_activation(x, 2, hard=True)
    tensor([2., 0., 0., 1.])
    """
    _check.flag("hard", hard)
    if not isinstance(dim, int):
        _check.floating("scores", x)
        axes = _axis.axes(x, dim)
        options: dict[str, Any] = {"method": method, "temperature": temperature, "hard": hard}
        return _axis.split(topk_activation(_axis.join(x, axes), k, **options), x, axes)
    _check.scores(x, dim)
    _check.count("k", k, least=1, most=x.shape[dim])
    p = soft_topk(x, k, method=method, temperature=temperature, dim=dim)
    p = with_value(best(x, k, dim), p) if hard else p
    if _check.eager() and torch.is_grad_enabled():
        found: Tensor = _Rectified.apply(x, p)
        return found
    return x.relu() * p


class _Rectified(torch.autograd.Function):
    """max(x, 0) ⊙ p, which keeps both, as the soft top-k keeps x, but not what is between them."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, p: Tensor) -> Tensor:
        ctx.save_for_backward(x, p)
        return x.relu() * p

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, Tensor]:
        x, p = ctx.saved_tensors
        by_x = torch.ops.aten.threshold_backward(upstream * p, x, 0)  # the way back of relu
        return by_x, upstream * x.relu()


def batch_topk_activation(
    x: Tensor,
    k: int,
    *,
    method: str | object = "laplace",
    temperature: float | Tensor = 1.0,
    hard: bool = False,
) -> Tensor:
    """`topk_activation` of a whole batch: B rows of n features share k·B places.

        y = max(x, 0) ⊙ F((x - b)/τ)      one b for all rows,  Σ F((x - b)/τ) = k B

    so that an input that needs more features has more of them. The features are on the last axis.

    >>> import torch, softorder as so
    >>> x = torch.tensor([[3.0, 2.0, 1.5], [1.0, 0.2, 0.1]])
    >>> so.nn.functional.batch_topk_activation(x, 2, hard=True)
    tensor([[3.0000, 2.0000, 1.5000],
            [1.0000, 0.0000, 0.0000]])
    """
    _check.scores(x, -1)
    _check.count("k", k, least=1, most=x.shape[-1])
    together = x.flatten()
    places = k * (together.numel() // x.shape[-1])
    if not places:  # no rows
        return x.relu()
    options: dict[str, Any] = {"method": method, "temperature": temperature, "hard": hard}
    return topk_activation(together, places, **options).view_as(x)

"""Sums over the pairs of lists by one kernel, which finds their gradient on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from softorder import _check
from softorder.kernels import _native
from softorder.kernels._autograd import wanted
from softorder.kernels.pairs import Weighing, pair_sums


class Asked(NamedTuple):
    """What the kernel is asked beside the scores that are compared: see kernels/pairs."""

    grades: Tensor
    own: Tensor | None
    weighing: Weighing = Weighing.PRODUCT
    scores: Tensor | None = None
    discount: Tensor | None = None
    bound: Tensor | None = None
    first: int = 0
    hinge: bool = False

    @property
    def tensors(self) -> tuple[Tensor | None, ...]:
        return self.grades, self.own, self.scores, self.discount, self.bound

    def of(self, x: Tensor, slopes: bool) -> tuple[Tensor, Tensor]:
        n = x.shape[-1]
        rows = (None if v is None else v.reshape(-1, n) for v in (x, *self.tensors[:3]))
        tables = self.discount, self.bound, self.weighing, self.first, self.hinge
        found, gradient = pair_sums(*rows, *tables, slopes)
        return found.view(3, *x.shape[:-1]), gradient.view(x.shape) if slopes else gradient


class Found(NamedTuple):
    total: Tensor  #: the sum over the pairs
    weight: Tensor  #: that of their weights, or the gains in the best order
    counts: Tensor  #: how many pairs there are


#: The same in plain torch, for second derivatives.
Plain = Callable[[Tensor], Found]


def found_by_kernel(x: Tensor, asked: Callable[[], Asked], plain: Plain) -> Found | None:
    """The sums of lists x (..., n), if there is a kernel for these, here and now."""
    if not _check.eager() or not _native.serves(x, most=_native.INT32):
        return None
    question = asked()
    if not _check.plain(*question.tensors):
        return None
    if x.requires_grad and torch.is_grad_enabled():
        total, others = _Sums.apply(x, question, plain)
    else:
        found = question.of(x.detach(), slopes=False)[0]
        total, others = found[0], found[1:]
    return Found(total.to(x.dtype), *others.to(x.dtype).unbind())


class _Sums(torch.autograd.Function):
    """Keeps the gradient: its terms cost less beside those of the sum than once more."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, question: Asked, plain: Plain) -> tuple[Tensor, Tensor]:
        found, gradient = question.of(x, slopes=True)
        ctx.save_for_backward(x, gradient)
        ctx.like = [(value.shape, value.dtype) for value in (x, gradient)]
        ctx.plain = plain
        total, others = found[0], found[1:]
        ctx.mark_non_differentiable(others)
        return total, others

    @staticmethod
    def backward(ctx: Any, upstream: Tensor, _: Any) -> tuple[Tensor | None, ...]:
        x, gradient = ctx.saved_tensors
        _check.unpacked((x, gradient), ctx.like)
        _check.dense("the gradient", upstream)
        if torch.is_grad_enabled() or not (_check.eager() and _check.plain(upstream)):
            with torch.enable_grad():
                (found,) = wanted(ctx.plain(x).total.double(), (x,), (True,), upstream)
        else:
            found = (upstream.unsqueeze(-1) * gradient).to(x.dtype)
        return found, None, None

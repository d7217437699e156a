"""The top-k cross-entropy of a batch as one number, where all but the scores are numbers too.

That is what training calls, thousands of times, often for few classes: then the time goes into
looking at arguments, not into thresholds. What depends on the numbers alone is found once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from softorder import _check
from softorder.kernels import one_entry
from softorder.kernels._autograd import wanted

#: The same loss of the scores in plain torch, for second derivatives.
Plain = Callable[[Tensor], Tensor]


class Reduced(NamedTuple):
    """The sum or the mean of -log Σ_k share_k S_k, as `Fused` has it, for one set of shares."""

    density: int
    ks: tuple[int, ...]  # 0 stands for a softmax
    shares: Tensor
    apart: bool
    temperature: float
    mean: bool
    p_k: tuple[float, ...]  #: as they were given

    def serves(self, scores: Tensor, target: Tensor) -> bool:
        """Whether there is a compiled kernel for these rows, here and now."""
        if type(scores) not in _check.PLAIN or type(target) not in _check.PLAIN:
            return False
        if scores.is_nested or scores.dim() != 2 or target.dtype is not torch.int64:
            return False
        return one_entry.serves_reduced(scores, target, self.density)

    def loss(self, scores: Tensor, target: Tensor, plain: Plain) -> Tensor:
        if scores.requires_grad and torch.is_grad_enabled():
            return _apply(scores, target, self, plain)
        return self._found(scores, target)[0]

    def _found(self, scores: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        numbers = self.temperature, self.shares, self.ks, self.density, self.apart, self.mean
        return one_entry.reduced(scores, target, *numbers)

    def _vjp(self, upstream: float, kept: Tensor, scores: Tensor, target: Tensor) -> Tensor:
        upstream = upstream / scores.shape[0] if self.mean else upstream
        numbers = self.temperature, self.ks, self.density
        return one_entry.reduced_vjp(upstream, kept, scores, target, *numbers)


class _Loss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, target: Tensor, of: Reduced, plain: Plain) -> Tensor:
        loss, ctx.kept = of._found(scores, target)
        ctx.save_for_backward(scores, target)
        ctx.like = (scores.shape, scores.dtype), (target.shape, target.dtype)
        ctx.statics = of, plain
        return loss

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        _check.unpacked(saved, ctx.like)
        of, plain = ctx.statics
        _check.dense("the gradient", upstream)
        if torch.is_grad_enabled() or not (_check.eager() and _check.plain(upstream, *saved)):
            with torch.enable_grad():
                found = wanted(plain(saved[0]), saved[:1], (True,), upstream)
            return *found, None, None, None
        return of._vjp(upstream.item(), ctx.kept, *saved), None, None, None


# Function.apply without its preparations for torch.func, which is not at work in eager mode.
# tests/runtime/test_private_torch.py watches.
_apply = super(torch.autograd.Function, _Loss).apply

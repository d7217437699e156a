"""The top-k cross-entropy of a density in one go: thresholds, mixture, reduction; and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from softorder import _check
from softorder.kernels import _native, one_entry
from softorder.kernels._autograd import wanted
from softorder.losses._classes import Samples

#: The loss in plain torch, of scores (rows, C), temperature and shares.
Plain = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Fused:
    """What the kernel is asked: -log Σ_k share_k S_k for these k, where 0 stands for a softmax.

    With `apart`, its share s is not part of the mixture: -s log S_1 - (1 - s) log Σ_k≥2.
    """

    density: int
    ks: tuple[int, ...]
    apart: bool
    weight: Tensor | None
    reduction: str

    def serves(self, samples: Samples, temperature: Tensor, shares: Tensor) -> bool:
        """Whether there is a compiled kernel for these, here and now."""
        if _check.eager():
            x, y = samples.scores, samples.target
            return _native.serves(x, y, temperature, shares, most=_native.INT32)
        return _check.traceable() and _native.serves_traced(samples.scores)

    def loss(self, samples: Samples, temperature: Tensor, shares: Tensor, plain: Plain) -> Tensor:
        """The loss; `plain` is the same, for second derivatives."""
        x, tau = samples.scores, samples.per_sample(temperature)
        learns = [v.requires_grad for v in (x, tau, shares)]
        if learns[1]:
            tau = tau.expand(x.shape[:-1])
        if _check.eager() and torch.is_grad_enabled() and any(learns):
            return _apply(x, tau, shares, self, samples, plain)
        return self._reduced(samples, self._found(x, tau, shares, samples)[0])

    def _found(
        self, x: Tensor, tau: Tensor, shares: Tensor, samples: Samples
    ) -> tuple[Tensor, ...]:
        rest = self.ks, self.density, self.apart
        found: tuple[Tensor, ...] = one_entry.loss(x, _index(samples), tau, shares, *rest)
        return found

    def _reduced(self, samples: Samples, losses: Tensor) -> Tensor:
        return samples.reduce_weighted(losses, self.weight, self.reduction)


def _index(samples: Samples) -> Tensor:
    """The target of every row, -1 where ignored."""
    if samples.kept is None:
        return samples.target
    return torch.where(samples.kept, samples.target, -1)


class _Loss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        temperature: Tensor,
        shares: Tensor,
        fused: Fused,
        samples: Samples,
        plain: Plain,
    ) -> Tensor:
        losses, *found = fused._found(scores, temperature, shares, samples)
        kept = scores, temperature, shares, *found
        ctx.save_for_backward(*kept)
        ctx.like = [(value.shape, value.dtype) for value in kept]
        ctx.statics = fused, samples, plain
        return fused._reduced(samples, losses)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        _check.unpacked(saved, ctx.like)
        needs = ctx.needs_input_grad[:3]
        fused, samples, plain = ctx.statics
        _check.dense("the gradient", upstream)
        if torch.is_grad_enabled() or not (_check.eager() and _check.plain(upstream)):
            with torch.enable_grad():
                found = wanted(plain(*saved[:3]), saved[:3], needs, upstream)
        else:
            found = _vjp(fused, samples, upstream, needs, *saved)
        return *found, None, None, None


def _vjp(
    fused: Fused,
    samples: Samples,
    upstream: Tensor,
    needs: tuple[bool, ...],
    scores: Tensor,
    temperature: Tensor,
    shares: Tensor,
    log_p: Tensor,
    pull: Tensor,
    b: Tensor,
) -> tuple[Tensor | None, ...]:
    rows, index = samples.spread(upstream, fused.weight, fused.reduction), _index(samples)
    by_scores, by_temperature = one_entry.vjp(
        rows, pull, scores, index, temperature, b, fused.ks, fused.density, needs[1]
    )
    by_shares = None
    if needs[2]:
        by_shares = one_entry.loss_by_shares(rows, index, log_p, shares, fused.apart)
    return by_scores, by_temperature if needs[1] else None, by_shares


# Function.apply without its preparations for torch.func, which is not at work in eager mode.
# tests/runtime/test_private_torch.py watches.
_apply = super(torch.autograd.Function, _Loss).apply

"""max, min, argmax, argmin: k = 1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from softorder import _check
from softorder.densities import Density
from softorder.ops._straight import with_value
from softorder.ops.topk import soft_topk
from softorder.ops.torch_shaped._results import Selected, learns, mean, only

Method = str | Density | object


def max(
    scores: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    method: Method = "laplace",
    temperature: float | Tensor = 1.0,
    mask: Tensor | None = None,
    hard: bool = True,
) -> Tensor | Selected:
    """torch.max, whose gradient reaches all scores that might have been the largest.

    With p = `so.soft_topk` (scores, 1), which sums to 1, the soft maximum is the mean

        max = Σ_i p_i scores_i        ∂max/∂scores_i = p_i + Σ_l scores_l ∂p_l/∂scores_i.

    It is never above the largest score. hard=True, the default, returns torch's maximum with this
    gradient; hard=False returns the mean itself.

    Args:
        scores: as in `so.soft_topk`.
        dim: the axis that is reduced. None reduces all, and returns the value only, as torch does.
        keepdim: keep `dim`, with size 1.
        method: any that serves `so.soft_topk`.
        temperature: as in `so.soft_topk`.
        mask: as in `so.soft_topk`. Where nothing takes part the value is -inf.
        hard: whether the values are torch's or the soft ones. The gradient is the same.

    Returns:
        A named tuple of values, indices (int64, torch's) and weights p, the shape of scores; for
        dim=None the value.

    >>> import torch, softorder as so
    >>> scores = torch.tensor([1.0, 3.0, 2.5], requires_grad=True)
    >>> best = so.max(scores, 0, temperature=0.5)
    >>> best.values, best.indices
    (tensor(3., grad_fn=<AddBackward0>), tensor(1))
    >>> best.weights.detach().numpy().round(3)
    array([0.015, 0.689, 0.296], dtype=float32)
    >>> so.max(scores, temperature=0.5, hard=False).item()
    2.82...
    """
    wanted = _Wanted(keepdim, method, temperature, mask, hard, largest=True)
    return _extreme(scores, dim, wanted)


def min(
    scores: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    method: Method = "laplace",
    temperature: float | Tensor = 1.0,
    mask: Tensor | None = None,
    hard: bool = True,
) -> Tensor | Selected:
    """torch.min, as `max` is torch.max: Σ_i p_i scores_i with the soft top-1 of the smallest.

    >>> import torch, softorder as so
    >>> so.min(torch.tensor([[1.0, 3.0], [2.0, 2.5]]), dim=1).values
    tensor([1., 2.])
    """
    wanted = _Wanted(keepdim, method, temperature, mask, hard, largest=False)
    return _extreme(scores, dim, wanted)


def argmax(
    scores: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    method: Method = "laplace",
    temperature: float | Tensor = 1.0,
    mask: Tensor | None = None,
    hard: bool = True,
) -> Tensor:
    """Where the largest score is, as a number with a gradient.

    An int64 has none: torch.argmax gives it, and so does `max` with dim. This is its position as a
    floating-point number, whose gradient is that of the mean position Σ_i i p_i, p = `so.soft_topk`
    (scores, 1): what keypoint detectors call soft-argmax. hard=False returns that mean. To gather
    by weights instead of a position, take those of `max`.

    Takes the arguments of `max`; dim=None counts through all scores, as torch.argmax does.

    Returns:
        Positions from 0 in float32, or float64 for such scores (float16 counts only to 2,048).

    >>> import torch, softorder as so
    >>> scores = torch.tensor([0.0, 1.0, 4.0, 3.0], requires_grad=True)
    >>> place = so.argmax(scores, temperature=0.5)
    >>> place
    tensor(2., grad_fn=<AddBackward0>)
    >>> place.backward()
    >>> scores.grad[3] > 0  # a larger last score would pull it to the right
    tensor(True)
    >>> round(so.argmax(scores, temperature=0.5, hard=False).item(), 3)
    2.178
    """
    wanted = _Wanted(keepdim, method, temperature, mask, hard, largest=True)
    return _position(scores, dim, wanted)


def argmin(
    scores: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    method: Method = "laplace",
    temperature: float | Tensor = 1.0,
    mask: Tensor | None = None,
    hard: bool = True,
) -> Tensor:
    """Where the smallest score is, as `argmax` is where the largest is.

    >>> import torch, softorder as so
    >>> so.argmin(torch.tensor([[2.0, 1.0, 4.0], [0.0, 5.0, 3.0]]), dim=1)
    tensor([1., 0.])
    """
    wanted = _Wanted(keepdim, method, temperature, mask, hard, largest=False)
    return _position(scores, dim, wanted)


@dataclass(frozen=True)
class _Wanted:
    """What the calls were given beside the scores and their axis."""

    keepdim: bool
    method: Method
    temperature: float | Tensor
    mask: Tensor | None
    hard: bool
    largest: bool

    def weights(self, scores: Tensor, dim: int) -> Tensor:
        """The soft top-1 of checked arguments."""
        _check.flag("keepdim", self.keepdim)
        _check.flag("hard", self.hard)
        _check.scores(scores, dim)
        _check.not_empty(scores, dim)
        return soft_topk(
            scores,
            1,
            method=self.method,
            temperature=self.temperature,
            dim=dim,
            largest=self.largest,
            mask=self.mask,
        )

    def seen(self, scores: Tensor) -> Tensor:
        """The scores as torch should see them."""
        return only(scores, self.mask, -1.0 if self.largest else 1.0)

    def value(self, value: Tensor, scores: Tensor, soft: Callable[[], Tensor]) -> Tensor:
        """torch's value with the soft derivative, or the soft value."""
        if not self.hard:
            return soft()
        return with_value(value, soft()) if learns(scores, self.temperature) else value

    def flat(self, scores: Tensor) -> tuple[Tensor, _Wanted]:
        """Of all scores as one row."""
        _check.floating("scores", scores)
        _check.mask(self.mask, scores)
        mask = None if self.mask is None else self.mask.expand(scores.shape).flatten()
        return scores.flatten(), replace(self, mask=mask)


def _extreme(scores: Tensor, dim: int | None, wanted: _Wanted) -> Tensor | Selected:
    if dim is None:
        scores, wanted = wanted.flat(scores)
        return _one(scores, -1, replace(wanted, keepdim=False)).values
    return _one(scores, dim, wanted)


def _one(scores: Tensor, dim: int, wanted: _Wanted) -> Selected:
    p = wanted.weights(scores, dim)
    values, indices = (torch.max if wanted.largest else torch.min)(wanted.seen(scores), dim)

    def soft() -> Tensor:
        given = scores if wanted.mask is None else torch.where(wanted.mask, scores, 0.0)
        return torch.where(values.isfinite(), mean(p, given, dim), values)

    found = wanted.value(values, scores, soft)
    if wanted.keepdim:
        found, indices = found.unsqueeze(dim), indices.unsqueeze(dim)
    return Selected(found, indices, p)


def _position(scores: Tensor, dim: int | None, wanted: _Wanted) -> Tensor:
    axes = scores.dim() if isinstance(scores, Tensor) else 0
    if dim is None:
        scores, wanted = wanted.flat(scores)
    along = -1 if dim is None else dim
    p = wanted.weights(scores, along)
    p = p if p.dtype == torch.float64 else p.float()
    place = (torch.argmax if wanted.largest else torch.argmin)(wanted.seen(scores), along)

    def soft() -> Tensor:
        return (p.movedim(along, -1) * torch.arange(p.shape[along], device=p.device)).sum(-1)

    found = wanted.value(place.to(p.dtype), scores, soft)
    if wanted.keepdim:
        found = found.reshape((1,) * axes) if dim is None else found.unsqueeze(dim)
    return found

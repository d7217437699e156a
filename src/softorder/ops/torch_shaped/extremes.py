"""max, min, argmax, argmin: k = 1."""

from __future__ import annotations

import torch
from torch import Tensor

from softorder import _check
from softorder.densities import Density
from softorder.ops.topk import soft_topk
from softorder.ops.torch_shaped._results import Selected, learns, mean, only, through

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
    return _extreme(scores, dim, keepdim, method, temperature, mask, hard, largest=True)


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
    return _extreme(scores, dim, keepdim, method, temperature, mask, hard, largest=False)


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
    return _position(scores, dim, keepdim, method, temperature, mask, hard, largest=True)


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
    return _position(scores, dim, keepdim, method, temperature, mask, hard, largest=False)


def _extreme(
    scores: Tensor,
    dim: int | None,
    keepdim: bool,
    method: Method,
    temperature: float | Tensor,
    mask: Tensor | None,
    hard: bool,
    largest: bool,
) -> Tensor | Selected:
    if dim is None:
        scores, mask = _flat(scores, mask)
        return _one(scores, -1, False, method, temperature, mask, hard, largest).values
    return _one(scores, dim, keepdim, method, temperature, mask, hard, largest)


def _one(
    scores: Tensor,
    dim: int,
    keepdim: bool,
    method: Method,
    temperature: float | Tensor,
    mask: Tensor | None,
    hard: bool,
    largest: bool,
) -> Selected:
    p = _weights(scores, dim, keepdim, method, temperature, mask, hard, largest)
    seen = only(scores, mask, -1.0 if largest else 1.0)
    best = (torch.max if largest else torch.min)(seen, dim)
    values = best.values
    if not hard or learns(scores, temperature):
        given = scores if mask is None else torch.where(mask, scores, 0.0)
        soft = torch.where(values.isfinite(), mean(p, given, dim), values)
        values = through(values, soft) if hard else soft
    indices = best.indices
    if keepdim:
        values, indices = values.unsqueeze(dim), indices.unsqueeze(dim)
    return Selected(values, indices, p)


def _position(
    scores: Tensor,
    dim: int | None,
    keepdim: bool,
    method: Method,
    temperature: float | Tensor,
    mask: Tensor | None,
    hard: bool,
    largest: bool,
) -> Tensor:
    axes = scores.dim() if isinstance(scores, Tensor) else 0
    if dim is None:
        scores, mask = _flat(scores, mask)
    along = -1 if dim is None else dim
    p = _weights(scores, along, keepdim, method, temperature, mask, hard, largest)
    p = p if p.dtype == torch.float64 else p.float()
    seen = only(scores, mask, -1.0 if largest else 1.0)
    place = (torch.argmax if largest else torch.argmin)(seen, along).to(p.dtype)
    if not hard or learns(scores, temperature):
        soft = (p.movedim(along, -1) * torch.arange(p.shape[along], device=p.device)).sum(-1)
        place = through(place, soft) if hard else soft
    if keepdim:
        place = place.reshape((1,) * axes) if dim is None else place.unsqueeze(dim)
    return place


def _weights(
    scores: Tensor,
    dim: int,
    keepdim: bool,
    method: Method,
    temperature: float | Tensor,
    mask: Tensor | None,
    hard: bool,
    largest: bool,
) -> Tensor:
    """The soft top-1 of checked arguments."""
    _check.flag("keepdim", keepdim)
    _check.flag("hard", hard)
    _check.scores(scores, dim)
    _check.not_empty(scores, dim)
    options = {"method": method, "temperature": temperature, "mask": mask}
    return soft_topk(scores, 1, dim=dim, largest=largest, **options)  # type: ignore[arg-type]


def _flat(scores: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
    _check.floating("scores", scores)
    _check.mask(mask, scores)
    return scores.flatten(), None if mask is None else mask.expand(scores.shape).flatten()

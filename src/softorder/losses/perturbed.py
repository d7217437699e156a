"""The Fenchel-Young loss of a perturbed top-k."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from softorder import _axis, _check, hard
from softorder.kernels._autograd import once
from softorder.losses._lists import reduce_rows
from softorder.losses._precision import dtype_of_loss
from softorder.nn._numbers import Numbered
from softorder.ops._perturbed import Draws, check_noise, draws


def perturbed_fenchel_young(
    scores: Tensor,
    target: Tensor,
    k: int | Tensor | None = None,
    *,
    temperature: float | Tensor = 1.0,
    samples: int = 100,
    noise: str = "normal",
    dim: int = -1,
    mask: Tensor | None = None,
    reduction: str = "mean",
    generator: torch.Generator | None = None,
) -> Tensor:
    """How much better the k best perturbed scores are than those of a target y with k ones:

        L = E[ max_π <scores + τ Z, π> - <scores + τ Z, y> ]

    over {π in [0,1]^n, Σ π = k}, estimated by draws of Z, with the gradient p - y, where p is
    `so.perturbed_topk`. Convex in the scores, at least 0 in every draw, and 0 only if the target is
    chosen in all of them: what `so.losses.fenchel_young` is for a soft top-k. The gradient takes
    no derivative of a choice, so that a single draw is enough for it. For soft targets it is the
    Fenchel-Young loss but for a constant that depends on the target.

    Args:
        scores: as in `so.perturbed_topk`.
        target: numbers in [0, 1], shaped as scores, that sum to k along dim.
        k: as in `so.perturbed_topk`; None takes the sums of the targets.
        temperature: as in `so.perturbed_topk`.
        samples: as in `so.perturbed_topk`.
        noise: as in `so.perturbed_topk`.
        dim: the axis along which the scores compete.
        mask: as in `so.soft_topk`; what takes no part has no loss, and its target does not count.
        reduction: "mean" over the rows in which something takes part, "sum", or "none".
        generator: of random numbers.

    Paper: perturbed optimizers (Berthet et al. 2020).

    >>> import torch, softorder as so
    >>> scores = torch.tensor([2.0, 0.5, 1.0, -1.0], requires_grad=True)
    >>> target = torch.tensor([1.0, 1.0, 0.0, 0.0])
    >>> generator = torch.Generator().manual_seed(0)
    >>> so.losses.perturbed_fenchel_young(scores, target, generator=generator).backward()
    >>> p = so.perturbed_topk(scores.detach(), 2, generator=generator.manual_seed(0))
    >>> torch.allclose(scores.grad, p - target)
    True
    """
    check_noise(samples, noise)
    _check.scores(scores, dim)
    _check.temperature(temperature, scores, dim)
    _check.mask(mask, scores)
    _check.reduction(reduction)
    _check.targets.shares(target, scores)
    x = _axis.rows(scores, dim, largest=True, mask=mask)
    absent = x == -math.inf
    y = torch.where(absent, 0.0, target.to(x.dtype).movedim(dim, -1))
    present, sums = (~absent).sum(-1), y.sum(-1, dtype=torch.float64)
    if k is not None:
        _check.k(k, scores, dim)
        _check.targets.sums(sums, _axis.per_row(k, x), present)
    size = sums if k is None else _axis.per_row(k, x)
    _check.whole("k", size, "for a perturbed loss")
    if x.shape[-1] == 0:
        return reduce_rows(x.sum(-1), present > 0, reduction, dtype_of_loss(scores))
    tau = _axis.per_row(temperature, x).to(x.dtype).expand(x.shape[:-1])
    losses = _Loss.apply(x, tau.unsqueeze(-1), y, size, draws(noise, samples, generator))
    return reduce_rows(losses, present > 0, reduction, dtype_of_loss(scores))


class _Loss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, sigma: Tensor, y: Tensor, size: Tensor, noise: Draws
    ) -> Tensor:
        surplus, heat, losses = torch.zeros_like(x), torch.zeros_like(sigma), x.new_zeros(())
        for z in noise.of(x, 1):
            keys = x + sigma * z
            over = hard.topk(keys, size.minimum((x > -math.inf).sum(-1))) - y
            surplus += over.sum(0)
            heat += (z * over).sum((0, -1)).unsqueeze(-1)
            # what is right costs nothing, also where it is infinite
            losses = losses + torch.where(over == 0, 0.0, keys * over).sum((0, -1))
        ctx.save_for_backward(x, sigma, surplus / noise.samples, heat / noise.samples)
        return losses / noise.samples

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        x, sigma, surplus, heat = ctx.saved_tensors
        column = upstream.unsqueeze(-1)
        found = column * surplus, column * heat
        why = "perturbed losses have no second derivatives"
        return *once(why, found, upstream, x, sigma), None, None, None


class PerturbedFenchelYoungLoss(Numbered):
    """`perturbed_fenchel_young` as a module.

    >>> import torch, softorder as so
    >>> criterion = so.losses.PerturbedFenchelYoungLoss(2, temperature=0.5, samples=1000)
    >>> scores, target = torch.tensor([2.0, 0.5, 1.0, -1.0]), torch.tensor([1.0, 0.0, 1.0, 0.0])
    >>> bool(0.05 < criterion(scores, target) < 0.2)
    True
    """

    numbers = ("k", "temperature", "samples")

    def __init__(
        self,
        k: int | Tensor | None = None,
        *,
        temperature: float | Tensor = 1.0,
        samples: int = 100,
        noise: str = "normal",
        dim: int = -1,
        reduction: str = "mean",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        check_noise(samples, noise)
        _check.temperature_alone(temperature)
        _check.reduction(reduction)
        if k is not None:
            _check.k_alone(k)
        self.k = k
        self.temperature = temperature
        self.samples = samples
        self.noise = noise
        self.dim = dim
        self.reduction = reduction
        self.generator = generator

    def forward(self, scores: Tensor, target: Tensor, mask: Tensor | None = None) -> Tensor:
        return perturbed_fenchel_young(
            scores,
            target,
            self.k,
            temperature=self.temperature,
            samples=self.samples,
            noise=self.noise,
            dim=self.dim,
            mask=mask,
            reduction=self.reduction,
            generator=self.generator,
        )

    def extra_repr(self) -> str:
        names = "k", "temperature", "samples", "noise", "dim", "reduction"
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in names)

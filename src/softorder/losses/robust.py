"""Losses that a few wild samples cannot rule: trimmed, of a quantile, Huber's by rank."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from softorder import _axis, _check
from softorder.kernels._recomputed import recomputed
from softorder.losses._precision import dtype_of_loss
from softorder.nn._tempered import Tempered
from softorder.ops import soft_quantile, soft_topk
from softorder.ops._method import threshold_method

Criterion = Callable[[Tensor, Tensor], Tensor]  #: prediction and target to one loss per sample


def trimmed_mean(
    losses: Tensor,
    keep: float,
    *,
    method: str | object = "laplace",
    temperature: float = 1.0,
    dim: int = -1,
) -> Tensor:
    """The mean of the smallest losses, the part `keep` of them, as a smooth function of all.

    With k = keep·n it is

        L = (1/k) min_π {<losses, π> + τ Σ (ψ(π_i) - ψ(k/n))}      over {π in [0,1]^n, Σ π = k}

    which lies between 0, if no loss is less, and the mean of all, which it is for equal losses and
    as τ → ∞. The minimiser is p = `so.soft_topk(losses, k, largest=False)`, so ∂L/∂losses = p/k: a
    weight in [0, 1] for every sample. The plain Σ p·losses would also reward losses beyond the
    threshold for growing. As τ → 0: least trimmed squares.

    Args:
        losses: one for every sample, along dim.
        keep: the part that counts, in (0, 1].
        method: a density that has psi, as in `so.losses.fenchel_young`.
        temperature: τ > 0 in units of the losses; a number.
        dim: the axis of the samples.

    Paper: Least median of squares regression (Rousseeuw 1984).

    >>> import torch, softorder as so
    >>> losses = torch.tensor([1.0, 2.0, 3.0, 1000.0], requires_grad=True)
    >>> mean = so.losses.trimmed_mean(losses, 0.75, temperature=0.001)
    >>> round(mean.item(), 2)
    2.0
    >>> mean.backward()
    >>> losses.grad.numpy().round(3) + 0.0  # without the sign of a zero
    array([0.333, 0.333, 0.333, 0.   ], dtype=float32)
    """
    _check.scores(losses, dim)
    _check.layers.part("keep", keep)
    _check.positive("temperature", temperature)
    return _trimmed(losses, keep, method, temperature, dim)


def _trimmed(
    losses: Tensor, keep: float, method: object, temperature: float | Tensor, dim: int
) -> Tensor:
    density = threshold_method("soft_topk", method).density
    x = _axis.last(_axis.clean(losses, None), dim)
    k = keep * x.shape[-1]
    if x.shape[-1] == 0:
        return x.sum(-1).to(dtype_of_loss(losses))
    y = -x  # the one that the soft top-k keeps
    p = soft_topk(y, k, method=method, temperature=temperature)
    # ψ' is infinite where p rounds to 0 or 1: the derivatives, p and dp, are put in by hand
    still = p.detach()
    even = density.psi(torch.full_like(still, keep))
    value = (x.detach() * still + temperature * (density.psi(still) - even)).sum(-1)
    return ((value + recomputed(_moved, y, p)) / k).to(dtype_of_loss(losses))


def _moved(y: Tensor, p: Tensor) -> Tensor:
    """0, with the derivatives of Σ p·losses for losses -y and their minimiser p."""
    move, still = y.detach() - y, p.detach()
    return (move * (still + 0.5 * (p - still))).sum(-1)


class _RobustLoss(Tempered):
    """Of a batch as a whole: the losses of its samples compete.

    The temperature is in units of their median, a constant, so that it means the same for
    millimetres and for kilometres, at the start and at the end of training.
    """

    numbers = ("part", *Tempered.numbers)

    def __init__(
        self,
        name: str,
        part: float,
        operator: str,
        method: str | object,
        temperature: float | Tensor,
        criterion: Criterion | None,
    ) -> None:
        super().__init__(operator, method, temperature, False)
        _check.layers.part(name, part)
        _check.layers.criterion(criterion)
        self.part = part
        self.criterion = criterion

    def _losses(self, prediction: Tensor, target: Tensor) -> Tensor:
        if self.criterion is None:
            return _residuals(prediction, target).square()
        _check.layers.alike(prediction, target)
        losses = self.criterion(prediction, target).flatten()
        return losses.to(dtype_of_loss(losses))

    def _scale(self, losses: Tensor) -> float | Tensor:
        """τ in units of the losses; of their mean if half of them are 0, and 1 if all are."""
        unit = torch.ones((), dtype=losses.dtype, device=losses.device)
        for typical in (losses.detach().mean(), losses.detach().median()):
            unit = torch.where(typical > 0, typical, unit)
        return self.temperature * unit

    def extra_repr(self) -> str:
        return self.describe("part", "method", "temperature")


def _residuals(prediction: Tensor, target: Tensor) -> Tensor:
    """Of all samples; under autocast in float32, before anything of them is squared."""
    _check.layers.alike(prediction, target)
    return (prediction.to(dtype_of_loss(prediction)) - target).flatten()


class TrimmedLoss(_RobustLoss):
    """The mean of the smallest losses of a batch: `so.losses.trimmed_mean` as a module.

        L = (1/k) min_π {<ℓ, π> + τ Σ (ψ(π_i) - ψ(k/n))}      Σ π = k = part·n      ∂L/∂ℓ = p/k

    A sample whose loss is far above the others has no weight at all, wherever it lies; part = 0.8
    holds as long as a fifth of the samples is wild. Not convex: start from another fit, or warm.

    Args:
        part: of the samples that count, in (0, 1].
        method: a density that has psi.
        temperature: in units of the median loss.
        criterion: one loss for each sample from prediction and target; (prediction - target)² if
            None. Say functools.partial(F.cross_entropy, reduction="none") for classes.

    >>> import torch, softorder as so
    >>> criterion = so.losses.TrimmedLoss(0.75, temperature=0.001)
    >>> prediction, target = torch.zeros(4), torch.tensor([1.0, -1.0, 1.0, 1000.0])
    >>> round(criterion(prediction, target).item(), 2)
    1.0
    """

    def __init__(
        self,
        part: float = 0.9,
        *,
        method: str | object = "laplace",
        temperature: float | Tensor = 0.1,
        criterion: Criterion | None = None,
    ) -> None:
        super().__init__("part", part, "soft_topk", method, temperature, criterion)

    def forward(self, prediction: Tensor, target: Tensor) -> Tensor:
        losses = self._losses(prediction, target)
        return _trimmed(losses, self.part, self.method, self._scale(losses), -1)


class QuantileLoss(_RobustLoss):
    """A quantile of the losses of a batch: that of 0.5 is least median of squares, softly.

        L = so.soft_quantile(ℓ, part)      ∂L/∂ℓ_i = f((L - ℓ_i)/τ)/Σ f

    Only samples near the quantile pull; as the temperature grows it becomes the mean. Half of the
    samples may be wild. Arguments as in `TrimmedLoss`.

    >>> import torch, softorder as so
    >>> criterion = so.losses.QuantileLoss(0.5, temperature=0.1)
    >>> prediction, target = torch.zeros(5), torch.tensor([1.0, 1.1, -1.0, 1000.0, -1000.0])
    >>> round(criterion(prediction, target).item(), 1)
    1.2
    """

    def __init__(
        self,
        part: float = 0.5,
        *,
        method: str | object = "laplace",
        temperature: float | Tensor = 0.5,
        criterion: Criterion | None = None,
    ) -> None:
        _check.between("part", part)
        super().__init__("part", part, "soft_quantile", method, temperature, criterion)

    def forward(self, prediction: Tensor, target: Tensor) -> Tensor:
        losses = self._losses(prediction, target)
        options: dict[str, Any] = {"method": self.method, "temperature": self._scale(losses)}
        return soft_quantile(losses, self.part, **options)


class RankHuberLoss(_RobustLoss):
    """Huber's loss whose bend is a rank: the part `part` of the residuals is squared, the rest not.

        L = (1/n) Σ_i ρ_δ(r_i)     ρ_δ(r) = r²/2 for |r| <= δ, else δ (|r| - δ/2)
        δ = so.soft_quantile(|r|, part)

    As scales usually are in robust regression, δ is estimated from the residuals and held fixed in
    the derivative, ∂L/∂r_i = max(-δ, min(r_i, δ))/n: an L that also moved δ would shrink it to 0.
    No unit has to be known, and δ follows the residuals as they shrink. Arguments as in
    `TrimmedLoss`, without a criterion.

    >>> import torch, softorder as so
    >>> r = torch.tensor([1.0, -1.0, 2.0, -2.0, 1000.0], requires_grad=True)
    >>> so.losses.RankHuberLoss(0.7, temperature=0.01)(r, torch.zeros(5)).backward()
    >>> r.grad.numpy().round(2)
    array([ 0.2, -0.2,  0.4, -0.4,  0.4], dtype=float32)
    """

    def __init__(
        self,
        part: float = 0.8,
        *,
        method: str | object = "laplace",
        temperature: float | Tensor = 0.1,
    ) -> None:
        _check.between("part", part)
        super().__init__("part", part, "soft_quantile", method, temperature, None)

    def forward(self, prediction: Tensor, target: Tensor) -> Tensor:
        r = _residuals(prediction, target)
        size = r.abs().detach()
        options: dict[str, Any] = {"method": self.method, "temperature": self._scale(size)}
        delta = soft_quantile(size, self.part, **options)
        within = r.abs() <= delta
        return torch.where(within, 0.5 * r.square(), delta * (r.abs() - 0.5 * delta)).mean()

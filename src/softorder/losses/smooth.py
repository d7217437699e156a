"""The smooth top-k SVM of Berrada et al. (2018)."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from softorder import _axis, _check
from softorder.kernels._moved import taken
from softorder.losses._classes import MarginLoss, Samples
from softorder.sampling._fused import log_prob


def smooth_top_k(
    scores: Tensor,
    target: Tensor,
    k: int = 5,
    *,
    temperature: float | Tensor = 1.0,
    margin: float = 1.0,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """The smooth top-k loss: how much the sets of k classes with the target outweigh those without.

    A set A of k classes has the score (1/k) Σ_{j in A} scores_j, and a margin more if the target y
    is not in it. The loss is the smooth maximum over all sets minus that over the sets with y:

        τ log Σ_A exp((margin [y not in A] + s_A)/τ) - τ log Σ_{A with y} exp(s_A/τ)
        = τ softplus((margin - scores_y/k)/τ + log σ_k - log σ_{k-1})

    where σ_j are the elementary symmetric polynomials of exp(scores_i/(kτ)), i ≠ y. A kernel finds
    their ratio in O(n) time. Elsewhere they are the coefficients of Π_i (1 + X exp(scores_i/(kτ))),
    multiplied by divide and conquer in logarithms, in O(n k) time. As τ → 0: `top_k_hinge` with k
    times the margin, divided by k.

    Args:
        scores: logits (C), (N, C) or (N, C, d1, ...), as in torch's cross_entropy.
        target: classes (), (N) or (N, d1, ...).
        k: how many guesses there are, at least 1 and less than C.
        temperature: τ > 0, a number or a tensor that broadcasts over target. May require grad.
        margin: how much better the sets with the target have to be.
        weight: one number for each class, as in torch.
        ignore_index: samples with this target have no loss and no gradient.
        reduction: "mean" (weighted, over what is not ignored), "sum" or "none".

    Paper: Smooth loss functions for deep top-k classification (Berrada et al. 2018).

    >>> import torch, softorder as so
    >>> scores = torch.tensor([[2.0, 1.9, -1.0, 0.5]])
    >>> target = torch.tensor([1])
    >>> round(so.losses.smooth_top_k(scores, target, k=2, temperature=0.1).item(), 3)
    0.305
    """
    samples = Samples.of(scores, target, ignore_index)
    _check.count("k", k, least=1, most=samples.classes - 1)
    axis = 0 if scores.dim() == 1 else 1
    _check.temperature(temperature, scores, axis)
    _check.positive("margin", margin)
    _check.weights.per_class(weight, samples.classes)
    _check.reduction(reduction)
    tau = _axis.of_rows(temperature, scores, axis)
    tau = samples.per_sample(_axis.per_row(tau, samples.scores)).to(samples.scores)
    own, others = samples.split()
    absent = others == -math.inf
    z = torch.where(absent, 0.0, others) / (k * tau.unsqueeze(-1))
    excess = (margin - own / k) / tau + log_ratio(torch.where(absent, -math.inf, z), k)
    return samples.reduce_weighted(tau * functional.softplus(excess), weight, reduction)


def log_ratio(z: Tensor, k: int) -> Tensor:
    """log σ_k - log σ_(k-1) of exp(z), rows (N, C) of which each has a -inf, its own class.

    With e^<z,x>/σ_k the probability P_k(x) of a subset x of k, and x the k largest, which are the
    k - 1 largest and one more, y: log σ_k - log σ_(k-1) = z_y - log P_k(x) + log P_(k-1)(x - y).
    """
    if not _check.at_hand(z) or int(z.detach().isfinite().sum()) != z.numel() - z.shape[0]:
        return _elementary_ratio(z, k)
    largest = z.detach().topk(k, -1).indices
    x = torch.zeros_like(z, dtype=torch.bool).scatter_(-1, largest, True)
    less = x.scatter(-1, largest[:, -1:], False)
    of_k, of_less = (
        log_prob(z, torch.full_like(largest[:, 0], size), draw, torch.float64)
        for size, draw in ((k, x), (k - 1, less))
    )
    if of_k is None or of_less is None:
        return _elementary_ratio(z, k)
    last = taken(z, largest[:, -1:]).squeeze(-1).double()
    return (last - of_k + of_less).to(z.dtype)


def _elementary_ratio(z: Tensor, k: int) -> Tensor:
    coefficients = log_elementary(z, k)
    return coefficients[..., k] - coefficients[..., k - 1]


def log_elementary(z: Tensor, k: int) -> Tensor:
    """Logarithms of the elementary symmetric polynomials 0..k of exp(z), over the last axis.

    The coefficients of Π_i (1 + X exp(z_i)): halves are multiplied until one polynomial is left.
    """
    polynomials = torch.stack([torch.zeros_like(z), z], -1)
    while polynomials.shape[-2] > 1:
        if polynomials.shape[-2] % 2:
            one = torch.full_like(polynomials[..., :1, :], -math.inf)
            one[..., 0] = 0
            polynomials = torch.cat([polynomials, one], -2)
        polynomials = _product(polynomials[..., 0::2, :], polynomials[..., 1::2, :], k)
    missing = k + 1 - polynomials.shape[-1]
    return functional.pad(polynomials[..., 0, :], (0, max(missing, 0)), value=-math.inf)


_FEW = 2**17  # numbers: up to here calls take the time, not these


def _product(a: Tensor, b: Tensor, k: int) -> Tensor:
    """log of the product of two polynomials of one degree, without what is beyond X^k."""
    degree = a.shape[-1] - 1
    powers = min(2 * degree, k) + 1
    if a.numel() * powers <= _FEW:
        # X^p has a_i b_(p-i): the windows of b, read from its end, with log 0 on both sides
        padded = functional.pad(b.flip(-1), (powers - 1 - degree, degree), value=-math.inf)
        windows = padded.unfold(-1, degree + 1, 1)
        return log_sum((a.unsqueeze(-2) + windows).flip(-2))
    coefficients = []
    for power in range(powers):
        left = slice(max(0, power - degree), min(degree, power) + 1)
        right = slice(degree - min(degree, power), degree + 1 - max(0, power - degree))
        coefficients.append(log_sum(a[..., left] + b.flip(-1)[..., right]))
    return torch.stack(coefficients, -1)


def log_sum(logs: Tensor) -> Tensor:
    """logsumexp over the last axis, with a gradient of 0 where everything is -inf."""
    top = logs.detach().amax(-1, keepdim=True)
    top = torch.where(top == -math.inf, 0.0, top)
    total = torch.exp(logs - top).sum(-1)
    some = total != 0  # NaN included
    log = torch.where(some, torch.log(torch.where(some, total, 1.0)), -math.inf)
    return log + top.squeeze(-1)


class SmoothTopKLoss(MarginLoss):
    """`smooth_top_k` as a module.

    >>> import torch, softorder as so
    >>> criterion = so.losses.SmoothTopKLoss(k=2, temperature=0.1)
    >>> round(criterion(torch.tensor([[2.0, 1.9, -1.0, 0.5]]), torch.tensor([1])).item(), 3)
    0.305
    """

    numbers = (*MarginLoss.numbers, "temperature")

    def __init__(
        self,
        k: int = 5,
        *,
        temperature: float | Tensor = 1.0,
        margin: float = 1.0,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
    ) -> None:
        options = {"weight": weight, "ignore_index": ignore_index, "reduction": reduction}
        super().__init__(k, margin, **options)
        _check.temperature_alone(temperature)
        self.temperature = temperature

    def forward(self, scores: Tensor, target: Tensor) -> Tensor:
        return smooth_top_k(scores, target, temperature=self.temperature, **self.options())

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, temperature={self.temperature!r}"

"""perturbed_topk and perturbed_permutation."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from softorder import _axis, _check, hard
from softorder.ops import _crossings, _forms, _perturbed, _rows
from softorder.ops._crossings import Pdf

_ORDERS = ("score", "position")


def perturbed_topk(
    scores: Tensor,
    k: int | Tensor,
    *,
    temperature: float | Tensor = 1.0,
    samples: int = 100,
    noise: str = "normal",
    gradient: str = "conditional",
    dim: int | tuple[int, ...] | None = -1,
    largest: bool = True,
    mask: Tensor | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """How often each score is among the k largest when noise is added to all of them.

    p = E[hard_topk(scores + τ Z)], estimated by independent draws of Z: between 0 and 1, of sum k.
    It is random, unlike `so.soft_topk`, whose numbers p = F((scores - b)/τ) are the same idea with
    one threshold b for all draws. For k = 1 and Gumbel noise, E p = softmax(scores/τ).

    Estimates of the gradient, both unbiased, for upstream v (S draws, y = hard_topk):

        "conditional"  mean of f((t - x_i)/τ)/τ (v_i - v_j), where f is the density of the noise and
                       t the key, of another score j, that i would have to pass
        "score"        Berthet's, Σ_s (<v,y_s> - mean of the other <v,y>) s(Z_s)/((S - 1) τ),
                       s = -∇ log f; the mean of the others is there to reduce the variance

    The first is an exact derivative of the mean over Z_i for every i, so that only the other noise
    is left to chance: its variance is 18 times smaller for n = 4 scores and 410 times for n = 200
    (docs/sampling.md). Second derivatives raise an error.

    Args:
        scores: as in `so.soft_topk`.
        k: a whole number in [0, n], or a tensor of them that broadcasts over the rows.
        temperature: τ > 0, the scale of the noise, a number or a tensor that broadcasts over the
            rows. May require grad.
        samples: S, the number of draws. Time O(S n log k), memory O(n): the draws are never
            together in memory, and are made again for the gradient.
        noise: "normal" or "gumbel".
        gradient: "conditional" or "score".
        dim: as in `so.soft_topk`.
        largest: False chooses the k smallest, the k largest of the negative scores.
        mask: as in `so.soft_topk`.
        generator: of random numbers.

    Papers: perturbed optimizers (Berthet et al. 2020); patch selection (Cordonnier et al. 2021).

    >>> import torch, softorder as so
    >>> scores = torch.tensor([3.0, 1.0, 2.0, -1.0], requires_grad=True)
    >>> p = so.perturbed_topk(scores, 2, samples=1000, generator=torch.Generator().manual_seed(0))
    >>> p.sum()
    tensor(2.0000, grad_fn=<SumBackward0>)
    >>> p.detach().numpy().round(1)
    array([1. , 0.3, 0.8, 0. ], dtype=float32)
    >>> p[2].backward()
    >>> scores.grad.numpy().round(1)
    array([-0. , -0.2,  0.2, -0. ], dtype=float32)
    """
    if not isinstance(dim, int):
        return _forms.joined(
            perturbed_topk,
            scores,
            dim,
            mask,
            k=k,
            temperature=temperature,
            samples=samples,
            noise=noise,
            gradient=gradient,
            largest=largest,
            generator=generator,
        )
    _perturbed.check_noise(samples, noise)
    _check.choice("gradient", gradient, _perturbed.GRADIENTS)
    _check.scores(scores, dim)
    _check.k(k, scores, dim)
    _check.whole("k", _axis.per_row(k, scores, dim), "for a perturbed top-k")
    _check.temperature(temperature, scores, dim)
    _check.flag("largest", largest)
    _check.mask(mask, scores)
    x = _axis.rows(scores, dim, largest, mask)
    if x.numel() == 0:
        return scores.clone()
    draws = _perturbed.draws(noise, samples, generator)
    tau = _axis.per_row(temperature, x, dim).to(x.dtype)
    count: Any = _axis.of_rows(k, scores, dim)
    p = _perturbed.mean(x, tau, _Set(count), draws, gradient)
    return _axis.back(p, scores, dim)


def perturbed_permutation(
    scores: Tensor,
    *,
    k: int | None = None,
    order: str = "score",
    temperature: float | Tensor = 1.0,
    samples: int = 100,
    noise: str = "normal",
    gradient: str = "conditional",
    dim: int | tuple[int, ...] | None = -1,
    descending: bool = False,
    mask: Tensor | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """How often each score has each place when noise is added to all of them.

    P = E[Y(scores + τ Z)], where the rows of Y are one-hot: with order="score" the first k rows of
    `so.hard.permutation`; with order="position" the same k scores in the order in which they stand
    in the row, so that what is chosen from a sequence stays in sequence. The latter is the
    top-k for patches of Cordonnier et al.: P @ features are k features.

    Both gradients of `perturbed_topk` are there. They are those of all entries of P in all scores;
    code in circulation for "position" has E[Y_ji Z_i], the part of a score in its own column, and
    leaves out what it does to the others.

    Args:
        scores: as in `so.soft_permutation`.
        k: how many rows; None for all.
        order: "score" or "position".
        temperature: as in `perturbed_topk`.
        samples: as in `perturbed_topk`. Time O(S n k), memory O(n k).
        noise: as in `perturbed_topk`.
        gradient: as in `perturbed_topk`.
        dim: as in `so.soft_permutation`.
        descending: True for the largest score in the first row, and for the k largest.
        mask: as in `so.soft_permutation`; by position, rows that nothing is left for are 0.
        generator: of random numbers.

    Returns:
        P of shape (..., k or n, n), with `dim` moved to the end.

    >>> import torch, softorder as so
    >>> generator, scores = torch.Generator().manual_seed(0), torch.tensor([1.0, 3.0, 2.0])
    >>> options = {"temperature": 0.5, "descending": True, "generator": generator}
    >>> so.perturbed_permutation(scores, k=2, **options).numpy().round(1)
    array([[0. , 0.9, 0.1],
           [0. , 0.1, 0.9]], dtype=float32)
    >>> so.perturbed_permutation(scores, k=2, order="position", **options).numpy().round(1)
    array([[0.1, 0.9, 0. ],
           [0. , 0.1, 0.9]], dtype=float32)
    """
    if not isinstance(dim, int):
        options = {
            "k": k,
            "order": order,
            "temperature": temperature,
            "samples": samples,
            "noise": noise,
            "gradient": gradient,
            "descending": descending,
            "generator": generator,
        }
        return _forms.reduced(perturbed_permutation, scores, _axis.axes(scores, dim), mask, options)
    _perturbed.check_noise(samples, noise)
    _check.choice("gradient", gradient, _perturbed.GRADIENTS)
    _check.choice("order", order, _ORDERS)
    _rows.check(scores, temperature, dim, descending, mask)
    n = scores.shape[dim]
    _check.whole_k(k, n)
    k = n if k is None else k
    x = _rows.rows(scores, dim, mask)
    if x.numel() == 0 or k == 0:
        return x.unsqueeze(-2).expand(*x.shape[:-1], n, n)[..., :k, :].to(scores.dtype)
    if not descending:
        # what takes no part stays at -inf; +inf goes last of the others
        last = torch.where(x == math.inf, torch.finfo(x.dtype).min, -x)
        x = torch.where(x == -math.inf, x, last)
    draws = _perturbed.draws(noise, samples, generator)
    tau = _axis.per_row(temperature, x, dim).to(x.dtype)
    choice = (_Places if order == "score" else _Positions)(k)
    return _perturbed.mean(x, tau, choice, draws, gradient).to(scores.dtype)


class _Set(NamedTuple):
    k: int | Tensor
    width: int = 1

    def chosen(self, keys: Tensor) -> Tensor:
        return hard.topk(keys, self.k)

    def crossing(self, keys: Tensor, x: Tensor, sigma: Tensor, V: Tensor, pdf: Pdf) -> Tensor:
        return _crossings.of_set(keys, self.k, x, sigma, V, pdf)


class _Places(NamedTuple):
    k: int

    @property
    def width(self) -> int:
        return self.k

    def chosen(self, keys: Tensor) -> Tensor:
        return hard.permutation(keys, k=self.k, descending=True)

    def crossing(self, keys: Tensor, x: Tensor, sigma: Tensor, V: Tensor, pdf: Pdf) -> Tensor:
        return _crossings.of_places(keys, self.k, x, sigma, V, pdf)


class _Positions(NamedTuple):
    k: int

    @property
    def width(self) -> int:
        return self.k

    def chosen(self, keys: Tensor) -> Tensor:
        top = keys.topk(self.k, -1)
        taken = torch.zeros_like(keys).scatter_(-1, top.indices, (top.values > -math.inf).to(keys))
        row = torch.arange(1, self.k + 1, device=keys.device).unsqueeze(-1)
        there = (taken.cumsum(-1).unsqueeze(-2) == row) & (taken > 0).unsqueeze(-2)
        spoiled = keys.isnan().any(-1)[..., None, None]
        return torch.where(spoiled, math.nan, there.to(keys.dtype))

    def crossing(self, keys: Tensor, x: Tensor, sigma: Tensor, V: Tensor, pdf: Pdf) -> Tensor:
        return _crossings.of_positions(keys, self.k, x, sigma, V, pdf)

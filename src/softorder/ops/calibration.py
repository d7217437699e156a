"""A temperature for a stated softness."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from softorder import _axis, _check, hard
from softorder.densities import Density
from softorder.kernels.shards import WHOLE, Shards, Whole
from softorder.kernels.threshold import sharded as threshold
from softorder.ops import _forms
from softorder.ops._method import computation, density_of_cut_rows
from softorder.relaxations import sharded

_REACH = 1e12  # the temperature lies within this factor of the range of the scores
_HALVINGS = 60  # of the logarithm of that: to the last digit


def calibrate_temperature(
    scores: Tensor,
    k: float | Tensor,
    *,
    softness: float = 0.1,
    method: str | Density | object = "laplace",
    dim: int | tuple[int, ...] | None = -1,
    largest: bool = True,
    mask: Tensor | None = None,
    shared: bool = False,
    differentiable: bool = False,
) -> Tensor:
    """The temperature at which a stated share of the decision stays undecided.

    With h = `so.hard.topk(scores, k)`, p the soft top-k at τ and n scores, the softness is the mass
    that others than the k largest hold, as a share of what they hold when nothing is decided:

        softness(τ) = Σ_i h_i (h_i - p_i) / Σ_i h_i (h_i - k/n)

    It rises with τ from 0 (hard) to 1 (every p is k/n), for every density and all scores: with
    d = f(u)/Σf(u), its derivative is a covariance of h and u, which both rise with the scores. So
    there is one τ for each softness in between. Of the other methods some rise and fall, and some
    never become hard: for these it is one τ with that softness, and an error if none is found.

    It moves with the scores: calibrate(a·x + c) is a·calibrate(x). For a fixed k it shrinks as n
    grows, since ever more scores crowd below the threshold: a temperature that was found for a few
    classes is too soft for many. For a fixed k/n it stays.

    Args:
        scores: as in `so.soft_topk`.
        k: as in `so.soft_topk`, without a gradient.
        softness: a number between 0 and 1, both excluded.
        method: as in `so.soft_topk`.
        dim: the axis along which the scores compete.
        largest: False for the k smallest.
        mask: as in `so.soft_topk`.
        shared: True for one temperature at which the mean softness of all rows is as stated.
        differentiable: True lets gradients flow to the scores (of first order); they scale the
            temperature along with the scores.

    Returns:
        A float64 tensor with one temperature per row (the shape of scores without `dim`), or one
        number if shared. Rows in which nothing is to be decided (equal scores, k = 0, k >= n) get
        1, and do not count among shared ones.

    >>> import torch, softorder as so
    >>> scores = torch.randn(64, 1000, generator=torch.Generator().manual_seed(0))
    >>> few, many = scores[:, :10], scores
    >>> [round(so.calibrate_temperature(x, 5, shared=True).item(), 2) for x in (few, many)]
    [0.1, 0.05]
    >>> tau = so.calibrate_temperature(many, 5, softness=0.3)
    >>> p = so.soft_topk(many, 5, temperature=tau)
    >>> round(1 - p[0].topk(5).values.sum().item() / 5, 2)  # what others than the top 5 have
    0.3
    """
    _check.flag("largest", largest)
    _check.flag("shared", shared)
    _check.flag("differentiable", differentiable)
    options: dict[str, Any] = {
        "softness": softness,
        "method": method,
        "largest": largest,
        "shared": shared,
        "differentiable": differentiable,
    }
    if _forms.special(scores, dim):
        return _special(scores, k, dim, mask, options)
    assert isinstance(dim, int)
    return part_of_calibration(scores, k, dim, mask, WHOLE, WHOLE, **options)


def part_of_calibration(
    scores: Tensor,
    k: float | Tensor,
    dim: int,
    mask: Tensor | None,
    shards: Whole,
    others: Whole,
    *,
    softness: float,
    method: str | Density | object,
    largest: bool,
    shared: bool,
    differentiable: bool,
) -> Tensor:
    """The same where rows are cut among ranks (`shards`), or others have more rows (`others`)."""
    _check.scores(scores, dim)
    (_check.k if shards.alone else _check.k_below)(k, scores, dim)
    _check.mask(mask, scores)
    _check.between("softness", softness)
    _check.flag("shared", shared)
    _check.flag("differentiable", differentiable)
    x = _axis.rows(scores, dim, largest, mask).double()
    decision = _Decision.of(x, k, _computation(method, shards), shards, others)
    tau = decision.solve(softness, shared)
    if _check.eager():
        reached = torch.where(decision.open, decision.softness(tau.detach(), shared), softness)
        _check.methods.softness(method, softness, reached)
    if differentiable:
        tau = decision.with_gradient(tau, shared)
    open_rows = others.most(decision.open.any().double()) > 0 if shared else decision.open
    tau = torch.where(open_rows, tau, 1.0)
    spoiled = scores.new_zeros((), dtype=torch.bool) if shared else decision.spoiled
    return torch.where(spoiled, math.nan, tau)


def _computation(method: object, shards: Whole) -> Callable[..., Tensor]:
    if not isinstance(shards, Shards):
        return computation("soft_topk", method)
    density = density_of_cut_rows("soft_topk", method)
    return partial(sharded.soft_topk, density=density, shards=shards, log=False)


def _special(
    scores: Tensor,
    k: float | Tensor,
    dim: int | tuple[int, ...] | None,
    mask: Tensor | None,
    options: dict[str, Any],
) -> Tensor:
    """Along several axes, or of a DTensor."""
    _check.floating_dtype("scores", scores)
    axes = _axis.axes(scores, dim)
    if not isinstance(k, Tensor):
        _check.k_among(k, _forms.number_of_scores(scores, dim), dim)
    if not _forms.is_dtensor(scores):
        calibrate = partial(part_of_calibration, shards=WHOLE, others=WHOLE, **options)
        return _forms.reduced(calibrate, scores, axes, mask, {"k": k})
    pieces = _forms.Pieces(scores, axes)
    among: dict[str, Any] = {"shards": pieces.shards, "others": pieces.other_rows}
    calibrate = partial(part_of_calibration, **among, **options)
    own = {"k": pieces.number("k", k)}
    tau = _forms.reduced(calibrate, pieces.local, axes, pieces.mask(mask), own)
    return pieces.alike_result(tau) if options["shared"] else pieces.per_row(tau, False, False)


@dataclass(frozen=True)
class _Decision:
    """Finite scores of which k are to be chosen; rows with nothing to decide are not open."""

    x: Tensor
    k: Tensor
    compute: Callable[..., Tensor]  # p
    chosen: Tensor  # h
    most: Tensor  # Σ h (h - k/n)
    open: Tensor
    spoiled: Tensor  # rows with NaN
    shards: Whole  # that have more of the rows
    others: Whole  # that have more rows

    @staticmethod
    def of(
        x: Tensor, k: float | Tensor, compute: Callable[..., Tensor], shards: Whole, others: Whole
    ) -> _Decision:
        certain = x == math.inf
        spoiled = shards.add(x.isnan().sum(-1)) > 0
        count = _axis.per_row(k, x).detach() - shards.add(certain.sum(-1))
        x = torch.where(certain | spoiled.unsqueeze(-1), -math.inf, x)
        present = shards.add((x > -math.inf).sum(-1))
        count = torch.minimum(count.clamp(min=0), present).expand(x.shape[:-1])
        chosen = _chosen(x.detach(), count, shards)
        most = shards.add((chosen * chosen).sum(-1)) - count * count / present.clamp(min=1)
        open_ = most > 1e-9 * count
        return _Decision(x, count, compute, chosen, most, open_, spoiled, shards, others)

    def softness(self, temperature: Tensor, shared: bool) -> Tensor:
        if shared:
            temperature = self.others.shared(temperature)
        p: Tensor = self.compute(self.x, self.k, temperature)
        miss = self.shards.common((self.chosen * (self.chosen - p)).sum(-1))
        share = torch.where(self.open, miss, 0.0) / torch.where(self.open, self.most, 1.0)
        if not shared:
            return share
        return self.others.common(share.sum()) / self.others.add(self.open.sum()).clamp(min=1)

    def solve(self, softness: float, shared: bool) -> Tensor:
        """By bisection of log τ: softness is monotone in it."""
        with torch.no_grad():
            low, high = self._bracket(shared)
            for _ in range(_HALVINGS):
                middle = 0.5 * (low + high)
                soft = self.softness(middle.exp(), shared) > softness
                low, high = torch.where(soft, low, middle), torch.where(soft, middle, high)
            return (0.5 * (low + high)).exp()

    def _bracket(self, shared: bool) -> tuple[Tensor, Tensor]:
        rows = self.x.shape[:-1]
        if not self.x.numel() and self.shards.alone and self.others.alone:
            return (self.x.new_zeros(() if shared else rows, dtype=torch.float64),) * 2
        nothing = self.x.new_full((*rows, 1), -math.inf)
        finite, x = self.x.isfinite(), self.x.detach()
        ends = (torch.cat([torch.where(finite, v, -math.inf), nothing], -1) for v in (x, -x))
        top, bottom = self.shards.most(torch.stack([end.amax(-1) for end in ends]))
        scale = torch.where(self.open, top + bottom, 1.0).log()
        low, high = scale - math.log(_REACH), scale + math.log(_REACH)
        if not shared:
            return low, high
        ends = (v.flatten() for v in (-low, high))
        least = scale.new_full((1,), -math.inf)
        found = torch.stack([torch.cat([end, least]).amax() for end in ends])
        found = self.others.most(found)
        return -found[0], found[1]

    def with_gradient(self, tau: Tensor, shared: bool) -> Tensor:
        """τ with the derivative of the implicit function: a Newton step of value 0."""
        with torch.enable_grad():
            start = tau.detach().requires_grad_()
            still = replace(self, x=self.x.detach())
            (slope,) = torch.autograd.grad(still.softness(start, shared).sum(), start)
        found = self.softness(tau.detach(), shared)
        rises = slope > 0
        step = (found - found.detach()) / torch.where(rises, slope, 1.0)
        return tau - torch.where(rises, step, 0.0)


def _chosen(x: Tensor, k: Tensor, shards: Whole) -> Tensor:
    if isinstance(shards, Shards):
        return threshold.hard(x, k, shards)
    return hard.topk(x, k) if x.shape[-1] else x

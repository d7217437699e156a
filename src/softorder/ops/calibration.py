"""A temperature for a stated softness."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor

from softorder import _axis, _check, hard
from softorder._auto import Auto, settings, wanted
from softorder.densities import Density
from softorder.kernels._operators import Operator
from softorder.kernels.shards import WHOLE, Shards, Whole
from softorder.kernels.threshold import sharded as threshold
from softorder.ops import _forms
from softorder.ops._method import computation, density_of_cut_rows
from softorder.ops._root import root
from softorder.relaxations import Method, find_any, sharded

_SMALLER = 2.0  # log τ is about this much below that of the range of the scores times the odds
_REACH = 1e12  # the temperature lies within this factor of the range of the scores
_EXACT, _ROUGH = 1e-12, 1e-6  # the last step in log τ: to the last digit, or to about six
_MOST_STEPS = {_EXACT: 60, _ROUGH: 24}  # nearly always a dozen

_Soft = Callable[[Tensor, Tensor], Tensor]  # of scores and temperature


def calibrate_temperature(
    scores: Tensor,
    k: float | Tensor | None = None,
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

    Without a k the decision is the whole order: h = `so.hard.rank(scores)`, r the soft ranks at τ,
    and n scores that take part,

        softness(τ) = Σ_i (h_i - (n+1)/2) (h_i - r_i) / Σ_i (h_i - (n+1)/2)²

    the same with ranks, as p and h both sum to k: 1 less the slope of r over h. It rises from 0 to
    1, too: Σ h_i r_i is a sum of (h_i - h_j) F((scores_i - scores_j)/τ), which fall one by one. It
    is the softness of `so.soft_rank`, and serves all that is made of the same sums, at the same
    temperature: sorts, permutations, quantiles.

    It moves with the scores: calibrate(a·x + c) is a·calibrate(x). For a fixed k it shrinks as n
    grows, since ever more scores crowd below the threshold: a temperature that was found for a few
    classes is too soft for many. For a fixed k/n, and for ranks, it stays.

    Time that of about a dozen soft operators, in float64. Under torch.compile it is one operator in
    the graph; with a density of your own, or differentiable=True, its steps are.

    Args:
        scores: as in `so.soft_topk`.
        k: as in `so.soft_topk`, without a gradient; None for the softness of ranks.
        softness: a number between 0 and 1, both excluded.
        method: as in `so.soft_topk`; without a k, one that serves soft_rank or soft_permutation.
        dim: the axis along which the scores compete; several of them, or None for all, compete as
            one.
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
    options = {"softness": softness, "method": method, "largest": largest, "shared": shared}
    return _calibrated(scores, k, dim, mask, options | {"differentiable": differentiable})


def of_topk(
    temperature: Any,
    scores: Tensor,
    k: float | Tensor | None,
    *,
    method: object,
    dim: int | tuple[int, ...] | None = -1,
    largest: bool = True,
    mask: Tensor | None = None,
) -> float | Tensor:
    """The temperature of a call: a number as it is, "auto" as the scores have it."""
    if not wanted(temperature):
        given: float | Tensor = temperature
        return given
    auto = settings(temperature)
    _check.floating_dtype("scores", scores)
    options = {"method": method, "largest": largest, **options_of(auto)}
    tau: Any = _calibrated(scores.detach(), k, dim, mask, options)
    if auto.shared and _forms.is_dtensor(tau):  # all ranks have it
        tau = tau.to_local()
    return auto.keep(tau)


def options_of(auto: Auto) -> dict[str, Any]:
    """How the temperature of a call is found."""
    rough = {"differentiable": False, "rough": True}
    return {"softness": auto.softness, "shared": auto.shared, **rough}


def of_order(
    temperature: Any,
    scores: Tensor,
    *,
    method: object,
    dim: int | tuple[int, ...] | None = -1,
    mask: Tensor | None = None,
) -> float | Tensor:
    """The same where the ranks are what is to be decided."""
    if not wanted(temperature):
        given: float | Tensor = temperature
        return given
    return of_topk(temperature, scores, None, method=method, dim=dim, mask=mask)


def _calibrated(
    scores: Tensor,
    k: float | Tensor | None,
    dim: int | tuple[int, ...] | None,
    mask: Tensor | None,
    options: dict[str, Any],
) -> Tensor:
    for name in ("largest", "shared", "differentiable"):
        _check.flag(name, options[name])
    if _forms.is_jagged(scores):
        from softorder.ragged import _jagged, calibration

        calibrate = calibration.calibrated
        return _jagged.per_row(calibrate, scores, dim, mask, False, k, **options)
    if _forms.special(scores, dim):
        return _special(scores, k, dim, mask, options)
    assert isinstance(dim, int)
    return part_of_calibration(scores, k, dim, mask, WHOLE, WHOLE, **options)


def part_of_calibration(
    scores: Tensor,
    k: float | Tensor | None,
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
    rough: bool = False,
) -> Tensor:
    """The same where rows are cut among ranks (`shards`), or others have more rows (`others`)."""
    _check.scores(scores, dim)
    if k is not None:
        (_check.k if shards.alone else _check.k_below)(k, scores, dim)
    elif not shards.alone:
        _check.distributed.choice(k)
    _check.mask(mask, scores)
    _check.between("softness", softness)
    x = _axis.rows(scores if differentiable else scores.detach(), dim, largest, mask).double()
    count = None if k is None else _axis.per_row(k, x, dim).detach()
    aim = float(softness), shared, rough
    if (
        _check.traceable()
        and isinstance(method, str)
        and not differentiable
        and shards.alone
        and others.alone
    ):
        found: Tensor = _operator.dispatched(x, count, method, *aim)
        return found
    return _temperatures(x, count, method, *aim, differentiable, shards, others)


def _temperatures(
    x: Tensor,
    k: Tensor | None,
    method: object,
    softness: float,
    shared: bool,
    rough: bool,
    differentiable: bool = False,
    shards: Whole = WHOLE,
    others: Whole = WHOLE,
) -> Tensor:
    """Of clean rows."""
    if k is None:
        decision = Decision.of_order(x, method, others)
    else:
        decision = Decision.of_choice(x, k, _choice(method, shards), shards, others)
    return temperatures_of(decision, method, softness, shared, rough, differentiable)


def temperatures_of(
    decision: Decision,
    method: object,
    softness: float,
    shared: bool,
    rough: bool = False,
    differentiable: bool = False,
) -> Tensor:
    """One for each row, or one for all of them."""
    tau, near_by = decision.solve(softness, shared, rough)
    if _check.eager():
        reached = torch.where(decision.open, near_by, softness)
        _check.methods.softness(method, softness, reached)
    if differentiable:
        tau = decision.with_gradient(tau, shared)
    some = decision.others.most(decision.open.any().double()) > 0
    tau = torch.where(some if shared else decision.open, tau, 1.0)
    return tau if shared else torch.where(decision.spoiled, math.nan, tau)


def _empty(
    x: Tensor, k: Tensor | None, method: str, softness: float, shared: bool, rough: bool
) -> Tensor:
    return x.new_empty(() if shared else x.shape[:-1])


_operator = Operator(
    "calibrate(Tensor scores, Tensor? k, str method, float softness, bool shared, bool rough)"
    " -> Tensor",
    reference=_temperatures,
    fake=_empty,
)


def _choice(method: object, shards: Whole) -> Callable[..., Tensor]:
    if not isinstance(shards, Shards):
        return computation("soft_topk", method)
    density = density_of_cut_rows("soft_topk", method)
    return partial(sharded.soft_topk, density=density, shards=shards, log=False)


def _ranks(method: object) -> _Soft:
    """Soft ranks by that method: its own, or the mean places of its permutation."""
    name = "soft_rank"
    if isinstance(method, str):
        name, _ = find_any(("soft_rank", "soft_permutation"), method)
    elif isinstance(method, Method) and name not in method.operators:
        name = "soft_permutation"
    compute = computation(name, method)
    if name == "soft_rank":
        return lambda x, tau: compute(x, tau, False)

    def mean_places(x: Tensor, tau: Tensor) -> Tensor:
        n = x.shape[-1]
        places = torch.arange(1, n + 1, dtype=x.dtype, device=x.device)
        return (places.unsqueeze(-1) * compute(x, tau, False, n)).sum(-2)

    return mean_places


def _special(
    scores: Tensor,
    k: float | Tensor | None,
    dim: int | tuple[int, ...] | None,
    mask: Tensor | None,
    options: dict[str, Any],
) -> Tensor:
    """Along several axes, or of a DTensor."""
    _check.floating_dtype("scores", scores)
    axes = _axis.axes(scores, dim)
    if k is not None and not isinstance(k, Tensor):
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
class Decision:
    """Finite scores that something is to be decided of; rows with nothing to decide are not open.

    The softness is 1 - <w, soft>/<w, hard>, both less what they are when nothing is decided.
    """

    x: Tensor
    soft: _Soft  # p, or r
    hard: Tensor  # h
    weights: Tensor  # w: h, or h less its mean
    most: Tensor  # <w, h> when nothing is decided less
    open: Tensor
    spoiled: Tensor  # rows with NaN
    shards: Whole  # that have more of the rows
    others: Whole  # that have more rows

    @staticmethod
    def of_choice(
        x: Tensor, k: Tensor, compute: Callable[..., Tensor], shards: Whole, others: Whole
    ) -> Decision:
        """Of the k largest."""
        certain = x == math.inf
        spoiled = shards.add(x.isnan().sum(-1)) > 0
        x = torch.where(certain | spoiled.unsqueeze(-1), -math.inf, x)
        present = shards.add((x > -math.inf).sum(-1))
        count = (k - shards.add(certain.sum(-1))).clamp(min=0)
        count = torch.minimum(count, present).expand(x.shape[:-1])
        chosen = _chosen(x.detach(), count, shards)
        most = shards.add((chosen * chosen).sum(-1)) - count * count / present.clamp(min=1)
        open_ = most > 1e-9 * count

        def soft(x: Tensor, temperature: Tensor) -> Tensor:
            nothing = shards.alone and x.shape[-1] == 0
            return x if nothing else compute(x, count, temperature)

        return Decision(x, soft, chosen, chosen, most, open_, spoiled, shards, others)

    @staticmethod
    def of_order(x: Tensor, method: object, others: Whole) -> Decision:
        """Of all places."""
        spoiled = x.isnan().any(-1)
        x = torch.where((x == math.inf) | spoiled.unsqueeze(-1), -math.inf, x)
        there = x > -math.inf
        present = there.sum(-1, keepdim=True)
        ranks = hard.rank(x.detach())
        weights = torch.where(there, ranks - (present + 1) / 2, 0.0)
        most = weights.square().sum(-1)
        soft = _ranks(method) if x.shape[-1] else lambda x, temperature: x
        return Decision(x, soft, ranks, weights, most, most > 0, spoiled, WHOLE, others)

    def sum(self, values: Tensor) -> Tensor:
        """Over the scores of every row."""
        return self.shards.common(values.sum(-1))

    def range(self) -> Tensor:
        """From the least finite score of a row that is open to its largest; 1 for other rows."""
        rows, x = self.x.shape[:-1], self.x.detach()
        nothing = x.new_full((*rows, 1), -math.inf)
        ends = (torch.cat([end, nothing], -1).amax(-1) for end in finite_ends(x))
        top, bottom = self.shards.most(torch.stack(list(ends)))
        return torch.where(self.open, top + bottom, 1.0)

    def softness(self, temperature: Tensor, shared: bool) -> Tensor:
        if shared:
            temperature = self.others.shared(temperature)
        share = self.sum(self.weights * (self.hard - self.soft(self.x, temperature))) * self._scale
        if not shared:
            return share
        return self.others.common(share.sum()) / self.others.add(self.open.sum()).clamp(min=1)

    @cached_property
    def _scale(self) -> Tensor:
        """1/<w, h>; 0 for rows that are not open."""
        return torch.where(self.open, self.most.reciprocal(), 0.0)

    def solve(self, softness: float, shared: bool, rough: bool) -> tuple[Tensor, Tensor]:
        """τ, and the softness next to it; the odds of the softness rise about as fast as τ."""
        going = self.open
        if shared:
            going = self.others.most(self.open.any().double()) > 0
        tolerance = _ROUGH if rough else _EXACT
        aim = math.log(softness) - math.log1p(-softness)

        def missing(log_tau: Tensor) -> Tensor:
            return torch.logit(self.softness(log_tau.exp(), shared).clamp(0, 1)) - aim

        with torch.no_grad():
            low, high = self._bracket(shared)
            start = (0.5 * (low + high) + aim - _SMALLER).clamp(low, high)
            steps = _MOST_STEPS[tolerance]
            found = root(missing, start, low, high, going, tolerance, steps)
            return found.place.exp(), torch.sigmoid(found.value + aim)

    def _bracket(self, shared: bool) -> tuple[Tensor, Tensor]:
        if not self.x.numel() and self.shards.alone and self.others.alone:
            rows = () if shared else self.open.shape
            return (self.x.new_zeros(rows, dtype=torch.float64),) * 2
        scale = self.range().log()
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


def finite_ends(x: Tensor) -> tuple[Tensor, Tensor]:
    """x and -x, of which the largest are the ends of what is finite."""
    finite = x.isfinite()
    return torch.where(finite, x, -math.inf), torch.where(finite, -x, -math.inf)


def _chosen(x: Tensor, k: Tensor, shards: Whole) -> Tensor:
    if isinstance(shards, Shards):
        return threshold.hard(x, k, shards)
    return hard.topk(x, k) if x.shape[-1] else x

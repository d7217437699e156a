"""Historical top-k masks, as baselines. Their defects are theirs, and are kept."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from softorder import _check
from softorder.kernels._autograd import wanted
from softorder.kernels._moved import learns, taken
from softorder.kernels._recomputed import recomputed
from softorder.kernels.formulas import column, inverse
from softorder.kernels.sort import sort
from softorder.relaxations._base import Method, register
from softorder.relaxations.masses import log_masses_again, log_of
from softorder.relaxations.matrix import row_weights

_NOTHING = -750.0  # exp is 0 from here on, in float64
_FAR_FROM_TINY = 1e8  # what is left out beside it is less than a rounding
_DEEP = -100.0  # from here on log σ(z) is z, in float64


class MaskMethod(Method):
    """A top-k mask without a permutation. Infinities and NaN are dealt with here."""

    operators = ("soft_topk",)
    smoothness = "smooth"

    def _mask(
        self, x: Tensor, live: Tensor, k: Tensor, temperature: Tensor, most: int | None
    ) -> Tensor:
        """The mask of what is live among finite x; what it says of the others does not count.

        No k is above `most`, if that is known.
        """
        raise NotImplementedError

    looks_at_k = True

    def soft_topk(
        self, scores: Tensor, k: Tensor, temperature: Tensor, most: int | None = None
    ) -> Tensor:
        k = torch.where(k > 0, k, 0.0)  # at 0 nothing moves
        if _check.known_finite(scores):
            return self._mask(scores, _everywhere(scores), k, temperature, most)
        live, certain = scores.isfinite(), scores == math.inf
        crowd = certain.sum(-1)
        left = torch.where(k > crowd, k - crowd, 0.0)
        p = self._mask(torch.where(live, scores, 0.0), live, left, temperature, most)
        share = (k / crowd.clamp(min=1)).clamp(max=1).unsqueeze(-1).to(p.dtype)
        p = torch.where(live, p, torch.where(certain, share, 0.0))
        return torch.where(scores.isnan().any(-1, keepdim=True), math.nan, p)


def _everywhere(scores: Tensor) -> Tensor:
    """Nothing is left out."""
    return torch.ones_like(scores, dtype=torch.bool)


class SequentialSoftmax(MaskMethod):
    """k softmaxes in a row, each of which makes its winners unlikely for the next:

        p_j = softmax(α_j/τ)      α_1 = x      α_{j+1} = α_j + log(1 - p_j)      p = Σ_{j≤k} p_j

    With a k that is not whole, the last softmax counts in part. The mass is k.

    What it breaks: an element that wins twice has p > 1; log(1 - p) is not measured in units of the
    scores, so that scores and temperature cannot be rescaled together; equal scores make each other
    unlikely, so that others may overtake them, even as τ → 0; and n rounds do not take everything.
    Papers: Plötz & Roth (2018); Xie & Ermon (2019).

    >>> import torch, softorder as so
    >>> scores = torch.tensor([2.0, 1.0, 0.0])
    >>> so.soft_topk(scores, 2, method=so.relaxations.SequentialSoftmax(), temperature=0.5)
    tensor([0.9927, 0.8656, 0.1418])
    """

    name = "sequential_softmax"
    good_for = "comparing with Xie & Ermon: k softmaxes, softly without what was taken"
    cost = "O(n k)"
    paper = "Plötz & Roth (2018); Xie & Ermon (2019)"
    breaks = MappingProxyType(
        {
            "soft_topk": (
                "stays_between_zero_and_one",
                "order_is_preserved",
                "equal_scores_get_equal_shares",
                "raising_a_score_helps_it_alone",
                "cold_limit_is_hard",
                "what_the_top_leaves_is_the_bottom",
                "only_scores_over_temperature_count",
                "works_at_huge_and_tiny_scales",
                "too_few_available_are_all_taken",
                "k_n_takes_everything",
            )
        }
    )

    def soft_topk(
        self, scores: Tensor, k: Tensor, temperature: Tensor, most: int | None = None
    ) -> Tensor:
        settled = not (k.requires_grad or temperature.requires_grad)
        if settled and learns(scores) and _check.known_finite(scores):
            found: Tensor = _Rounds.apply(scores, k, temperature, most, self._plain)
            return found
        return recomputed(partial(self._plain, most=most), scores, k, temperature)

    def _plain(self, scores: Tensor, k: Tensor, temperature: Tensor, most: int | None) -> Tensor:
        return super().soft_topk(scores, k, temperature, most)

    def log_masses(
        self, scores: Tensor, index: Tensor, ks: tuple[int, ...], temperature: Tensor
    ) -> Tensor:
        if not _check.known_finite(scores):
            return log_masses_again(self, scores, index, ks, temperature)
        return recomputed(partial(_log_sums, ks=ks), scores, index, temperature)

    def _mask(
        self, x: Tensor, live: Tensor, k: Tensor, temperature: Tensor, most: int | None
    ) -> Tensor:
        total = torch.zeros_like(x)
        for turn in _turns(x, live, row_weights(k, x, most), temperature):
            total = total + turn.weight * turn.p
        return total


def _log_sums(scores: Tensor, index: Tensor, temperature: Tensor, ks: tuple[int, ...]) -> Tensor:
    """What one entry of each row has of the first k softmaxes, for several k."""
    turns = _turns(scores, _everywhere(scores), scores.new_ones(max(ks)), temperature)
    own = torch.cat([taken(turn.p, index.unsqueeze(-1)) for turn in turns], -1).cumsum(-1)
    return log_of(own[:, [k - 1 for k in ks]])


class _Turn(NamedTuple):
    """One of the softmaxes: how much it counts, p, log(1 - p), and where its largest is."""

    weight: Tensor
    p: Tensor
    log_rest: Tensor
    place: Tensor


def _turns(x: Tensor, live: Tensor, weights: Tensor, temperature: Tensor) -> Iterator[_Turn]:
    """Softmaxes of finite x among what is live, one after the other."""
    scale, half, lost = _scale(temperature, x), 0.5 * x, torch.zeros_like(x)
    for weight in weights.unbind(-1):
        turn = _Turn(weight.unsqueeze(-1), *_winners(half, lost, live, scale))
        yield turn
        live = live & turn.log_rest.isfinite()
        lost = lost + 0.5 * torch.where(live, turn.log_rest, 0.0)


def _scale(temperature: Tensor, x: Tensor) -> Tensor:
    """2/τ: scores come in halves, whose differences do not overflow."""
    return 2 * inverse(temperature, x.dtype).clamp(max=0.5 * torch.finfo(x.dtype).max)


class _Rounds(torch.autograd.Function):
    """The mask of finite scores, whose derivative asks for the softmaxes only.

    From the last of them to the first, with upstream v and a the gradient of log(1 - p),

        ∂L/∂z = p ⊙ (w v - <p, w v>) + p Σ t - t      t = a ⊙ p/(1 - p)      z = α_j/τ

    For the largest, whose 1 - p may round to 0, p t - t is - a p. Where even its logarithm is far
    down, in the cold, and for second derivatives, the plain path is taken.
    """

    @staticmethod
    def forward(
        ctx: Any, scores: Tensor, k: Tensor, temperature: Tensor, most: int | None, plain: Any
    ) -> Tensor:
        ctx.most, ctx.plain = most, plain
        weights = row_weights(torch.where(k > 0, k, 0.0), scores, most)
        kept, total = [], torch.zeros_like(scores)
        for turn in _turns(scores, _everywhere(scores), weights, temperature):
            total += turn.weight * turn.p
            rest = turn.log_rest.gather(-1, turn.place).exp()
            kept += [turn.weight, turn.p, rest, turn.place]
        faint = torch.finfo(scores.dtype).tiny * _FAR_FROM_TINY
        ctx.ordinary = all(bool((rest > faint).all()) for rest in kept[2::4])
        ctx.save_for_backward(scores, k, temperature, *(kept if ctx.ordinary else []))
        return total

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        _check.dense("the gradient", upstream)
        scores, k, temperature, *kept = ctx.saved_tensors
        others = None, None, None, None
        if torch.is_grad_enabled() or not (ctx.ordinary and _check.eager()):
            with torch.enable_grad():
                plain = ctx.plain(scores, k, temperature, ctx.most)
            return *wanted(plain, (scores,), (True,), upstream), *others
        scale, after = _scale(temperature, scores), torch.zeros_like(scores)
        for i in range(len(kept) - 4, -1, -4):
            after = after + scale * _turn_vjp(upstream, 0.5 * after, *kept[i : i + 4])
        return 0.5 * after, *others


def _turn_vjp(
    upstream: Tensor, after: Tensor, weight: Tensor, p: Tensor, rest: Tensor, place: Tensor
) -> Tensor:
    """The gradient of z, from those of p and of log(1 - p); 1 - p of the largest is `rest`."""
    pull = weight * upstream
    first, own = p.gather(-1, place), after.gather(-1, place)
    t = (after * p).div_(1 - p).scatter_(-1, place, 0.0)
    total = t.sum(-1, keepdim=True)
    pull = p * (pull - (p * pull).sum(-1, keepdim=True))
    theirs = (p * (total + own * first / rest)).sub_(t)
    return pull + theirs.scatter_(-1, place, first * (total - own))


def _winners(
    half: Tensor, lost: Tensor, live: Tensor, scale: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """p = softmax(α/τ) over what is live, log(1 - p), exact where p rounds to 1, and the largest.

    α/2 comes as two terms, x/2 and what previous winners lost, whose sum would round away either.
    """
    place = _largest((half + lost).detach(), live)
    place = _largest(_above(half, lost, live, place).detach(), live)  # seen without their sum
    z = _above(half, lost, live, place).clamp(max=0.0) * scale
    weight = torch.where(live, torch.exp(torch.where(live, z, 0.0)), 0.0)
    total = weight.sum(-1, keepdim=True)
    p = torch.where(live, weight / torch.where(total > 0, total, 1.0), 0.0)
    leads = torch.arange(half.shape[-1], device=half.device) == place
    # only one can have more than half: equals keep equal rests, whose logarithms are divided by τ
    most = leads & (p > 0.5)
    rest = torch.where(most, 1.0, 1 - torch.where(most, 0.0, p))
    left = _log_sum(z, live & ~leads) - torch.log(torch.where(total > 0, total, 1.0))
    return p, torch.where(most, left, torch.log(rest)), place


def _above(half: Tensor, lost: Tensor, live: Tensor, place: Tensor) -> Tensor:
    """By how much α/2 is above that in one place."""
    one, other = (v - torch.where(live, v, 0.0).detach().gather(-1, place) for v in (half, lost))
    return one + other


def _largest(values: Tensor, live: Tensor) -> Tensor:
    return torch.where(live, values, -math.inf).argmax(-1, keepdim=True)


def _log_sum(z: Tensor, which: Tensor) -> Tensor:
    """log Σ e^z over some, which may all underflow; -inf over none."""
    top = torch.where(which, z.detach(), -math.inf).amax(-1, keepdim=True)
    some = top.isfinite()
    off = torch.where(which & some, z - torch.where(some, top, 0.0), 0.0)
    total = torch.where(which & some, torch.exp(off), 0.0).sum(-1, keepdim=True)
    return torch.where(some, top + torch.log(torch.where(some, total, 1.0)), -math.inf)


class SoftmaxKTimes(MaskMethod):
    """k softmaxes, each without the winners of those before it. With x_(1) >= x_(2) >= ... ,

        p_(r) = Σ_{j ≤ min(k,r)} exp(x_(r)/τ)/Z_j      Z_j = Σ_{i ≥ j} exp(x_(i)/τ)

    The winner is hard: the largest of what is left, of equal ones that with the lowest index. With
    a k that is not whole, the last softmax counts in part. The mass is k. The derivative is that of
    the softmaxes, the winners held fixed.

    Behind the last winner all p are proportional to exp(x/τ), so that only winners meet in pairs:

        p_(r) = exp((x_(r) - x_(k))/τ) p_(k)           r > k

    What it breaks: one that loses several softmaxes closely has p > 1, and more than the larger
    scores that won them; it jumps where two winners change places; equal scores differ, by the
    order in which they are given, so that nothing is even as τ → ∞ and ties are unlike the hard
    ones as τ → 0; and n rounds do not take everything.
    Paper: SOFT top-k (Xie et al. 2020), "softmax k times", a baseline of its nearest neighbours.

    >>> import torch, softorder as so
    >>> scores = torch.tensor([2.0, 1.0, 0.0])
    >>> so.soft_topk(scores, 2, method=so.relaxations.SoftmaxKTimes(), temperature=0.5)
    tensor([0.8668, 0.9981, 0.1351])
    """

    name = "softmax_k_times"
    good_for = "comparing with SOFT top-k's baseline: k softmaxes, without the winners"
    smoothness = "smooth, jumps at ties"
    cost = "O(n log n + k²)"
    paper = "SOFT top-k (Xie et al. 2020), its baseline"
    breaks = MappingProxyType(
        {
            "soft_topk": (
                "stays_between_zero_and_one",
                "order_is_preserved",
                "equal_scores_get_equal_shares",
                "all_equal_scores_get_k_over_n",
                "follows_a_permutation",
                "raising_a_score_helps_it_alone",
                "cold_limit_is_hard",
                "warm_limit_is_even",
                "what_the_top_leaves_is_the_bottom",
                "too_few_available_are_all_taken",
                "k_n_takes_everything",
            )
        }
    )

    def log_masses(
        self, scores: Tensor, index: Tensor, ks: tuple[int, ...], temperature: Tensor
    ) -> Tensor:
        return log_masses_again(self, scores, index, ks, temperature)

    def _mask(
        self, x: Tensor, live: Tensor, k: Tensor, temperature: Tensor, most: int | None
    ) -> Tensor:
        scale, weights = inverse(temperature, x.dtype), row_weights(k, x, most)
        # the sort is stable
        order = sort(torch.where(live, -x.detach(), math.inf)).order
        x, live = x.gather(-1, order), live.gather(-1, order)
        last = weights.shape[-1] - 1
        behind = _decay(x[..., last:] - x[..., last : last + 1], live[..., last:], scale)
        x, live = x[..., : last + 1], live[..., : last + 1]
        place = torch.arange(last + 1, device=x.device)
        left = live.unsqueeze(-2) & (place >= place.unsqueeze(-1))  # to score i in round j
        pairs = _decay(x.unsqueeze(-2) - x.unsqueeze(-1), left, column(scale))
        total = pairs[..., :-1].sum(-1) + pairs[..., -1] * behind.sum(-1, keepdim=True)
        share = torch.where(total > 0, weights / torch.where(total > 0, total, 1.0), 0.0)
        p = (share.unsqueeze(-1) * pairs).sum(-2)
        p = torch.cat([p, p[..., -1:] * behind[..., 1:]], -1)
        return torch.empty_like(p).scatter(-1, order, p)


def _decay(difference: Tensor, live: Tensor, scale: Tensor) -> Tensor:
    """exp(difference/τ) where it is live, else 0."""
    live = live & (difference * scale > _NOTHING)  # an infinite one has no derivative in τ
    exponent = torch.where(live, difference, 0.0) * scale
    return torch.where(live, torch.exp(exponent), 0.0)


class RenormalizedSigmoid(MaskMethod):
    """Sigmoids, scaled to the mass k: down if they have more, their complements down if less,

        p_i = k σ(x_i/τ)/s                              k ≤ s,   s = Σ_l σ(x_l/τ)
        p_i = 1 - (n - k) σ(-x_i/τ)/(n - s)             k ≥ s

    so that p stays in [0, 1]. It has a kink where k = s.

    What it breaks: as τ → 0 all positive scores share k, not the k largest (or, if they are fewer,
    all others share what they leave); a common shift of the scores changes p.
    Paper: Pervez et al. (2023).

    >>> import torch, softorder as so
    >>> scores = torch.tensor([2.0, 1.0, 0.0])
    >>> so.soft_topk(scores, 2, method=so.relaxations.RenormalizedSigmoid(), temperature=0.5)
    tensor([0.8312, 0.7456, 0.4232])
    """

    name = "renormalized_sigmoid"
    good_for = "comparing with Pervez et al.: a sigmoid, scaled to sum to k"
    smoothness = "continuous, by pieces smooth"
    cost = "O(n)"
    paper = "Pervez et al. (2023)"
    breaks = MappingProxyType({"soft_topk": ("cold_limit_is_hard", "ignores_a_shift")})

    def soft_topk(
        self, scores: Tensor, k: Tensor, temperature: Tensor, most: int | None = None
    ) -> Tensor:
        plain = partial(super().soft_topk, most=most)
        return recomputed(plain, scores, k, temperature)

    def _mask(
        self, x: Tensor, live: Tensor, k: Tensor, temperature: Tensor, most: int | None
    ) -> Tensor:
        scale = inverse(temperature, x.dtype)
        size = k.unsqueeze(-1).to(x.dtype)
        rest = live.sum(-1, keepdim=True) - size
        more = rest > 0
        rest = torch.where(more, rest, 0.0)  # with k = n nothing moves
        mass = torch.where(live, torch.sigmoid(x * scale), 0.0).sum(-1, keepdim=True)
        down = more & (size <= mass)
        share = _shares(torch.where(down, x, -x), scale, live)
        return torch.where(down, size * share, 1 - rest * share)


def _shares(x: Tensor, scale: Tensor, live: Tensor) -> Tensor:
    """σ(z)/Σ σ(z) over what is live, z = x scale, also where all σ underflow: there log σ(z) is z.

    z itself may overflow then, but not its distance from the largest one, which is 0.
    """
    live = live | ~live.any(-1, keepdim=True)
    top = torch.where(live, x.detach(), -math.inf).amax(-1, keepdim=True)
    deep = top * scale < _DEEP
    if _check.at_hand(deep) and not deep.any():
        logs = functional.logsigmoid(x * scale)
        return torch.softmax(torch.where(live, logs, -math.inf), -1)
    z = torch.where(deep, x - top, x) * scale
    logs = torch.where(deep, z, functional.logsigmoid(z))
    return torch.softmax(torch.where(live, logs, -math.inf), -1)


register(SequentialSoftmax(), aliases=("relaxed_subset", "iterative_softmax"))
register(SoftmaxKTimes(), aliases=("k_times_softmax", "softmax_augmentation", "topk_softmax"))
register(RenormalizedSigmoid(), aliases=("renormalised_sigmoid", "ncpss"))

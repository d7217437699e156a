"""Ranks and sorts by projection in plain torch, differentiable: the blocks are constants.

With s and w, the point and the vector, both sorted, and the blocks B of an isotonic regression,

    l2:  s_i - mean_B(s) + mean_B(w)        kl:  s_i - log Σ_B e^s + log Σ_B e^w
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from softorder import _check
from softorder.kernels import _autograd, isotonic
from softorder.kernels._operators import no_gradient
from softorder.kernels.formulas import factor_for
from softorder.kernels.sort import sort
from softorder.kernels.sort.completion import Completion

_FAR = 1e9  # where a place, or the logarithm of one, is not exact beside a score


def result(
    scores: Tensor, temperature: Tensor, descending: bool, entropic: bool, *, name: str
) -> Tensor:
    """rank: the projection of scores/τ onto the hull of the orders of 1, ..., n.

    sort: that of (n, ..., 1)/τ onto the hull of the orders of the scores, or its mirror.
    """
    compute = _ranks if name == "projected_rank" else _values
    if _check.known_finite(scores):
        return compute(scores, None, temperature, descending, entropic)[0]
    exceptions = Completion.of(scores, descending)
    x = exceptions.only_finite(scores)
    found, _ = compute(x, exceptions.live, temperature, descending, entropic)
    if name == "projected_rank":
        return exceptions.complete_ranks(found)
    return exceptions.complete_values(found)


def project(
    scores: Tensor, temperature: Tensor, descending: bool, entropic: bool, *, name: str
) -> tuple[Tensor, ...]:
    """The operator: the result; the scores in ascending order, where they came from, and the first
    places of the blocks, with the number of finite scores behind them; after that, anything.
    """
    values, order = sort(scores)
    found = result(scores, temperature, descending, entropic, name=name)
    live = scores.isfinite()
    x = torch.where(live, scores, 0.0)
    compute = _ranks if name == "projected_rank" else _values
    _, first = compute(x, live, temperature, descending, entropic)
    return found, values, order.int(), _starts(first, live.sum(-1, keepdim=True))


def vjp(
    upstream: Tensor,
    kept: Sequence[Tensor],
    temperature: Tensor,
    descending: bool,
    by_temperature: bool,
    entropic: bool,
    *,
    name: str,
) -> tuple[Tensor, Tensor]:

    def again(scores: Tensor) -> Tensor:
        return result(scores, temperature, descending, entropic, name=name)

    (by_scores,) = _autograd.vjp(again, kept[:1], upstream)
    return by_scores, no_gradient(by_scores)


def _ranks(
    x: Tensor, live: Tensor | None, temperature: Tensor, descending: bool, entropic: bool
) -> tuple[Tensor, Tensor]:
    """Of what is live, from 1; and the first place of every place's block."""
    z, order, there = _from_the_top(x.double(), live, negated=descending)
    places = _places_down(there)
    if entropic:
        places = places.log()
    # Measured from the middle one, so that an outlier does not cost the others their digits.
    middle = (there.sum(-1, keepdim=True) // 2).clamp(max=x.shape[-1] - 1)
    tau, s = temperature.unsqueeze(-1), z - z.detach().gather(-1, middle)
    far = (there & ~((s.detach() / tau.detach()).abs() < _FAR)).any(-1, keepdim=True)
    if not _check.at_hand(far) or bool(far.any()):
        near = torch.where(far, 0.0, s) / tau  # nothing infinite, which would spoil what τ gets
        s = torch.where(far, _capped(torch.where(far, z, 0.0), tau), near)
    else:
        s = s / tau
    ranks, first = _project(s, places, there, entropic)
    if entropic:
        ranks = ranks.exp()
    return torch.empty_like(ranks).scatter(-1, order, ranks).to(x.dtype), first


def _capped(z: Tensor, tau: Tensor) -> Tensor:
    """z/τ where places are lost beside it: the sum of its gaps, each of them at most 4 n.

    Blocks on either side of such a gap are not pooled: the means of their places differ by less
    than n, and the logarithms of sums of these by less still.
    """
    most = 4.0 * z.shape[-1]
    gap = z[..., :-1] - z[..., 1:]
    near = gap.detach() / tau.detach() < most
    gap = torch.where(near, torch.where(near, gap, 0.0) / tau, most)
    return torch.nn.functional.pad(-gap.cumsum(-1), (1, 0))


def _values(
    x: Tensor, live: Tensor | None, temperature: Tensor, descending: bool, entropic: bool
) -> tuple[Tensor, Tensor]:
    """Sorted, first the live ones; and the blocks."""
    z, _, there = _from_the_top(x.double(), live, negated=not descending)
    target = _places_down(there) / temperature.unsqueeze(-1)
    factor = None if entropic else factor_for(z.detach().abs().amax(-1, keepdim=True))
    if factor is not None:  # which "kl" does without: it adds no scores
        z, target = factor * z, factor * target
    t, first = _project(target.expand_as(z), z, there, entropic)
    t = t if factor is None else t / factor
    return (t if descending else -t).to(x.dtype), first


def _project(s: Tensor, w: Tensor, there: Tensor, entropic: bool) -> tuple[Tensor, Tensor]:
    """The projection of s, both descending, where there is something; and the blocks."""
    s, w = torch.where(there, s, 0.0), torch.where(there, w, 0.0)
    regularization = "kl" if entropic else "l2"
    first = isotonic.blocks(torch.where(there, s, -math.inf), w, regularization)
    average = _log_sum if entropic else _mean
    # Relative to the first of a block, s is exact however large it is, and nothing overflows.
    start = w.detach().gather(-1, first)
    ds, dw = s - s.detach().gather(-1, first), w - start
    return (ds - average(ds, first)) + (start + average(dw, first)), first


def _starts(first: Tensor, count: Tensor) -> Tensor:
    """The first places of the blocks among the first `count` places, then that number."""
    n = first.shape[-1]
    place = torch.arange(n, device=first.device)
    begins = (first == place) & (place < count)
    starts = torch.where(begins, place, count).sort(-1).values
    return starts.int()


def _from_the_top(x: Tensor, live: Tensor | None, negated: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Scores, or their negatives, from the largest down, the order, and which places are live."""
    if live is not None:
        x = torch.where(live, x, math.inf if negated else -math.inf)
    order = sort(x).order
    order = order if negated else order.flip(-1)
    there = torch.ones_like(x, dtype=torch.bool) if live is None else live.gather(-1, order)
    z = torch.where(there, x.gather(-1, order), 0.0)
    return -z if negated else z, order, there


def _places_down(there: Tensor) -> Tensor:
    """m, ..., 2, 1 for the m elements of a row, and 1 behind them."""
    place = torch.arange(there.shape[-1], device=there.device)
    return (there.sum(-1, keepdim=True) - place).clamp(min=1).double()


def _sum(v: Tensor, first: Tensor) -> Tensor:
    """Over each block, at all of its places."""
    return torch.zeros_like(v).scatter_add(-1, first, v).gather(-1, first)


def _mean(v: Tensor, first: Tensor) -> Tensor:
    return _sum(v, first) / _sum(torch.ones_like(v), first)


def _log_sum(v: Tensor, first: Tensor) -> Tensor:
    """log Σ e^v, where v is 0 at the first place of a block and nowhere more."""
    return _sum(v.exp(), first).log()

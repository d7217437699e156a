"""Rows of SoftSort and NeuralSort in plain torch, differentiable: a sort and a table of logits.

Where scores tie, |x_i - x_l| has a kink, and so has the j-th of them. There the derivative is the
mean of those on all sides: 0 for |x_i - x_l|, and an equal share for each of those that tie.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from softorder import _check
from softorder.kernels import _autograd
from softorder.kernels._operators import no_gradient
from softorder.kernels.formulas import column, factor_for, inverse, multiplied
from softorder.kernels.sort import sort
from softorder.kernels.sort.completion import Completion
from softorder.kernels.sort.rows import sums_before, ties


def matrix(scores: Tensor, temperature: Tensor, descending: bool, family: str, k: int) -> Tensor:
    """The first k rows (..., k, n) of the permutation."""
    if _check.known_finite(scores):
        return _finite_rows(scores, None, temperature, descending, family, k)
    exceptions = Completion.of(scores, descending)
    x = exceptions.only_finite(scores)
    p = _finite_rows(x, exceptions.live, temperature, descending, family, k)
    return exceptions.complete_rows(p)


def rows(
    scores: Tensor, temperature: Tensor, descending: bool, family: str, k: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The operator: these, the places of the finite scores in order, and their number."""
    p = matrix(scores, temperature, descending, family, k)
    live = scores.isfinite()
    first = torch.where(live, -scores if descending else scores, math.inf)
    return p, sort(first).order.int(), live.sum(-1, dtype=torch.int32)


def vjp(
    upstream: Tensor,
    kept: Sequence[Tensor],
    temperature: Tensor,
    descending: bool,
    by_temperature: bool,
    family: str,
    k: int,
) -> tuple[Tensor, Tensor]:
    def result(scores: Tensor) -> Tensor:
        return matrix(scores, temperature, descending, family, k)

    (by_scores,) = _autograd.vjp(result, kept[:1], upstream)
    return by_scores, no_gradient(by_scores)


def _finite_rows(
    x: Tensor, live: Tensor | None, temperature: Tensor, descending: bool, family: str, k: int
) -> Tensor:
    """Of finite scores, of which only what is live (None: all) takes part."""
    n = x.shape[-1]
    factor = factor_for(x.detach().abs().amax(-1, keepdim=True)) if n else None
    if factor is not None:
        x, temperature = factor * x, multiplied(temperature, factor)
    ordered = sort((x if live is None else torch.where(live, x, torch.inf)).detach())
    place = torch.arange(k, device=x.device).expand(*x.shape[:-1], k)
    count = torch.full_like(x[..., :1], n) if live is None else live.sum(-1, keepdim=True)
    if descending:
        place = count.long() - 1 - place
    order = _Order(ordered.order, *ties(ordered.values))
    logits = _LOGITS[family](x, live, order, place.clamp(0, n - 1), count.to(x.dtype))
    scale = column(inverse(temperature, logits.dtype))
    return _softmax(logits, live, scale, x.dtype)


class _Order(NamedTuple):
    """What sorts the scores; and the places [first, last) that each shares with its equals."""

    places: Tensor
    first: Tensor
    last: Tensor

    def sums(self, ordered: Tensor) -> tuple[Tensor, Tensor]:
        """Σ of what is in order, before the first of each one's equals and up to the last."""
        return sums_before(ordered, self.first, self.last)


# ---- the logits (..., k, n) of k ascending places; `order` sorts x, `count` of them are live ----


def _softsort(
    x: Tensor, live: Tensor | None, order: _Order, place: Tensor, count: Tensor
) -> Tensor:
    ordered = x.gather(-1, order.places)
    before, upto = order.sums(ordered - ordered.detach())
    share = (upto - before) / (order.last - order.first)  # 0, with the derivative of a mean
    anchors = (ordered.detach() + share).gather(-1, place)
    gap = anchors.unsqueeze(-1) - x.unsqueeze(-2)
    return -torch.maximum(gap, -gap)  # |gap|, which inductor 2.13 differentiates wrongly here


def _neuralsort(
    x: Tensor, live: Tensor | None, order: _Order, place: Tensor, count: Tensor
) -> Tensor:
    """Large parts of the logits cancel: these are for derivatives only, and in float64."""
    x = x.double()
    drop = _drop(x.detach().gather(-1, order.places), place, count)
    drop = torch.empty_like(drop).scatter(-1, order.places.unsqueeze(-2).expand(drop.shape), drop)
    x = x - x.detach().gather(-1, order.places[..., :1])
    distances = _distances(x if live is None else torch.where(live, x, 0.0), order, count.double())
    slope = (2 * place + 1 - count).unsqueeze(-1)
    logits = slope * x.unsqueeze(-2) - distances.unsqueeze(-2)
    return (logits - logits.detach()) - drop


def _drop(ordered: Tensor, place: Tensor, count: Tensor) -> Tensor:
    """How far the logits of row j are below that of the score in place j, (..., k, n) in order.

    Of sorted scores, from p to i > p: Σ_{m=p}^{i-1} (2(m - p) + 1) (x_{m+1} - x_m), and likewise
    on the other side. All terms are positive, so that an outlier costs the others no digits.
    """
    gap = ordered.diff(dim=-1)
    m = torch.arange(gap.shape[-1], device=gap.device)
    gap = torch.where(m + 1 < count, gap, 0.0).unsqueeze(-2)
    ahead = m - place.unsqueeze(-1)
    above = torch.where(ahead >= 0, (2 * ahead + 1) * gap, 0.0).cumsum(-1)
    below = torch.where(ahead < 0, -(2 * ahead + 1) * gap, 0.0).flip(-1).cumsum(-1).flip(-1)
    return torch.nn.functional.pad(above, (1, 0)) + torch.nn.functional.pad(below, (0, 1))


_LOGITS: dict[str, Callable[..., Tensor]] = {"softsort": _softsort, "neuralsort": _neuralsort}


def _distances(x: Tensor, order: _Order, count: Tensor) -> Tensor:
    """Σ_l |x_i - x_l| over the first `count` of the sorted scores, x being 0 behind them.

    With x_i's equals at the places [p, q), C_p the sum of what is before p, and T the sum of all:
    (p + q - n) x_i + T - C_p - C_q.
    """
    ordered = x.gather(-1, order.places)
    before, upto = order.sums(ordered)
    sums = (order.first + order.last - count) * ordered + ordered.sum(-1, keepdim=True)
    sums = sums - before - upto
    return torch.empty_like(sums).scatter(-1, order.places, sums)


def _softmax(logits: Tensor, live: Tensor | None, scale: Tensor, dtype: torch.dtype) -> Tensor:
    """The softmax of scale × logits over what is live, however large the scale."""
    if live is None:
        z = (logits - logits.detach().amax(-1, keepdim=True)) * scale
        return torch.softmax(z.to(dtype), -1)
    live = live.unsqueeze(-2) | ~live.any(-1, keepdim=True).unsqueeze(-1)  # never nothing at all
    top = torch.where(live, logits.detach(), -torch.inf).amax(-1, keepdim=True)
    return torch.softmax(torch.where(live, (logits - top) * scale, -torch.inf).to(dtype), -1)

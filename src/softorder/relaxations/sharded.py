"""Threshold methods of rows that are cut among ranks: p and log p of one's own scores, and b.

A rank finds the threshold of the whole row with the others, and computes p of what it has. With
d = f(u)/τ, q = d/Σd over all ranks, and upstream v of one's own p,

    ∂L/∂x = d ⊙ (v - <q,v>)     ∂L/∂k = <q,v>     ∂L/∂τ = -Σ v d (u - <q,u>)

where L is the sum of what the ranks lose: four sums of every row travel, once. For log p it is the
same with v = g/p, in logarithms: r = f(u)/F(u) takes the place of d/p, and q is a softmax of
log f(u). Second derivatives and forward mode come from the formulas, as on one machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from softorder import _check
from softorder.densities import Density
from softorder.kernels import _autograd
from softorder.kernels._compiler import outside_graphs
from softorder.kernels.formulas import exact_distance, inverse
from softorder.kernels.shards import Shards
from softorder.kernels.threshold import sharded
from softorder.kernels.threshold.sums import block_size
from softorder.relaxations.threshold import differentiable_distance


@outside_graphs  # the number of passes depends on the scores
def soft_topk(
    scores: Tensor, k: Tensor, temperature: Tensor, density: Density, shards: Shards, log: bool
) -> Tensor:
    """p, or log p, of one's own scores (..., n), whose rows go on at the other ranks."""
    rows, n = scores.shape[:-1], scores.shape[-1]
    k, temperature = (v.to(scores.device, torch.float64).expand(rows) for v in (k, temperature))
    scores = _padded(scores)
    if not _check.transformed():
        found: Tensor = _SoftTopK.apply(scores, k, temperature, density, shards, log)
    else:
        found = _by_formula(scores, k, temperature, density, shards, log)
    return found[..., :n]


@outside_graphs
def distance(
    scores: Tensor, k: Tensor, temperature: Tensor, density: Density, shards: Shards
) -> Tensor:
    """u = (x - b)/τ of one's own scores, with its derivatives, as far as u is finite."""
    rows = scores.shape[:-1]
    k, temperature = (v.to(scores.device, torch.float64).expand(rows) for v in (k, temperature))
    n, x = scores.shape[-1], _padded(scores)
    b = threshold(x, k, temperature, density, shards).to(x.dtype)
    numbers = shards.shared(k), shards.shared(temperature)
    return differentiable_distance(density.anchored, x, *numbers, b, True, shards)[..., :n]


def _padded(scores: Tensor) -> Tensor:
    """A rank with nothing takes part in every sum, with an element that takes none."""
    if scores.shape[-1] > 0:
        return scores
    return torch.cat([scores, scores.new_full((*scores.shape[:-1], 1), -math.inf)], -1)


def threshold(
    scores: Tensor, k: Tensor, temperature: Tensor, density: Density, shards: Shards
) -> Tensor:
    """b of every row as centre and rest, stacked, in float64; without a derivative."""
    rows, n = scores.shape[:-1], scores.shape[-1]
    k, temperature = (v.detach().expand(rows).reshape(-1) for v in (k, temperature))
    x = scores.detach().reshape(math.prod(rows), n)
    found = sharded.solve(x, k, temperature, density.anchored, shards)
    return found[:2].reshape(2, *rows)


def _by_formula(
    scores: Tensor, k: Tensor, temperature: Tensor, density: Density, shards: Shards, log: bool
) -> Tensor:
    """The same, differentiable twice and in forward mode."""
    law, b = density.anchored, threshold(scores, k, temperature, density, shards)
    numbers = shards.shared(k), shards.shared(temperature)
    u = differentiable_distance(law, scores, *numbers, b.to(scores.dtype), log, shards)
    return law.log_cdf(u) if log else law.cdf(u)


def blocks(scores: Tensor) -> Iterator[Any]:
    """Places on the last axis, as many at a time as a cache holds."""
    n, size = scores.shape[-1], block_size(scores)
    for start in range(0, n, size):
        yield (..., slice(start, min(start + size, n)))


class _SoftTopK(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        k: Tensor,
        temperature: Tensor,
        density: Density,
        shards: Shards,
        log: bool,
    ) -> Tensor:
        law = density.anchored
        b = threshold(scores, k, temperature, density, shards).to(scores.dtype)
        ctx.save_for_backward(scores, k, temperature, b)
        ctx.statics = density, shards, log
        p = torch.empty_like(scores)
        for place in blocks(scores):
            u = _distances(scores[place], b, temperature)
            p[place] = law.log_cdf(u) if log else law.cdf(u)
        return p

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        scores, k, temperature, b = ctx.saved_tensors
        density, shards, log = ctx.statics
        if torch.is_grad_enabled():
            inputs = [v for v in (scores, k, temperature) if v.requires_grad]
            with torch.enable_grad():
                result = _by_formula(scores, k, temperature, density, shards, log)
                found = iter(torch.autograd.grad(result, inputs, upstream, create_graph=True))
            firsts = [next(found) if v.requires_grad else None for v in (scores, k, temperature)]
            return *firsts, None, None, None
        if log:
            u = _distances(scores, b, temperature)
            rooted = b[0].isfinite().unsqueeze(-1)
            parts = _log_pulls(density.anchored, u, upstream, rooted, shards)
            gradients = _gradients(*parts, u, temperature, shards)
        else:
            gradients = _vjp(upstream, scores, temperature, b, density.anchored, shards)
        return *gradients, None, None, None


def _distances(scores: Tensor, b: Tensor, temperature: Tensor) -> Tensor:
    centre, rest = b.unsqueeze(-1)
    return exact_distance(scores, centre, rest, inverse(temperature, scores.dtype))


def _vjp(
    upstream: Tensor,
    scores: Tensor,
    temperature: Tensor,
    b: Tensor,
    law: Density,
    shards: Shards,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of p, with all but the result in blocks: the sums, then the scores."""
    rooted = b[0].isfinite().unsqueeze(-1)

    def parts(place: Any) -> tuple[Tensor, Tensor, Tensor]:
        u = _distances(scores[place], b, temperature)
        pdf = torch.where(rooted, law.pdf(u), 0.0)
        return torch.nan_to_num(u, nan=0.0, posinf=0.0, neginf=0.0), pdf, upstream[place] * pdf

    sums = scores.new_zeros((4, *rooted.shape), dtype=torch.float64)
    for place in blocks(scores):
        at, pdf, pull = parts(place)
        terms = pdf, pull, pdf * at, pull * at
        sums += torch.stack([v.sum(-1, keepdim=True, dtype=torch.float64) for v in terms])
    total, pulled, middle, turned = shards.add(sums)
    flat = total < torch.finfo(scores.dtype).tiny
    mean = torch.where(flat, 0.0, pulled / torch.where(flat, 1.0, total))
    scale = torch.where(flat, 0.0, inverse(temperature, torch.float64))
    by_scores = torch.empty_like(scores)
    for place in blocks(scores):
        _, pdf, pull = parts(place)
        by_scores[place] = (pull - pdf * mean.to(pdf.dtype)) * scale.to(pdf.dtype)
    by_temperature = (middle * mean - turned) * scale
    return by_scores, mean.squeeze(-1), by_temperature.squeeze(-1)


def _gradients(
    pull: Tensor,
    weight: Tensor,
    unit: Tensor,
    u: Tensor,
    temperature: Tensor,
    shards: Shards,
) -> tuple[Tensor, Tensor, Tensor]:
    """Of the scores, k and τ, from v f(u) and f(u): one sum over the ranks."""
    at = torch.nan_to_num(u, nan=0.0, posinf=0.0, neginf=0.0)
    parts = weight, pull, weight * at, pull * at
    sums = torch.stack([part.sum(-1, keepdim=True, dtype=torch.float64) for part in parts])
    total, pulled, place, turned = shards.add(sums)
    flat = total < torch.finfo(u.dtype).tiny
    mean = pulled / torch.where(flat, 1.0, total)
    scale = torch.where(flat, 0.0, inverse(temperature, torch.float64))
    by_scores = (pull - weight * mean.to(u.dtype)) * scale.to(u.dtype)
    by_temperature = (place * mean - turned) * scale
    by_k = torch.where(flat, 0.0, mean * unit)
    return by_scores, by_k.squeeze(-1), by_temperature.squeeze(-1)


def _log_pulls(
    law: Density, u: Tensor, upstream: Tensor, rooted: Tensor, shards: Shards
) -> tuple[Tensor, Tensor, Tensor]:
    """g f(u)/F(u); f(u) over the largest one; and one over that, 0 where it would overflow."""
    live = rooted & u.isfinite()
    at = torch.where(live, u, 0.0)
    rate = _autograd.by_autograd(law.log_cdf, at)
    pull = torch.where(live & law.log_cdf(at).isfinite(), upstream * rate, 0.0)
    log_pdf = torch.where(live, law.log_pdf(at), -math.inf)
    top = shards.most(log_pdf.amax(-1, keepdim=True))
    top = torch.where(top.isfinite(), top, 0.0)
    reach = -0.9 * math.log(torch.finfo(u.dtype).max)
    unit = torch.where(top > reach, torch.exp(-top.double()), 0.0)
    return pull, torch.exp(log_pdf - top), unit


# ---- numbers that all ranks have alike: thresholds and what follows from them -------------------


@outside_graphs
def quantiles(
    scores: Tensor, q: Tensor, temperature: Tensor, density: Density, shards: Shards
) -> Tensor:
    """t (..., m) with Σ_i F((t - x_i)/τ) = q n for q (..., m), in float64, alike on all ranks."""
    x, rows = scores.double(), scores.shape[:-1]
    present = shards.add((x > -math.inf).sum(-1, dtype=torch.float64))
    tau = temperature.to(x.device, torch.float64).expand(rows)
    found = []
    for level in q.expand(*rows, q.shape[-1]).unbind(-1):
        centre, rest = differentiable_threshold(x, (1 - level) * present, tau, density, shards)
        t = torch.where(centre.isinf(), centre, centre + rest + tau * density.anchored.middle)
        found.append(torch.where(present > 0, t, math.nan))
    return torch.stack(found, -1)


def differentiable_threshold(
    scores: Tensor, k: Tensor, temperature: Tensor, density: Density, shards: Shards
) -> tuple[Tensor, Tensor]:
    """b as centre and rest in float64; the derivatives of b are those of the rest."""
    scores = _padded(scores)
    found: tuple[Tensor, Tensor] = _Threshold.apply(scores, k, temperature, density, shards)
    return found


class _Threshold(torch.autograd.Function):
    """With q a softmax of log f(u): ∂b/∂x = q, ∂b/∂k = -τ/Σ f(u), ∂b/∂τ = -<q,u>."""

    @staticmethod
    def forward(
        ctx: Any, scores: Tensor, k: Tensor, temperature: Tensor, density: Density, shards: Shards
    ) -> tuple[Tensor, Tensor]:
        b = threshold(scores, k, temperature, density, shards)
        ctx.save_for_backward(scores, temperature, b)
        ctx.statics = density.anchored, shards
        ctx.mark_non_differentiable(b[0])
        return b[0], b[1]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, _: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        scores, temperature, b = ctx.saved_tensors
        law, shards = ctx.statics
        rooted = b[0].isfinite().unsqueeze(-1)

        def logarithms(place: Any) -> tuple[Tensor, Tensor]:
            u = _distances(scores[place].double(), b, temperature)
            live = rooted & u.isfinite()
            u = torch.where(live, u, 0.0)
            return u, torch.where(live, law.log_pdf(u), -math.inf)

        top = torch.full_like(rooted, -math.inf, dtype=torch.float64)
        for place in blocks(scores):
            top = torch.maximum(top, logarithms(place)[1].amax(-1, keepdim=True))
        top = shards.most(top)
        top = torch.where(top.isfinite(), top, 0.0)
        sums = top.new_zeros(2, *top.shape)
        for place in blocks(scores):
            u, log_pdf = logarithms(place)
            weight = torch.exp(log_pdf - top)
            sums += torch.stack([v.sum(-1, keepdim=True) for v in (weight, weight * u)])
        total, turned = shards.add(sums)
        flat = total == 0
        share = torch.where(flat, 0.0, upstream.unsqueeze(-1) / torch.where(flat, 1.0, total))
        by_scores = torch.empty_like(scores)
        for place in blocks(scores):
            by_scores[place] = share * torch.exp(logarithms(place)[1] - top)
        reach = -0.9 * math.log(torch.finfo(torch.float64).max)
        unit = torch.where(top > reach, torch.exp(-top), 0.0)
        by_k = -(share * unit).squeeze(-1) * temperature
        return by_scores, by_k, -(share * turned).squeeze(-1), None, None


def log_entries(
    scores: Tensor,
    index: Tensor,
    ks: tuple[int, ...],
    temperature: Tensor,
    density: Density,
    shards: Shards,
    first: int,
) -> Tensor:
    """log p of the elements `index` (rows,) of whole rows, for every k, (rows, len(ks)), alike.

    `first` is the place in the row of this rank's first score.
    """
    own = entry(scores.double(), index, shards, first)
    tau = temperature.to(scores.device, torch.float64).expand(scores.shape[:-1])
    logs = []
    for k in ks:
        size = torch.full_like(tau, float(k)).detach()
        centre, rest = differentiable_threshold(scores, size, tau, density, shards)
        scale = tau.reciprocal().clamp(max=torch.finfo(torch.float64).max)
        logs.append(density.anchored.log_cdf(exact_distance(own, centre, rest, scale)))
    return torch.stack(logs, -1)


def entry(scores: Tensor, index: Tensor, shards: Shards, first: int) -> Tensor:
    """The elements `index` (rows,) of whole rows, wherever they are, alike on all ranks."""
    n = scores.shape[-1]
    place = index - first
    if n == 0:
        mine = scores.sum(-1)  # 0, and part of the graph
    else:
        found = scores.gather(-1, place.clamp(0, n - 1).unsqueeze(-1)).squeeze(-1)
        mine = torch.where((place >= 0) & (place < n), found, 0.0)
    return shards.common(mine)

"""One entry of a row in plain torch: log p for several k, the loss of their mixture, gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from softorder import _check
from softorder.densities import Density
from softorder.kernels import threshold
from softorder.kernels._autograd import by_autograd
from softorder.kernels._density_numbers import density_of
from softorder.kernels._moved import taken
from softorder.kernels.formulas import distance, exact_distance

_FAINT = -60.0  # of log p_y: from here on 1/p_y is not for float32
_MOST = 600.0  # e^600 is a float64


def log_entries(
    scores: Tensor, index: Tensor, temperature: Tensor, ks: Sequence[int], density: int
) -> tuple[Tensor, Tensor]:
    """log p, and the thresholds."""
    law = density_of(density)
    b = torch.stack([_threshold(scores, k, temperature, law) for k in ks])
    u = _own_distance(scores, index, temperature, b)
    log_p = law.anchored.log_cdf(u)
    for j, k in enumerate(ks):
        if k == 0:
            one = torch.ones((), dtype=torch.float64, device=scores.device)
            log_p[:, j] = _own_distance(scores, index, one, b[j : j + 1]).squeeze(-1)
    return log_p, b


def loss(
    scores: Tensor,
    index: Tensor,
    temperature: Tensor,
    shares: Tensor,
    ks: Sequence[int],
    density: int,
    apart: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The loss of every row, log p, the derivatives of the one by the other, and thresholds."""
    absent = (index < 0).unsqueeze(-1)
    x = torch.where(absent, 0.0, scores.detach())
    log_p, b = log_entries(x, index.clamp(min=0), temperature, ks, density)
    log_p = torch.where(absent, 0.0, log_p)
    losses = torch.where(absent[:, 0], 0.0, mixture_loss(log_p, shares, apart))
    pull = shares * by_shares(log_p, shares, apart)
    if apart:
        pull[:, 0] = -shares[:, 0]
    return losses, log_p, torch.where(absent, 0.0, pull), b


def mixture_loss(log_p: Tensor, shares: Tensor, apart: bool) -> Tensor:
    """-log Σ_k share_k p_k; or, apart, with s the first share: -s log p_1 - (1 - s) log Σ_k≥2.

    0 where no share is above 0.
    """
    if not apart:
        return torch.where((shares > 0).any(-1), -log_mixture(shares, log_p), 0.0)
    first, rest = shares[:, 0], mixture_loss(log_p[:, 1:], shares[:, 1:], False)
    return (1 - first) * rest - first * log_p[:, 0]


def log_mixture(p: Tensor, log_s: Tensor) -> Tensor:
    """log Σ_k p_k S_k over the last axis, also where every S_k underflows; in float64."""
    if p.shape[-1] == 0:
        return torch.zeros_like(log_s.sum(-1))
    ratio, top = _over_the_largest(p, log_s)
    mixture = (p * ratio).sum(-1)
    some = mixture != 0  # NaN included
    log = torch.where(some, torch.log(torch.where(some, mixture, 1.0)), -math.inf)
    return log + top


def by_shares(log_p: Tensor, shares: Tensor, apart: bool) -> Tensor:
    """The derivatives of `mixture_loss` by the shares."""
    if apart:
        rest = by_shares(log_p[:, 1:], shares[:, 1:], False) * (1 - shares[:, :1])
        first = -log_p[:, 0] - mixture_loss(log_p[:, 1:], shares[:, 1:], False)
        return torch.cat([first.unsqueeze(-1), rest], -1)
    if shares.shape[-1] == 0:
        return torch.zeros_like(log_p)
    ratio, _ = _over_the_largest(shares, log_p)
    mixture = (shares * ratio).sum(-1, keepdim=True)
    some = (mixture != 0) & (shares > 0).any(-1, keepdim=True)
    return torch.where(some, -ratio / torch.where(some, mixture, 1.0), 0.0)


def log_softmax(scores: Tensor, index: Tensor) -> Tensor:
    """log softmax of one entry a row, differentiable; in float64, where differences are held.

    Scores of +inf share what there is, and beside them nothing moves.
    """
    top = scores.detach().amax(-1, keepdim=True)
    x = torch.where(top.isfinite(), scores, scores.detach())
    own = taken(x, index.unsqueeze(-1)).double()
    total = torch.logsumexp(_beyond(x, top), -1)
    return _beyond(own, top.double()).squeeze(-1) - total


def _beyond(x: Tensor, top: Tensor) -> Tensor:
    """x - top, of infinities too."""
    return torch.where((x == top) & top.isinf(), 0.0, x - top)


def _over_the_largest(p: Tensor, log_s: Tensor) -> tuple[Tensor, Tensor]:
    """Every S over the largest that has a share, and the logarithm of that one."""
    top = torch.where(p > 0, log_s.detach(), -math.inf).amax(-1, keepdim=True)
    top = torch.where(top.isfinite(), top, 0.0)
    # a k without weight may be far more certain than the others
    return torch.exp((log_s - top).clamp(max=_MOST)), top.squeeze(-1)


def vjp(
    upstream: Tensor,
    pull: Tensor,
    scores: Tensor,
    index: Tensor,
    temperature: Tensor,
    b: Tensor,
    ks: Sequence[int],
    density: int,
    by_temperature: bool,
) -> tuple[Tensor, Tensor]:
    """Gradients of the scores, and of the temperature of every row."""
    absent, law = (index < 0).unsqueeze(-1), density_of(density).anchored
    x, y = torch.where(absent, 0.0, scores), index.clamp(min=0)
    pull = torch.where(absent, 0.0, pull * upstream.unsqueeze(-1))
    u = _own_distance(x, y, temperature, b)
    log_p = law.log_cdf(u)
    total, by_row = torch.zeros_like(x), torch.zeros_like(log_p[:, 0])
    for j, k in enumerate(ks):
        if k == 0:  # nothing moves beside +inf
            own = torch.where(b[j, 0].isfinite(), pull[:, j], 0.0).unsqueeze(-1).to(x.dtype)
            total -= torch.where(own == 0, 0.0, own * torch.softmax(x, -1))
            total.scatter_add_(-1, y.unsqueeze(-1), own)
            continue
        problem = _Problem(x, y, temperature, b[j], law, density)
        one = problem.vjp(u[:, j], log_p[:, j], pull[:, j], by_temperature)
        total += one[0]
        by_row += one[1]
    return torch.where(absent, 0.0, total), by_row


@dataclass(frozen=True)
class _Problem:
    """One k: rows of scores, the element of each that is asked for, and the thresholds."""

    scores: Tensor
    index: Tensor
    temperature: Tensor
    b: Tensor
    law: Density
    number: int

    def vjp(
        self, u: Tensor, log_p: Tensor, upstream: Tensor, by_temperature: bool
    ) -> tuple[Tensor, Tensor]:
        """Gradients of the scores, and of temperature per row if wanted."""
        pull = _rate(self.law, u) * upstream  # g r
        weight = torch.where(pull == 0, 0.0, upstream * torch.exp(-log_p))
        faint = (log_p < _FAINT) & (pull != 0)
        if not _check.at_hand(faint):
            return self._vjp_of_all(u, pull, weight, faint, by_temperature)
        faint = faint.nonzero().squeeze(-1)
        if not len(faint):
            by_scores, _, by_row = self._kernel(self.index, weight, by_temperature)
            return by_scores, by_row
        # There a neighbour of the threshold carries the upstream, whose f does not underflow.
        most = 2 * len(faint) > len(u)  # then copying them takes longer than looking at all
        near, beside = self.nearest() if most else self.at(faint).nearest()
        near, beside = (near[faint], beside[faint]) if most else (near, beside)
        log_pdf = self.law.log_pdf(beside)
        weight[faint] = torch.where(log_pdf > _FAINT, pull[faint] * torch.exp(-log_pdf), 0.0)
        carrier = self.index.index_put((faint,), near)
        by_scores, by_k, by_row = self._kernel(carrier, weight, by_temperature)
        pull, across = pull / self.temperature, faint[log_pdf <= _FAINT]
        near, beside, faint = (v[log_pdf > _FAINT] for v in (near, beside, faint))
        share = by_k[faint] / weight[faint]
        by_scores[faint, near] = (-pull[faint] * share).to(by_scores.dtype)
        by_scores[faint, self.index[faint]] += pull[faint].to(by_scores.dtype)
        by_row[faint] -= pull[faint] * (u[faint] - beside)
        if len(across):
            found = self.at(across).vjp_in_logarithms(u[across], pull[across])
            by_scores[across], by_row[across] = found
        return by_scores, by_row

    def _vjp_of_all(
        self, u: Tensor, pull: Tensor, weight: Tensor, faint: Tensor, by_temperature: bool
    ) -> tuple[Tensor, Tensor]:
        """The same where it cannot be seen which rows are faint: all of them both ways."""
        weight = torch.where(faint, 0.0, weight)
        by_scores, _, by_row = self._kernel(self.index, weight, by_temperature)
        others, by_others = self.vjp_in_logarithms(u, pull / self.temperature)
        by_scores = torch.where(faint.unsqueeze(-1), others, by_scores)
        return by_scores, torch.where(faint, by_others, by_row)

    def at(self, rows: Tensor) -> _Problem:
        """Some of the rows."""
        tau = self.temperature if self.temperature.dim() == 0 else self.temperature[rows]
        return replace(
            self,
            scores=self.scores[rows],
            index=self.index[rows],
            temperature=tau,
            b=self.b[:, rows],
        )

    def nearest(self) -> tuple[Tensor, Tensor]:
        """The scores next to the threshold: which they are, and their u in float64."""
        near = (self.scores - self.b[0].unsqueeze(-1)).abs_().min(-1).indices
        return near, _own_distance(self.scores, near, self.temperature, self.b.unsqueeze(0))[:, 0]

    def _kernel(
        self, carrier: Tensor, weight: Tensor, by_temperature: bool
    ) -> tuple[Tensor, Tensor, Tensor]:
        """That of soft_topk, for an upstream of one entry per row."""
        by_scores, (by_k, *rest) = threshold.backward_of_one(
            weight, carrier, self.scores, self.temperature, self.b, self.number, by_temperature
        )
        return by_scores, by_k, rest[0] if by_temperature else torch.zeros_like(by_k)

    def vjp_in_logarithms(self, u: Tensor, pull: Tensor) -> tuple[Tensor, Tensor]:
        """Across a gap so wide that every f underflows: q is a softmax of log f."""
        every = distance(self.scores.double(), self.b.double(), self.temperature)
        share = torch.softmax(self.law.log_pdf(every), -1)
        mean = (share * torch.nan_to_num(every, posinf=0.0, neginf=0.0)).sum(-1)
        scale = pull.unsqueeze(-1)
        by_scores = (share * -scale).scatter_add_(-1, self.index.unsqueeze(-1), scale)
        return by_scores.to(self.scores.dtype), -pull * (u - mean)


def _threshold(scores: Tensor, k: int, temperature: Tensor, law: Density) -> Tensor:
    """(2, rows); for a softmax the largest score, and the logarithm of what its sum is beyond.

    Where that score is infinite, so many share it.
    """
    if k == 0:
        x = scores.detach()
        top = x.amax(-1, keepdim=True)
        return torch.stack([top.squeeze(-1), torch.logsumexp(_beyond(x, top), -1)])
    count = torch.full((), k, dtype=torch.float64, device=scores.device)
    return threshold.solve(scores, count, temperature, law).b


def _own_distance(scores: Tensor, index: Tensor, temperature: Tensor, b: Tensor) -> Tensor:
    """u of the elements themselves in float64, (rows, len(ks))."""
    own = scores.detach().gather(-1, index.unsqueeze(-1)).double()
    centre, rest = b.double().permute(1, 2, 0)
    scale = temperature.detach().reciprocal().clamp(max=torch.finfo(torch.float64).max)
    return exact_distance(own, centre, rest, scale.to(own.device).unsqueeze(-1))


def _rate(law: Density, u: Tensor) -> Tensor:
    """f(u)/F(u), the derivative of log F; 0 where log F is infinite."""
    rate = by_autograd(law.log_cdf, u)
    return torch.where(u.isfinite() & law.log_cdf(u).isfinite(), rate, 0.0)

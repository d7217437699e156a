"""The part of a top-k cross-entropy that a method computes: -log Σ_k p_k S_k."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from softorder.losses import _sharded
from softorder.losses._classes import Samples
from softorder.losses._mass import every_log_mass, log_masses
from softorder.losses._sharded import Cut

_MOST = 600.0  # e^600 is a float64


@dataclass(frozen=True)
class Mixture:
    """The part of the loss that a method computes."""

    method: object
    temperature: Tensor
    m: int | None
    label_smoothing: float

    def losses(
        self, samples: Samples, ks: tuple[int, ...], shares: Tensor, weight: Tensor | None
    ) -> Tensor:
        """-log Σ_k p_k S_k of every row over these k, weighted; 0 where they have no weight."""
        x, y, classes = _compete(samples, self.m)
        tau = samples.per_sample(self.temperature)
        p = shares[:, [k - 1 for k in ks]]
        cut = samples.cut if classes is None else None  # m classes are on all ranks
        if cut is None:
            masses = log_masses(self.method, x, y, ks, tau)
        else:
            masses = _sharded.log_masses(self.method, x, y, ks, tau, cut)
        losses = -_log_mixture(p, masses)
        own = None if weight is None else weight.double()[samples.target]
        losses = losses if own is None else losses * own
        if self.label_smoothing > 0:
            smooth = self.label_smoothing
            mean = self._mean_loss(x, ks, p.unsqueeze(-2), tau, weight, classes, cut)
            losses = (1 - smooth) * losses + smooth * mean
        return torch.where((p > 0).any(-1), losses, 0.0)

    def _mean_loss(
        self,
        x: Tensor,
        ks: tuple[int, ...],
        p: Tensor,
        tau: Tensor,
        weight: Tensor | None,
        classes: Tensor | None,
        cut: Cut | None,
    ) -> Tensor:
        """The mean over all classes, as if each were the target."""
        if cut is None:
            every = -_log_mixture(p, every_log_mass(self.method, x, ks, tau))
            if weight is not None:
                every = every * (weight if classes is None else weight[classes])
            return every.mean(-1)
        p = cut.shards.shared(p)
        every = -_log_mixture(p, _sharded.every_log_mass(self.method, x, ks, tau, cut))
        if weight is not None:
            every = every * cut.own(weight, x.shape[-1])
        return cut.shards.common(every.sum(-1)) / cut.classes


def _compete(samples: Samples, m: int | None) -> tuple[Tensor, Tensor, Tensor | None]:
    """The scores that compete, where the target is among them, and their classes if not all."""
    x, y = samples.scores, samples.target
    if m is None or m >= samples.classes:
        return x, y, None
    if samples.cut is not None:
        return _sharded.largest(x, y, m, samples.cut)
    classes = x.detach().topk(m, sorted=True).indices
    own = y.unsqueeze(-1)
    absent = (classes != own).all(-1, keepdim=True)
    last = torch.arange(m, device=x.device) == m - 1
    classes = torch.where(absent & last, own, classes)
    return x.gather(-1, classes), (classes == own).long().argmax(-1), classes


def _log_mixture(p: Tensor, log_s: Tensor) -> Tensor:
    """log Σ_k p_k S_k over the last axis, also where every S_k underflows; in float64."""
    top = torch.where(p > 0, log_s.detach(), -math.inf).amax(-1, keepdim=True)
    top = torch.where(top.isfinite(), top, 0.0)
    # a k without weight may be far more certain than the others
    mixture = (p * torch.exp((log_s - top).clamp(max=_MOST))).sum(-1)
    some = mixture != 0  # NaN included
    log = torch.where(some, torch.log(torch.where(some, mixture, 1.0)), -math.inf)
    return log + top.squeeze(-1)

"""The part of a top-k cross-entropy that a method computes: -log Σ_k p_k S_k."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from softorder.kernels.one_entry import log_mixture, log_softmax
from softorder.losses import _sharded
from softorder.losses._classes import Samples
from softorder.losses._mass import every_log_mass, log_masses
from softorder.losses._sharded import Cut


class Competitors(NamedTuple):
    """The scores that compete, where the target is among them, and their classes if not all."""

    scores: Tensor
    target: Tensor
    classes: Tensor | None
    cut: Cut | None  # m classes are on all ranks

    @staticmethod
    def of(samples: Samples, m: int | None) -> Competitors:
        x, y = samples.scores, samples.target
        if m is None or m >= samples.classes:
            return Competitors(x, y, None, samples.cut)
        if samples.cut is not None:
            return Competitors(*_sharded.largest(x, y, m, samples.cut), None)
        classes = x.detach().topk(m, sorted=True).indices
        own = y.unsqueeze(-1)
        absent = (classes != own).all(-1, keepdim=True)
        last = torch.arange(m, device=x.device) == m - 1
        classes = torch.where(absent & last, own, classes)
        return Competitors(x.gather(-1, classes), (classes == own).long().argmax(-1), classes, None)

    def log_total(self) -> Tensor:
        """The logarithm of a softmax's denominator."""
        return _log_total(self.scores, self.cut)

    def own(self) -> Tensor:
        """The score of the target."""
        if self.cut is not None:
            return _sharded.entry(self.scores, self.target, self.cut)
        return self.scores.gather(-1, self.target.unsqueeze(-1)).squeeze(-1)


@dataclass(frozen=True)
class Mixture:
    """The part of the loss that a method computes.

    Where `softmax` is "all" or "m", S_1 is that of a softmax over all classes, or over the m.
    """

    method: object
    temperature: Tensor
    m: int | None
    label_smoothing: float
    softmax: str | None = None

    def losses(
        self, samples: Samples, ks: tuple[int, ...], shares: Tensor, weight: Tensor | None
    ) -> Tensor:
        """-log Σ_k p_k S_k of every row over these k, weighted; 0 where they have no weight."""
        competitors = Competitors.of(samples, self.m)
        p = shares[:, [k - 1 for k in ks]]
        losses = -log_mixture(p, self._masses(samples, competitors, ks))
        own = None if weight is None else weight.double()[samples.target]
        losses = losses if own is None else losses * own
        if self.label_smoothing > 0:
            smooth = self.label_smoothing
            mean = self._mean_loss(samples, competitors, ks, p.unsqueeze(-2), weight)
            losses = (1 - smooth) * losses + smooth * mean
        return torch.where((p > 0).any(-1), losses, 0.0)

    def _masses(self, samples: Samples, competitors: Competitors, ks: tuple[int, ...]) -> Tensor:
        """log S_k of the targets, (rows, len(ks))."""
        x, y, _, cut = competitors
        asked, tau = self._asked(ks), samples.per_sample(self.temperature)
        masses = []
        if len(asked) < len(ks):
            masses.append(self._log_softmax(samples, competitors).unsqueeze(-1))
        if asked and cut is None:
            masses.append(log_masses(self.method, x, y, asked, tau))
        elif asked and cut is not None:
            masses.append(_sharded.log_masses(self.method, x, y, asked, tau, cut))
        return torch.cat([mass.double() for mass in masses], -1)

    def _mean_loss(
        self,
        samples: Samples,
        competitors: Competitors,
        ks: tuple[int, ...],
        p: Tensor,
        weight: Tensor | None,
    ) -> Tensor:
        """The mean over all classes that compete, as if each were the target."""
        x, _, classes, cut = competitors
        every = self._every_mass(samples, competitors, ks)
        if cut is None:
            every = -log_mixture(p, every)
            if weight is not None:
                every = every * (weight if classes is None else weight[classes])
            return every.mean(-1)
        every = -log_mixture(cut.shards.shared(p), every)
        if weight is not None:
            every = every * cut.own(weight, x.shape[-1])
        return cut.shards.common(every.sum(-1)) / cut.classes

    def _every_mass(
        self, samples: Samples, competitors: Competitors, ks: tuple[int, ...]
    ) -> Tensor:
        """log S_k of all that compete, (rows, n, len(ks)); of one's own, if they are cut."""
        x, _, _, cut = competitors
        asked, tau = self._asked(ks), samples.per_sample(self.temperature)
        masses = []
        if len(asked) < len(ks):
            total = self._log_total(samples, competitors)
            total = total if cut is None else cut.shards.shared(total)
            masses.append((x - total.unsqueeze(-1)).unsqueeze(-1))
        if asked and cut is None:
            masses.append(every_log_mass(self.method, x, asked, tau))
        elif asked and cut is not None:
            masses.append(_sharded.every_log_mass(self.method, x, asked, tau, cut))
        return torch.cat([mass.double() for mass in masses], -1)

    def _asked(self, ks: tuple[int, ...]) -> tuple[int, ...]:
        """The k that the method is asked for."""
        return ks if self.softmax is None else tuple(k for k in ks if k > 1)

    def _log_softmax(self, samples: Samples, competitors: Competitors) -> Tensor:
        """That of the targets."""
        if samples.cut is not None:
            return competitors.own() - self._log_total(samples, competitors)
        among = competitors if self.softmax == "m" else samples
        return log_softmax(among.scores, among.target)

    def _log_total(self, samples: Samples, competitors: Competitors) -> Tensor:
        if self.softmax == "m":
            return competitors.log_total()
        return _log_total(samples.scores, samples.cut)


def _log_total(scores: Tensor, cut: Cut | None) -> Tensor:
    return torch.logsumexp(scores, -1) if cut is None else _sharded.log_total(scores, cut)

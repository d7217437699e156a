"""Lists in the order of their scores, where equal ones share their places.

What stands at a place is drawn: every order of equal scores is as likely as any other. All metrics
are expectations over it, and none of them needs a draw.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad


@dataclass(frozen=True)
class Places:
    """Of every place of every list (..., n), in float64: what may stand there.

    A group are the elements whose scores are equal; `offset` counts the places in it from 1.
    """

    relevance: Tensor  # the relevances, in order
    first: Tensor  # of the group: the places [first, behind), from 0
    behind: Tensor
    live: Tensor  # whether anything stands there
    spoiled: Tensor  # lists with a NaN, (...)

    @staticmethod
    def of(x: Tensor, relevance: Tensor) -> Places:
        """From scores with absent ones at -inf."""
        x = x.detach()
        ordered, order = x.sort(dim=-1, descending=True, stable=True)
        place = torch.arange(x.shape[-1], device=x.device)
        new = torch.ones_like(ordered, dtype=torch.bool)
        new[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
        first = torch.where(new, place, 0).cummax(-1).values
        ends = pad(new[..., 1:], (0, 1), value=True)
        last = torch.where(ends, place, x.shape[-1]).flip(-1).cummin(-1).values.flip(-1)
        live = ordered != -math.inf
        wanted = torch.where(live, relevance.gather(-1, order).double(), 0.0)
        return Places(wanted, first, last + 1, live, x.isnan().any(-1))

    @property
    def number(self) -> Tensor:
        """Of the place: 1, 2, ..."""
        n = self.live.shape[-1]
        return torch.arange(1, n + 1, device=self.live.device, dtype=torch.float64)

    @property
    def size(self) -> Tensor:
        """Of the group."""
        return (self.behind - self.first).double()

    @property
    def offset(self) -> Tensor:
        return self.number - self.first

    @property
    def relevant(self) -> Tensor:
        """How many relevant elements every list has, (...)."""
        return (self.relevance > 0).sum(-1).double()

    def within(self, values: Tensor) -> Tensor:
        """The sum of the values over the group."""
        return self.before(values, self.behind) - self.before(values, self.first)

    def before(self, values: Tensor, place: Tensor) -> Tensor:
        """The sum of the values over the places in front of this one."""
        return pad(values.cumsum(-1), (1, 0)).gather(-1, place)

    def expected(self, values: Tensor) -> Tensor:
        """What stands at a place, on average."""
        return torch.where(self.live, self.within(values) / self.size, 0.0)

    def hits(self) -> Tensor:
        """The probability that something relevant stands there."""
        return self.expected((self.relevance > 0).double())

    def first_hits(self) -> Tensor:
        """The probability that it is the first relevant one.

        r of the d elements of a group are relevant, and none before it: the m-th is the first with
        probability C(d - m, r - 1)/C(d, r).
        """
        hit = (self.relevance > 0).double()
        r, d, m = self.within(hit), self.size, self.offset
        able = self.live & (self.before(hit, self.first) == 0) & (r > 0) & (m <= d - r + 1)
        r, m = torch.where(able, r, 1.0), torch.where(able, m, 1.0)
        logs = _log_choose(d - m, r - 1) - _log_choose(d, r)
        return torch.where(able, logs.exp(), 0.0)

    def precisions(self) -> Tensor:
        """The precision up to a place, where something relevant stands, on average.

        Of r relevant elements among d, one stands at the m-th place with probability r/d, and then
        (m - 1)(r - 1)/(d - 1) others in front of it.
        """
        hit = (self.relevance > 0).double()
        r, d, m = self.within(hit), self.size, self.offset
        others = (m - 1) * (r - 1) / (d - 1).clamp(min=1)
        found = self.before(hit, self.first) + 1 + others
        return torch.where(self.live, r / d * found / self.number, 0.0)

    def up_to(self, values: Tensor, k: int | None) -> Tensor:
        """The sum over the first k places."""
        return values[..., :k].sum(-1)


def _log_choose(n: Tensor, k: Tensor) -> Tensor:
    return torch.lgamma(n + 1) - torch.lgamma(k + 1) - torch.lgamma(n - k + 1)

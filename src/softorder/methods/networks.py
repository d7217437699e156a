"""Network methods: sorting and selection networks whose comparators swap in part."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import MappingProxyType

import torch
from torch import Tensor

from softorder import _check, networks
from softorder.kernels.threshold_torch import inverse
from softorder.methods._base import register
from softorder.methods.finite import FiniteMethod
from softorder.methods.network_program import Program, Step, program


def _optimal(u: Tensor) -> Tensor:
    far = u.abs() > 0.25
    tail = 1 / (16 * torch.where(far, u, 1.0))
    return torch.where(far, torch.where(u > 0, 1 - tail, -tail), u + 0.5)


#: How much two values stay where they are, given u = (higher wire - lower wire)/τ.
COMPARATORS: dict[str, Callable[[Tensor], Tensor]] = {
    "logistic": torch.sigmoid,
    "cauchy": lambda u: torch.atan(u) / math.pi + 0.5,
    "reciprocal": lambda u: u / (1 + 2 * u.abs()) + 0.5,
    "optimal": _optimal,
}


class NetworkMethod(FiniteMethod):
    """A comparator of values a and b on wires i < j leaves a' on i and b' on j,

        c = F((b - a)/τ)      a' = c a + (1 - c) b      b' = c b + (1 - c) a,

    and so is a doubly stochastic matrix; P is the product of those of all comparators, and doubly
    stochastic too. The first k rows come from a second pass from the last layer to the first
    (Petersen et al. 2022, section 3.1), on a selection network. F is one of

        logistic 1/(1 + e^-u)    cauchy atan(u)/π + 1/2    reciprocal u/(1 + 2|u|) + 1/2
        optimal  u + 1/2 for |u| ≤ 1/4, else 1 - 1/(16 u) or -1/(16 u)

    All but the logistic one are monotone: a' never falls when a or b rises.

    What it breaks: the result depends on which score enters on which wire. So it does not follow a
    permutation of the scores, equal scores get different shares, even as τ → 0, and k rows are not
    those of a full sort, since they come from another network. At high temperature values are not
    in order, and P does not become even. Steep comparators enlarge rounding errors.

    Args:
        kind: of the network, see `so.networks`; None takes "pairwise", or "splitter" where that is
            shallower. Without its last wires a pairwise network is that of fewer wires, so that
            padding changes nothing; with the others it does.
        comparator: "logistic", "cauchy", "reciprocal" or "optimal".

    Papers: Petersen et al. (2021, 2022 a, b).

    >>> import torch, softorder as so
    >>> from softorder.methods import NetworkMethod
    >>> scores, method = torch.tensor([3.0, 1.0, 2.0]), NetworkMethod("bitonic", "optimal")
    >>> so.soft_sort(scores, method=method, temperature=0.01).numpy().round(2)
    array([1., 2., 3.], dtype=float32)
    """

    name = "network"
    operators = ("soft_sort", "soft_permutation")
    cost = MappingProxyType(
        {"soft_sort": "O(n log² n)", "soft_permutation": "O(n k log n), O(n² log² n) for all rows"}
    )
    breaks = MappingProxyType(
        {
            "soft_sort": ("sorted_scores_ascend", "follows_a_permutation"),
            "soft_permutation": (
                "cold_limit_is_hard",
                "warm_limit_is_even",
                "first_rows_are_the_first_rows",
                "follows_a_permutation",
                "lower_precision_is_rounded_higher_precision",
            ),
        }
    )
    smoothness = "smooth, or as its comparator"
    paper = "Differentiable top-k (Petersen et al. 2022)"

    def __init__(self, kind: str | None = None, comparator: str = "cauchy") -> None:
        if kind is not None:
            _check.choice("kind", kind, networks.SELECTION_KINDS)
        _check.choice("comparator", comparator, COMPARATORS)
        self.kind = kind
        self.comparator = comparator

    def _values(
        self, x: Tensor, live: Tensor | None, temperature: Tensor, descending: bool
    ) -> Tensor:
        wires = _Wires(-x if descending else x, live)
        plan = program(x.shape[-1], x.shape[-1], self.kind, x.device)
        values, _ = self._forward(plan, wires, temperature)
        t = (values.index_select(0, plan.outputs) + wires.start).movedim(0, -1)
        return -t if descending else t

    def _rows(
        self, x: Tensor, live: Tensor | None, temperature: Tensor, descending: bool, k: int
    ) -> Tensor:
        if k == 0:
            return x.unsqueeze(-2)[..., :0, :]
        wires = _Wires(-x if descending else x, live)
        plan = program(x.shape[-1], k, self.kind, x.device)
        values, kept = self._forward(plan, wires, temperature)
        return wires.to_origin(_back_to_front(plan, values, kept))

    def _forward(
        self, plan: Program, wires: _Wires, temperature: Tensor
    ) -> tuple[Tensor, list[Tensor]]:
        """The last list of values (wires first), and what the comparators of each layer keep."""
        step_function = COMPARATORS[self.comparator]
        values = wires.values
        scale = inverse(temperature, values.dtype).squeeze(-1)
        limit = torch.finfo(values.dtype).max ** 0.5
        if not plan.steps:  # a single score, that depends on everything by 0
            values = values + 0 * scale
        kept = []
        for step in plan.steps:
            a, b = values.index_select(0, step.low), values.index_select(0, step.high)
            keep = step_function(((b - a) * scale).clamp(-limit, limit))
            if wires.count is not None:
                keep = torch.where(_column(step.wire, keep) < wires.count, keep, 1.0)
            swap = (1 - keep) * (b - a)
            values = torch.cat([a + swap, b - swap, values]).index_select(0, step.taken)
            kept.append(keep)
        return values, kept


class _Wires:
    """Scores on wires, wires first; those that are not live are on the last wires."""

    def __init__(self, x: Tensor, live: Tensor | None) -> None:
        self.count, self.order = None, None
        if live is not None:
            self.count = live.sum(-1)
            self.order = torch.argsort((~live).to(torch.int8), dim=-1, stable=True)
            x = x.gather(-1, self.order)
        # Only differences count: what all scores have in common shall not cost digits.
        self.start = x.detach()[..., 0]
        self.values = x.movedim(-1, 0) - self.start

    def to_origin(self, q: Tensor) -> Tensor:
        """(wires, ..., k) as (..., k, scores)."""
        p = q.movedim(0, -1)
        if self.order is None:
            return p
        return torch.empty_like(p).scatter(-1, self.order.unsqueeze(-2).expand_as(p), p)


def _back_to_front(plan: Program, values: Tensor, kept: list[Tensor]) -> Tensor:
    """Q = E A_t ... A_1 with the wires first, (n, ..., k): E takes the outputs."""
    k = len(plan.outputs)
    units = torch.nn.functional.one_hot(plan.outputs, values.shape[0]).T.to(values.dtype)
    q = units.reshape(-1, *(1,) * (values.dim() - 1), k) + 0 * values.unsqueeze(-1)
    for step, keep in zip(reversed(plan.steps), reversed(kept), strict=True):
        q = _layer_back(step, keep.unsqueeze(-1), q)
    return q


def _layer_back(step: Step, keep: Tensor, q: Tensor) -> Tensor:
    """q A for one layer: from its list behind to its list before."""
    q = torch.cat([q, torch.zeros_like(q[:1])])  # what was dropped counts 0
    a, b = q.index_select(0, step.low_behind), q.index_select(0, step.high_behind)
    swap = (1 - keep) * (b - a)
    parts = torch.cat([a + swap, b - swap, q.index_select(0, step.rest_behind)])
    return parts.index_select(0, step.before)


def _column(index: Tensor, like: Tensor) -> Tensor:
    return index.reshape(-1, *(1,) * (like.dim() - 1))


register(NetworkMethod(), aliases=("diffsort", "difftopk", "sorting_network", "diffsortnets"))

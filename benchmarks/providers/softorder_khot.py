"""so.distributions.KHot: draws with a straight-through gradient, and log-probabilities."""

from __future__ import annotations

import torch

import softorder as so
from benchmarks.cases import Case
from benchmarks.providers._provider import Operator, Provider


def straight_through(design: str) -> Provider:
    """A draw of every row, differentiated through its probabilities."""

    def bind(case: Case) -> Operator:
        return lambda scores: so.estimators.straight_through(_law(scores, case, design))

    return Provider(f"draw-{design}", f"softorder {design}", bind, design)


def _bind_log_prob(case: Case) -> Operator:
    draw = _law(case.scores(), case, "conditional_poisson").sample()
    return lambda scores: _law(scores, case, "conditional_poisson").log_prob(draw)


def _law(scores: torch.Tensor, case: Case, design: str) -> so.distributions.KHot:
    return so.distributions.KHot(case.k, logits=scores, design=design)


log_prob = Provider("log_prob", "softorder log_prob", _bind_log_prob, "conditional_poisson")

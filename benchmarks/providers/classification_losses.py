"""Losses of a classifier: torch's cross-entropy, ours, and the smooth top-k of Berrada et al."""

from __future__ import annotations

from torch.nn import functional

import softorder as so
from benchmarks.cases import LossCase
from benchmarks.loss_cases import PRESELECTED
from benchmarks.providers._provider import Operator, Provider


def _softmax(case: LossCase) -> Operator:
    target = case.target()
    return lambda scores: functional.cross_entropy(scores, target)


def _smooth(case: LossCase) -> Operator:
    target = case.target()
    criterion = so.losses.SmoothTopKLoss(5, temperature=case.temperature)
    return lambda scores: criterion(scores, target)


cross_entropy = Provider("cross-entropy", "torch cross_entropy", _softmax)
smooth = Provider("smooth", "smooth top-k", _smooth)


def ours(method: str, m: int | None = None) -> Provider:
    """The top-k cross-entropy by one of the methods."""

    def bind(case: LossCase) -> Operator:
        target = case.target()
        criterion = so.losses.TopKCrossEntropyLoss(
            case.p_k, method=method, temperature=case.temperature, m=m
        )
        return lambda scores: criterion(scores, target)

    few = "" if m is None else f", m = {m}"
    return Provider("ours", f"softorder {method}{few}", bind, method)


def preselected(method: str) -> Provider:
    """On the largest scores only, as the paper does."""
    return ours(method, PRESELECTED)

"""log S_k: how surely an element is among the first k, from whatever operators a method has."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from softorder.kernels._moved import taken
from softorder.kernels._recomputed import recomputed

if TYPE_CHECKING:
    from softorder.relaxations._base import Method

LEAST = math.log(torch.finfo(torch.float64).tiny)  #: stands for log 0: finite

# A stable logarithm is best; rows of a permutation, added up, serve every k at once.
OPERATORS = ("log_soft_topk", "soft_permutation", "soft_topk")


def operator_of(method: Method) -> str:
    """The operator by which a method tells the mass; without any, one that it will be asked for."""
    return next((name for name in OPERATORS if name in method.operators), OPERATORS[0])


def log_masses(
    method: Method, scores: Tensor, index: Tensor, ks: tuple[int, ...], temperature: Tensor
) -> Tensor:
    """log S_k of one element of each row (rows, n), as float64 (rows, len(ks))."""
    at = index.unsqueeze(-1)
    operator = operator_of(method)
    if operator == "soft_permutation":
        rows = method.soft_permutation(scores, temperature, True, max(ks))  # type: ignore[attr-defined]
        own = taken(rows, at.unsqueeze(-1).expand(-1, max(ks), -1)).squeeze(-1).cumsum(-1)
        return log_of(own[:, [k - 1 for k in ks]])
    logarithm = _identity if operator == "log_soft_topk" else log_of
    masses = _masses(method, scores, ks, temperature)
    return torch.cat([logarithm(taken(mass, at)) for mass in masses], -1).double()


def log_masses_again(
    method: Method, scores: Tensor, index: Tensor, ks: tuple[int, ...], temperature: Tensor
) -> Tensor:
    """The same of a method whose masks or rows, of which one entry counts, would all be kept."""

    def formula(scores: Tensor, index: Tensor, temperature: Tensor) -> Tensor:
        return log_masses(method, scores, index, ks, temperature)

    return recomputed(formula, scores, index, temperature)


def all_log_masses(
    method: Method, scores: Tensor, ks: tuple[int, ...], temperature: Tensor
) -> Tensor:
    """The same for every element, (rows, n, len(ks))."""
    logarithm = _identity if operator_of(method) == "log_soft_topk" else log_of
    masses = _masses(method, scores, ks, temperature)
    return torch.stack([logarithm(mass) for mass in masses], -1).double()


def _masses(
    method: Method, scores: Tensor, ks: tuple[int, ...], temperature: Tensor
) -> list[Tensor]:
    """What the operator says of all elements, for every k."""
    operator = operator_of(method)
    compute = getattr(method, operator)
    if operator == "soft_permutation":
        rows = compute(scores, temperature, True, max(ks)).cumsum(-2)
        return [rows[..., k - 1, :] for k in ks]
    counts = [torch.full((), k, dtype=torch.float64, device=scores.device) for k in ks]
    return [compute(scores, k, temperature) for k in counts]


def _identity(log_mass: Tensor) -> Tensor:
    return log_mass


def log_of(mass: Tensor) -> Tensor:
    """log S, or that of the smallest number where S underflows: finite, without a gradient."""
    least = torch.finfo(mass.dtype).tiny
    return torch.log(mass.clamp(min=least).double())

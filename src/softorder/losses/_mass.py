"""log S_k: how surely an element is among the first k, from whatever a method can give."""

from __future__ import annotations

import torch
from torch import Tensor

from softorder.methods import Method, ThresholdMethod, find_any
from softorder.methods.threshold_entry import log_entries, plain_log_entries
from softorder.ops._method import method_of

# A stable logarithm is best; rows of a permutation, added up, serve every k at once.
OPERATORS = ("log_soft_topk", "soft_permutation", "soft_topk")


def operator_of(method: object) -> str:
    """The operator by which a method tells the mass."""
    if isinstance(method, str):
        return find_any(OPERATORS, method)[0]
    if isinstance(method, Method):
        served = [operator for operator in OPERATORS if operator in method.operators]
        return served[0] if served else OPERATORS[0]  # which will be refused by name
    return OPERATORS[0]


def check_method(method: object) -> object:
    """The method, if it can serve."""
    method_of(operator_of(method), method)
    return method


def log_masses(
    method: object, scores: Tensor, index: Tensor, ks: tuple[int, ...], temperature: Tensor
) -> Tensor:
    """log S_k of one element of each row (rows, n), as float64 (rows, len(ks))."""
    operator = operator_of(method)
    found = method_of(operator, method)
    if isinstance(found, ThresholdMethod):
        return log_entries(found, scores, index, ks, temperature)
    if operator == "log_soft_topk":
        return plain_log_entries(found, scores, index, ks, temperature)
    at = index.unsqueeze(-1)
    masses = _masses(operator, found, scores, ks, temperature)
    return torch.cat([_log(mass.gather(-1, at)) for mass in masses], -1)


def all_log_masses(
    method: object, scores: Tensor, ks: tuple[int, ...], temperature: Tensor
) -> Tensor:
    """The same for every element, (rows, n, len(ks))."""
    operator = operator_of(method)
    found = method_of(operator, method)
    masses = _masses(operator, found, scores, ks, temperature)
    if operator == "log_soft_topk":
        return torch.stack(masses, -1).double()
    return torch.stack([_log(mass) for mass in masses], -1)


def _masses(
    operator: str, method: Method, scores: Tensor, ks: tuple[int, ...], temperature: Tensor
) -> list[Tensor]:
    """What the operator says of all elements, for every k."""
    if operator == "soft_permutation":
        compute = getattr(method, operator)
        rows = compute(scores, temperature, True, max(ks)).cumsum(-2)
        return [rows[..., k - 1, :] for k in ks]
    counts = [torch.full((), k, dtype=torch.float64, device="cpu") for k in ks]
    return [getattr(method, operator)(scores, k, temperature) for k in counts]


def _log(mass: Tensor) -> Tensor:
    """log S, or that of the smallest number where S underflows: finite, without a gradient."""
    least = torch.finfo(mass.dtype).tiny
    return torch.log(mass.clamp(min=least).double())

"""What the losses of a top-k ask a method: log S_k, how surely an element is among the first k."""

from __future__ import annotations

from torch import Tensor

from softorder.ops._method import method_of
from softorder.relaxations import Method, find_any
from softorder.relaxations.masses import OPERATORS, operator_of
from softorder.relaxations.threshold import ThresholdMethod


def operator_for(method: object) -> str:
    """The operator that the method is asked for."""
    if isinstance(method, str):
        return find_any(OPERATORS, method)[0]
    return operator_of(method) if isinstance(method, Method) else OPERATORS[0]


def check_method(method: object) -> object:
    """The method, if it can serve."""
    _found(method)
    return method


def density_number(method: object) -> int | None:
    """The number of the density whose threshold method this is; None for other methods."""
    found = _found(method)
    return found.number if isinstance(found, ThresholdMethod) else None


def log_masses(
    method: object, scores: Tensor, index: Tensor, ks: tuple[int, ...], temperature: Tensor
) -> Tensor:
    """log S_k of one element of each row (rows, n), as float64 (rows, len(ks))."""
    return _found(method).log_masses(scores, index, ks, temperature)


def every_log_mass(
    method: object, scores: Tensor, ks: tuple[int, ...], temperature: Tensor
) -> Tensor:
    """The same for every element, (rows, n, len(ks))."""
    return _found(method).all_log_masses(scores, ks, temperature)


def _found(method: object) -> Method:
    return method_of(operator_for(method), method)

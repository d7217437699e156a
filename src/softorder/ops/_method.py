"""From what the user wrote as `method` to the method that computes."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from softorder import _check
from softorder.densities import Density, UserDensity
from softorder.relaxations import FSumMethod, Method, ThresholdMethod, find


def method_of(operator: str, method: object) -> Method:
    """The method of that name, a method itself, or that of a density of the user."""
    if isinstance(method, str):
        return find(operator, method)
    if isinstance(method, Method):
        _check.methods.serves(method.name, operator, method.operators)
        return method
    _check.methods.law(method)
    family = ThresholdMethod if operator in ThresholdMethod.operators else FSumMethod
    return family(UserDensity(method))


def computation(operator: str, method: object) -> Callable[..., Tensor]:
    """What that method does for the operator, on clean rows."""
    compute: Callable[..., Tensor] = getattr(method_of(operator, method), operator)
    return compute


def threshold_method(operator: str, method: object) -> ThresholdMethod:
    """The method, which has to be that of a density."""
    served = method_of(operator, method)
    _check.methods.threshold(method, isinstance(served, ThresholdMethod))
    assert isinstance(served, ThresholdMethod)
    return served


def density_of_cut_rows(operator: str, method: object) -> Density:
    """That of a method for rows that are cut among ranks."""
    served = method_of(operator, method)
    known = isinstance(served, (ThresholdMethod, FSumMethod))
    _check.distributed.method(method, known)
    assert isinstance(served, (ThresholdMethod, FSumMethod))
    return served.density

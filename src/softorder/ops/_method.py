"""From what the user wrote as `method` to the method that computes."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from softorder import _check
from softorder.densities import UserDensity
from softorder.methods import FSumMethod, Method, ThresholdMethod, find


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


def threshold_method(operator: str, method: object, name: str = "method") -> ThresholdMethod:
    """The method, which has to be that of a density."""
    served = method_of(operator, method)
    _check.methods.threshold(name, method, isinstance(served, ThresholdMethod))
    assert isinstance(served, ThresholdMethod)
    return served


def quantile_method(method: object) -> FSumMethod:
    """The same for quantiles."""
    served = method_of("soft_quantile", method)
    _check.methods.threshold("method", method, isinstance(served, FSumMethod))
    assert isinstance(served, FSumMethod)
    return served

"""Single numbers, named by their argument."""

from __future__ import annotations

import math
import numbers

from torch import Tensor

from softorder._check._values import is_number


def count(name: str, value: int, least: int, most: int | None = None) -> None:
    """A whole number in [least, most]."""
    if not isinstance(value, numbers.Integral) or type(value) is bool:
        raise TypeError(f"{name} must be an int, but got {type(value).__name__}")
    if value < least or (most is not None and value > most):
        allowed = f"at least {least}" if most is None else f"between {least} and {most}"
        raise ValueError(f"{name} must be {allowed}, but got {value}")


def share(name: str, value: float) -> None:
    """A number in [0, 1]."""
    _real(name, value)
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must be between 0 and 1, but got {value}")


def at_least(name: str, value: float, least: float) -> None:
    """A finite real number >= least."""
    _real(name, value)
    if not least <= value < math.inf:
        raise ValueError(f"{name} must be finite and >= {least}, but got {value}")


def positive(name: str, value: float) -> None:
    """A finite number > 0."""
    _no_tensor(name, value)
    if is_number(name, value) and not 0 < value < math.inf:
        raise ValueError(f"{name} must be finite and > 0, but got {value}")


def between(name: str, value: float) -> None:
    """A number between 0 and 1, both excluded."""
    _no_tensor(name, value)
    if is_number(name, value) and not 0 < value < 1:
        raise ValueError(f"{name} must be between 0 and 1, both excluded, but got {value}")


def tolerance(tolerance: float) -> None:
    """`tolerance` is a finite number > 0."""
    if is_number("tolerance", tolerance) and not 0 < tolerance < math.inf:
        raise ValueError(f"tolerance must be finite and > 0, but got {tolerance}")


def max_iterations(max_iterations: int | None) -> None:
    """`max_iterations` is None, or an int >= 1."""
    if max_iterations is not None:
        count("max_iterations", max_iterations, least=1)


def _real(name: str, value: float) -> None:
    if not isinstance(value, numbers.Real) or type(value) is bool:
        raise TypeError(f"{name} must be a real number, but got {type(value).__name__}")


def _no_tensor(name: str, value: float) -> None:
    if isinstance(value, Tensor):
        raise TypeError(f"{name} must be a number, but got a tensor")

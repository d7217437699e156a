"""Options: single numbers, words, flags, classes, and which arguments go together."""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Iterable

import torch
from torch import Tensor

from softorder._check._values import is_number


def count(name: str, value: int, least: int, most: int | None = None) -> None:
    """A whole number in [least, most]."""
    if not isinstance(value, numbers.Integral) or type(value) is bool:
        raise TypeError(f"{name} must be an int, but got {type(value).__name__}")
    if value < least or (most is not None and value > most):
        allowed = f"at least {least}" if most is None else f"between {least} and {most}"
        raise ValueError(f"{name} must be {allowed}, but got {value}")


def shape(name: str, value: object) -> None:
    """The lengths of axes: a tuple of ints >= 0."""
    if not isinstance(value, (tuple, list)):
        hint = f", such as ({value},)" if isinstance(value, int) else ""
        raise TypeError(f"{name} must be a tuple of ints{hint}, but got {type(value).__name__}")
    for length in value:
        if not isinstance(length, (int, torch.SymInt)):
            raise TypeError(f"{name} must hold ints, but got {type(length).__name__}")
        if length < 0:
            raise ValueError(f"{name} must hold ints >= 0, but got {length}")


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


def choice(name: str, value: str, allowed: Iterable[str]) -> None:
    """One of a few words."""
    words = tuple(allowed)
    if value not in words:
        near = difflib.get_close_matches(str(value), words, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"{name} must be one of {', '.join(words)}, but got {value!r}{hint}")


def reduction(reduction: str) -> None:
    """`reduction` is one of torch's."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"reduction must be 'mean', 'sum' or 'none', but got {reduction!r}")


def flag(name: str, value: bool) -> None:
    """An option that is either True or False."""
    if type(value) is not bool:
        raise TypeError(f"{name} must be True or False, but got {type(value).__name__}")


def subclass(name: str, value: object, base: type) -> None:
    """A class of a kind, where a name would do as well."""
    if not (isinstance(value, type) and issubclass(value, base)):
        raise TypeError(
            f"{name} must be a name or a subclass of {base.__name__}, "
            f"but got {value!r} of type {type(value).__name__}"
        )


def one_of(**given: object) -> None:
    """Exactly one of two arguments is given."""
    if sum(value is not None for value in given.values()) != 1:
        names = " and ".join(given)
        found = ", ".join(name for name, value in given.items() if value is not None) or "none"
        raise ValueError(f"exactly one of {names} must be given, but got {found}")


def together(**pairs: object) -> None:
    """Arguments that are given both or not at all."""
    given = [name for name, value in pairs.items() if value is not None]
    if len(given) == 1:
        (missing,) = set(pairs) - set(given)
        raise ValueError(f"{' and '.join(pairs)} must be given together, but {missing} is None")


def needed(name: str, value: object, when: str) -> None:
    """An argument that is optional elsewhere."""
    if value is None:
        raise ValueError(f"{name} must be given {when}, but got None")


def unused(name: str, value: object, when: str) -> None:
    """An argument that would be ignored."""
    if value is not None:
        raise ValueError(f"{name} must be None {when}, but got {value!r}")

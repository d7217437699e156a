"""Options: words, flags, classes, and which arguments go together."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


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

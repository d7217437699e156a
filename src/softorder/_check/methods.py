"""Which methods there are, what they serve, and the options of their own."""

from __future__ import annotations

import difflib
import weakref
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

from softorder._check import _values
from softorder._check._mode import eager


def unknown(given: str, known: Iterable[str], aliases: Mapping[str, str]) -> ValueError:
    """The error for a `method` that nobody registered: lists the known, suggests the nearest."""
    names = sorted(known)
    name = given.strip().lower()
    near = difflib.get_close_matches(name, [*names, *aliases], n=1, cutoff=0.5)
    meant = aliases.get(near[0], near[0]) if near else None
    hint = f"; did you mean {meant!r}?" if meant in names else ""
    return ValueError(f"method must be one of {', '.join(names)}, but got {given!r}{hint}")


def serves(name: str, operator: str, operators: Iterable[str]) -> None:
    """A method that was given as an object has the operator."""
    if operator not in operators:
        raise ValueError(
            f"method must serve {operator}, but got {name!r}, which serves {', '.join(operators)}"
        )


def law(method: object) -> None:
    """`method` is an object with the methods cdf and pdf, of an even density."""
    if isinstance(method, type):
        name = method.__name__
        raise TypeError(f"method must be an object, {name}(), but got the class {name} itself")
    missing = [name for name in ("cdf", "pdf") if not callable(getattr(method, name, None))]
    if missing:
        raise TypeError(
            "method must be the name of a method or an even density with the methods cdf and pdf, "
            f"but got {type(method).__name__}, which has no {' and no '.join(missing)}"
        )
    _even(method)


def _even(law: Any) -> None:
    """F(-u) = 1 - F(u) and f(-u) = f(u) at a few u. Every density is asked once."""
    if not eager() or law in _known_even:
        return
    u = torch.tensor([0.1, 0.7, 1.9], dtype=torch.float64)
    with torch.no_grad():
        try:
            sides = [(law.cdf(v).double(), law.pdf(v).double()) for v in (u, -u)]
        except RuntimeError:  # one that has tensors on another device is asked by its scores
            return
    (up, here), (down, there) = sides
    if not torch.allclose(up, 1 - down, rtol=0, atol=1e-4):
        at = int((up + down - 1).abs().argmax())
        raise ValueError(
            f"method must be an even density, with cdf(-u) = 1 - cdf(u), but {law!r} has "
            f"cdf({-u[at]:g}) = {down[at]:.4g} and cdf({u[at]:g}) = {up[at]:.4g}"
        )
    if not torch.allclose(here, there, rtol=1e-3, atol=1e-4):
        at = int((here - there).abs().argmax())
        raise ValueError(
            f"method must be an even density, with pdf(-u) = pdf(u), but {law!r} has "
            f"pdf({-u[at]:g}) = {there[at]:.4g} and pdf({u[at]:g}) = {here[at]:.4g}"
        )
    _known_even.add(law)


class _Once:
    """Objects that were seen before, as long as they live."""

    def __init__(self) -> None:
        self._seen: dict[int, weakref.ref[object]] = {}

    def add(self, value: object) -> None:
        key = id(value)
        with suppress(TypeError):  # what cannot be watched is asked every time
            self._seen[key] = weakref.ref(value, lambda _: self._seen.pop(key, None))

    def __contains__(self, value: object) -> bool:
        return id(value) in self._seen


_known_even = _Once()


def threshold(method: object, is_one: bool) -> None:
    """A density, and not another kind of method."""
    if not is_one:
        raise ValueError(
            "method must be laplace, logistic, normal, cauchy, uniform or an even density of your "
            f"own, but got {method!r}"
        )


def softness(method: object, softness: float, reached: Tensor) -> None:
    """A softness that the method has at some temperature."""
    if reached.numel():
        _values.refuse(
            "softness",
            ~((reached - softness).abs() < 1e-3),
            lambda: (
                f"the method {method!r} has no temperature of softness {softness:g} for all "
                f"these scores: the nearest are between {reached.min():.3g} and {reached.max():.3g}"
            ),
        )


def cost(cost: object) -> None:
    """`cost`, of transport, is "squared" or a function of scores and anchors."""
    if cost != "squared" and not callable(cost):
        raise TypeError(f"cost must be 'squared' or a callable, but got {cost!r}")


def anchors(anchors: Tensor | None, places: int | None = None) -> None:
    """`anchors` is None, or a 1-D tensor of ascending numbers, one for each place."""
    if anchors is None:
        return
    if not isinstance(anchors, Tensor):
        raise TypeError(f"anchors must be a tensor or None, but got {type(anchors).__name__}")
    if anchors.dim() != 1 or anchors.dtype not in _values.FLOATING:
        shape, dtype = tuple(anchors.shape), _values.dtype(anchors)
        raise ValueError(
            f"anchors must be a 1-D tensor of floating dtype, but got shape {shape} of {dtype}"
        )
    if eager():
        wrong = ~(anchors.detach().diff() > 0)
        message = "anchors must ascend, but got {}"
        _values.refuse("anchors", wrong, lambda: message.format(anchors.detach().tolist()))
    if places is not None and len(anchors) != places:
        raise ValueError(
            f"anchors must be {places}, one for each place and for the rest, but got {len(anchors)}"
        )


def plan_size(n: int, places: int, most: int) -> None:
    """A plan of n scores, each over so many places, is not larger than its user allows."""
    if n * places > most:
        raise ValueError(
            f"an entropic transport of {n} scores that has each of them over {places} places "
            f"keeps {n * places:.1e} numbers, but max_entries allows {most:.1e}: lower the "
            "temperature, use method='laplace', which takes O(n log n), or allow more by "
            "method=so.Sinkhorn(max_entries=...)"
        )

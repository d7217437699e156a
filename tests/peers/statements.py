"""What the tests of this folder state, so that the page about peers says the same as they prove.

A test is decorated by what it states: `agreement`, to how many digits, or `difference`, and who is
right. `python -m benchmarks.peers_page` makes the tables of the page of these statements.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

#: agreement up to rounding: at least so many digits
FULL = {torch.float64: 12, torch.float32: 5}
ALL = 99


@dataclass(frozen=True)
class Peer:
    """A package of the registry, or one that a formula stands for, since none installs it."""

    name: str
    version: str
    module: str | None = None  #: None: a formula stands for it
    missing: str = "is not installed"  #: why it may be

    def load(self) -> ModuleType:
        """The package, or a skip: statements are about one version."""
        assert self.module is not None
        reason = f"{self.name} {self.missing}"
        package = pytest.importorskip(self.module, reason=reason, exc_type=ImportError)
        found = metadata.version(self.name)
        if found != self.version:
            pytest.skip(f"the statement is about {self.name} {self.version}, here is {found}")
        return package


@dataclass(frozen=True)
class Agreement:
    peer: Peer
    theirs: str
    ours: str
    values: int
    gradients: int | None
    note: str


@dataclass(frozen=True)
class Difference:
    peer: Peer
    what: str
    theirs: str
    ours: str
    right: str  #: "ours", "theirs" or "both"
    proof: str


def agreement(
    peer: Peer, *, theirs: str, ours: str, values: int, gradients: int | None, note: str = ""
) -> Callable[[Callable[[], Any]], Callable[[], None]]:
    """The decorated function returns pairs of functions and their argument: (ours, theirs, scores).

    They agree to the stated number of digits, no less and no more; ALL is up to rounding. Without
    a number for gradients only values are compared.
    """
    statement = Agreement(peer, theirs, ours, values, gradients, note)

    def decorate(pairs: Callable[[], Any]) -> Callable[[], None]:
        def test() -> None:
            found = pairs()
            found = found if isinstance(found, list) else [found]
            full = FULL[found[0][2].dtype]
            check_digits([digits(a(x), b(x)) for a, b, x in found], values, full)
            if gradients is not None:
                pulled = [digits(gradient(a, x), gradient(b, x)) for a, b, x in found]
                check_digits(pulled, gradients, full)

        test.__name__, test.__doc__, test.__module__ = pairs.__name__, pairs.__doc__, __name__
        test.statement = statement  # type: ignore[attr-defined]
        return test

    return decorate


def difference(
    peer: Peer, what: str, *, theirs: str, ours: str, proof: str, right: str = "ours"
) -> Callable[[Any], Any]:
    """The decorated test shows the difference, and that one side is right."""

    def decorate(test: Any) -> Any:
        test.statement = Difference(peer, what, theirs, ours, right, proof)
        return test

    return decorate


def digits(a: Tensor, b: Tensor) -> float:
    """How many digits two results share, relative to the largest number of the second."""
    assert a.shape == b.shape
    a, b = a.detach().double(), b.detach().double()
    error = (a - b).abs().max().item() / b.abs().max().item()
    assert not math.isnan(error)
    return math.inf if error == 0 else -math.log10(error)


def check_digits(found: list[float], stated: int, full: int) -> None:
    """The worst of what was found is what was stated."""
    worst = min(found)
    assert worst >= min(stated, full)
    if stated < full:
        assert worst < stated + 1, "they agree better than stated"


def gradient(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """The gradient of a fixed random combination of all results."""
    x = x.clone().requires_grad_()
    result = function(x)
    return torch.autograd.grad(result, x, cotangent(result))[0]


def slopes(function: Callable[[Tensor], Tensor], x: Tensor, step: float = 1e-6) -> Tensor:
    """The same gradient by central differences."""
    weight = cotangent(function(x))
    moves = step * torch.eye(x.numel(), dtype=x.dtype).view(-1, *x.shape)
    each = [((function(x + h) - function(x - h)) * weight).sum() / (2 * step) for h in moves]
    return torch.stack(each).view_as(x)


def cotangent(like: Tensor) -> Tensor:
    return torch.randn(like.shape, dtype=like.dtype, generator=torch.Generator().manual_seed(1))


def scores(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator).to(dtype)


def error(a: Tensor, b: Tensor) -> float:
    """The largest difference of two results."""
    return (a.detach().double() - b.detach().double()).abs().max().item()

"""What a design is, and the registry that tests, benchmarks and documentation read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import torch
from torch import Tensor

from softorder import _check
from softorder.relaxations._base import Table

Generator = torch.Generator | None


class Design(ABC):
    """A law of subsets x in {0,1}^n of `size` units, for rows of probabilities or logits.

    `rows` (..., n) are what the design is made of: inclusion probabilities that sum to `size`, or,
    for designs with logits of their own (`takes`), log-weights. `size` holds a whole number for
    each row. Only `sample` is always there; `offers` names the rest, which is differentiable.

    Claims are promises: the tests hold every design to them.

    Args:
        rows: probabilities or logits, as `takes` says, (..., n).
        size: how many units are drawn of each row.

    >>> import torch, softorder as so
    >>> design, probs = so.sampling.find("pivotal"), torch.tensor([0.5, 0.3, 0.2])
    >>> design.from_probs(probs, torch.tensor(1)).inclusion()
    tensor([0.5000, 0.3000, 0.2000])
    """

    name: ClassVar[str]
    takes: ClassVar[str] = "probs"  #: or "logits"
    fixed_size: ClassVar[bool] = True  #: every draw has exactly `size` units
    exact: ClassVar[bool] = True  #: made from_probs, the mean of x is these probabilities
    phantom: ClassVar[bool] = False  #: not exact, but near enough for a phantom unit: see `extend`
    offers: ClassVar[tuple[str, ...]] = ("inclusion",)
    cost: ClassVar[str]  #: of a draw
    paper: ClassVar[str]

    def __init__(self, rows: Tensor, size: Tensor) -> None:
        self.rows = rows
        self.size = size.to(rows.device, torch.int64).expand(rows.shape[:-1])

    @classmethod
    def from_probs(cls, probs: Tensor, size: Tensor) -> Design:
        """The design with these inclusion probabilities, exactly or as nearly as it can."""
        return cls(probs, size)

    @abstractmethod
    def sample(self, sample_shape: Sequence[int] = (), generator: Generator = None) -> Tensor:
        """Draws of shape (*sample_shape, *rows.shape), 0 and 1 in the dtype of the rows."""

    def inclusion(self) -> Tensor:
        """P(x_i = 1)."""
        if not self.exact:
            raise self._lacks("inclusion")
        return self.rows

    def log_prob(self, x: Tensor) -> Tensor:
        """log P(x); -inf for what cannot be drawn."""
        raise self._lacks("log_prob")

    def joint(self) -> Tensor:
        """P(x_i = x_j = 1), (..., n, n), with P(x_i = 1) on the diagonal."""
        raise self._lacks("joint")

    def entropy(self) -> Tensor:
        """-E log P(x)."""
        raise self._lacks("entropy")

    def kl(self, other: Design) -> Tensor:
        """E log P(x)/Q(x), x drawn from this design and Q another one of the same kind."""
        if type(self) is not type(other) or "kl" not in self.offers:
            raise self._lacks(f"kl from {other.name!r}")
        return self._kl(other)

    def _kl(self, other: Any) -> Tensor:
        raise NotImplementedError

    def _lacks(self, what: str) -> NotImplementedError:
        able = (name for name in sorted(_registry) if what.split()[0] in _registry[name].offers)
        return NotImplementedError(
            f"design {self.name!r} has no {what}; these have: {', '.join(able)}"
        )

    def _repeat(self, sample_shape: Sequence[int]) -> Tensor:
        """The rows in float64, once for every draw, without their gradient."""
        rows = self.rows.detach().double()
        return rows.expand(*sample_shape, *rows.shape)

    def _uniform(self, shape: Sequence[int], generator: Generator) -> Tensor:
        """Uniform numbers in [0, 1) with 53 random bits."""
        device = self.rows.device
        return torch.rand(shape, generator=generator, dtype=torch.float64, device=device)


_registry: dict[str, type[Design]] = {}


def register(design: type[Design]) -> type[Design]:
    """Makes a design known by its name."""
    if design.name in _registry:
        raise ValueError(f"there already is a design {design.name!r}")
    for what in design.offers:
        method = "_kl" if what == "kl" else what
        if what != "inclusion" and getattr(design, method) is getattr(Design, method):
            raise TypeError(f"{design.__name__} offers {what}, but has no such method")
    _registry[design.name] = design
    return design


def find(design: str | type[Design]) -> type[Design]:
    """The design of that name, or a design itself.

    Args:
        design: a name of `so.sampling.designs()`, or a Design of your own.

    >>> import softorder as so
    >>> so.sampling.find("pivotal").exact
    True
    """
    if isinstance(design, str):
        _check.choice("design", design, sorted(_registry))
        return _registry[design]
    _check.subclass("design", design, Design)
    return design


# ---- the table --------------------------------------------------------------------------------


@dataclass(frozen=True)
class DesignRow:
    name: str
    takes: str
    fixed_size: bool
    exact: bool
    inclusion: bool
    log_prob: bool
    joint: bool
    entropy: bool
    kl: bool
    cost: str
    paper: str


class DesignTable(Table[DesignRow]):
    """The rows of `so.sampling.designs()`; prints as a table."""


def designs() -> DesignTable:
    """The designs by name: what they take, what they keep, what they can tell, what they cost.

    `exact` says that the mean of the draws is the probabilities that were asked for.

    >>> import softorder as so
    >>> [row.name for row in so.sampling.designs() if row.exact and row.log_prob]
    ['conditional_poisson', 'pareto_adjusted', 'poisson', 'sampford']
    """
    return DesignTable(tuple(_row(_registry[name]) for name in sorted(_registry)))


_OFFERS = ("inclusion", "log_prob", "joint", "entropy", "kl")


def _row(design: type[Design]) -> DesignRow:
    cells: dict[str, Any] = {what: what in design.offers for what in _OFFERS}
    names = (field.name for field in fields(DesignRow))
    cells |= {name: getattr(design, name) for name in names if name not in cells}
    return DesignRow(**cells)

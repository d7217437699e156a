"""What a method is, and the registry that tests, benchmarks and documentation read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, fields
from html import escape
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from torch import Tensor

from softorder import _check
from softorder.relaxations import companions, masses


class Method:
    """A relaxation: what it serves, what it claims, and how it computes it.

    It has a method for each of the operators that it names, of the same name. These take clean
    arguments: scores in float32 or float64 with their rows on the last axis, elements that take no
    part at -inf; k, q and temperature in float64, broadcasting over the rows.

        soft_topk, log_soft_topk (scores, k, temperature)
        soft_rank, soft_sort (scores, temperature, descending)
        soft_permutation (scores, temperature, descending, k)             k a number of rows
        soft_quantile (scores, q, temperature)                            q (..., m), one per result
        fsum, fsum_inverse (scores, points or levels, temperature)        (..., m) likewise
        permutation_cross_entropy (scores, target, temperature, descending, last=None)
                                  target and last int64: the first and the last place allowed

    Claims are promises: the laws tests hold every method to them. A law that a method breaks, by
    its definition and not by a bug, is named in `breaks`; its docstring says why, and the tests
    show that it does.

    >>> import softorder as so
    >>> so.relaxations.find("soft_topk", "uniform").good_for
    'exact zeros and ones: the projection onto the capped simplex'
    """

    name: str
    operators: tuple[str, ...]
    cost: str | Mapping[str, str]  #: one for all operators, or one for each
    smoothness: str
    paper: str
    good_for: str  #: when to take it, in a few words
    derivatives: int = 2  #: up to this order
    forward_mode: bool = True
    vmap: bool = True
    compile: bool = True
    looks_at_k: bool = False  #: soft_topk takes `most`, the next integer, of a k that is a number
    #: operators that take scores of any float format along any `dim`, a `mask` beside them, and k
    #: and temperature as numbers where they are numbers
    takes_scores_as_they_are: tuple[str, ...] = ()
    sharded: tuple[str, ...] = ()  #: operators whose rows may be cut among ranks
    untraced: tuple[str, ...] = ()  #: operators that look at k: neither vmap nor compile
    breaks: Mapping[str, tuple[str, ...]] = MappingProxyType({})  #: laws, by operator

    def log_masses(
        self, scores: Tensor, index: Tensor, ks: tuple[int, ...], temperature: Tensor
    ) -> Tensor:
        """log S_k of one element of each row (rows, n), for several k, as float64 (rows, len(ks)).

        Losses ask for it. A method that has a shorter way than all of its rows says so here.
        """
        return masses.log_masses(self, scores, index, ks, temperature)

    def all_log_masses(self, scores: Tensor, ks: tuple[int, ...], temperature: Tensor) -> Tensor:
        """The same for every element, (rows, n, len(ks))."""
        return masses.all_log_masses(self, scores, ks, temperature)

    def permuted(
        self, scores: Tensor, values: Tensor, temperature: Tensor, descending: bool, k: int
    ) -> Tensor:
        """P y for the first k rows of `soft_permutation` and values y (..., m, n): (..., m, k)."""
        p = self.soft_permutation(scores, temperature, descending, k)  # type: ignore[attr-defined]
        return companions.by_matrix(scores, values, p, descending)

    def soft_sort_within(self, scores: Tensor, temperature: Tensor, descending: bool) -> Tensor:
        """Sorted values in the range of the scores; `soft_sort` itself, where it stays there."""
        return self.soft_sort(scores, temperature, descending)  # type: ignore[attr-defined]

    def cost_of(self, operator: str) -> str:
        return self.cost if isinstance(self.cost, str) else self.cost[operator]


_registry: dict[tuple[str, str], Method] = {}
_aliases: dict[str, str] = {}


def register(method: Method, aliases: tuple[str, ...] = ()) -> None:
    """Makes a method known by its name; aliases are suggested when someone asks for them."""
    for operator in method.operators:
        if not callable(getattr(method, operator, None)):
            raise TypeError(f"{type(method).__name__} names {operator}, but has no such method")
        if (operator, method.name) in _registry:
            raise ValueError(f"{operator} already has a method {method.name!r}")
        _registry[operator, method.name] = method
    _aliases.update(dict.fromkeys(aliases, method.name))


def find(operator: str, name: str) -> Method:
    """The method of that name that serves the operator.

    Args:
        operator: as in `so.methods()`, say "soft_topk".
        name: as in `method=`.

    >>> import softorder as so
    >>> so.relaxations.find("soft_rank", "laplace").smoothness
    'once, f has a kink'
    """
    method = _registry.get((operator, name))
    if method is None:
        known = (name for served, name in _registry if served == operator)
        raise _check.methods.unknown(name, known, _aliases)
    return method


def find_any(operators: tuple[str, ...], name: str) -> tuple[str, Method]:
    """The first of the operators that a method of that name serves, and the method.

    Args:
        operators: as in `so.methods()`, the most wanted first.
        name: as in `method=`.

    >>> import softorder as so
    >>> so.relaxations.find_any(("soft_sort", "soft_topk"), "soft")[0]
    'soft_topk'
    """
    for operator in operators:
        if (operator, name) in _registry:
            return operator, _registry[operator, name]
    known = {name for served, name in _registry if served in operators}
    raise _check.methods.unknown(name, known, _aliases)


# ---- the table --------------------------------------------------------------------------------


@dataclass(frozen=True)
class MethodRow:
    operator: str
    name: str
    cost: str
    smoothness: str
    good_for: str
    derivatives: int
    forward_mode: bool
    vmap: bool
    compile: bool
    sharded: bool
    paper: str
    breaks: tuple[str, ...]


AnyRow = TypeVar("AnyRow")


@dataclass(frozen=True)
class Table(Generic[AnyRow]):
    """Rows that are dataclasses; prints as a table, its head the names of their fields."""

    rows: tuple[AnyRow, ...]

    def __iter__(self) -> Iterator[AnyRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        cells = self._cells()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]
        return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head, *body = self._cells()
        lines = [_html_row("th", head), *(_html_row("td", row) for row in body)]
        return "<table>\n" + "\n".join(lines) + "\n</table>"

    def _cells(self) -> list[list[str]]:
        rows: tuple[Any, ...] = self.rows
        head = [field.name.replace("_", " ") for field in fields(rows[0])]
        return [head, *([_cell(value) for value in astuple(row)] for row in rows)]


class MethodTable(Table[MethodRow]):
    """The rows of `so.methods()`."""


def _cell(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(value)
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _html_row(tag: str, cells: list[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def methods() -> MethodTable:
    """Which method serves which operator, at what cost, how smooth, from which paper.

    >>> import softorder as so
    >>> sorted(row.name for row in so.methods() if row.operator == "soft_rank")[:4]
    ['cauchy', 'laplace', 'logistic', 'neuralsort']
    """
    by_operator = sorted(_registry.items(), key=lambda item: item[0][0])
    return MethodTable(tuple(_row(operator, method) for (operator, _), method in by_operator))


def _row(operator: str, method: Method) -> MethodRow:
    traced = operator not in method.untraced
    return MethodRow(
        operator=operator,
        name=method.name,
        cost=method.cost_of(operator),
        smoothness=method.smoothness,
        good_for=method.good_for,
        derivatives=method.derivatives,
        forward_mode=method.forward_mode,
        vmap=method.vmap and traced,
        compile=method.compile and traced,
        sharded=operator in method.sharded,
        paper=method.paper,
        breaks=method.breaks.get(operator, ()),
    )

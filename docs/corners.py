"""What the page about corners shows: the tables of softorder.kernels.contract.

python -m docs.corners      writes docs/snippets/corners.md
"""

from __future__ import annotations

from pathlib import Path

from softorder.cli._table import Table
from softorder.kernels.contract import CONTRACT, OPERATORS, Corner, Promise

SNIPPET = Path(__file__).parent / "snippets" / "corners.md"


def tables() -> str:
    """A table for each corner; operators that promise the same share a line."""
    note = "<!-- Written by `python -m docs.corners`. -->"
    parts = [_section(corner) for corner in CONTRACT]
    return "\n\n".join([note, *parts]) + "\n"


def _section(corner: Corner) -> str:
    table = Table(["operators", "value", "first derivative", "second derivative"])
    for promise, operators in _alike(corner).items():
        gives = (promise.value, promise.first, promise.second)
        table.add(_named(operators), *(word.value for word in gives))
    return "\n\n".join([f"### {corner.about}", table.markdown(), *_excuses(corner)])


def _alike(corner: Corner) -> dict[Promise, list[str]]:
    groups: dict[Promise, list[str]] = {}
    for operator in OPERATORS:
        if operator in corner.promises:
            groups.setdefault(corner.promises[operator], []).append(operator)
    return groups


def _named(operators: list[str]) -> str:
    if len(operators) == len(OPERATORS):
        return "all"
    return ", ".join(f"`{operator}`" for operator in operators)


def _excuses(corner: Corner) -> list[str]:
    """Whom it does not bind."""
    laws = [f"*{law.replace('_', ' ')}*" for law in corner.unless]
    ties = ["has kinks or jumps at ties"] if corner.smooth else []
    broken = [f"breaks the law {' or '.join(laws)}"] if laws else []
    words = " or ".join([*broken, *ties])
    return [f"A method that {words} gives what is finite."] if words else []


if __name__ == "__main__":
    SNIPPET.write_text(tables(), encoding="utf-8")

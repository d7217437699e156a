"""What the page about peers shows: the statements that tests/peers prove, as two tables.

python -m benchmarks.peers_page      writes docs/snippets/peers.md
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from softorder.cli._table import Table
from tests.peers.statements import ALL, Agreement, Difference, Peer

SNIPPET = Path("docs/snippets/peers.md")
PEERS = (
    "lapsum",
    "torchsort",
    "fast_soft_sort",
    "diffsort",
    "difftopk",
    "entmax",
    "pot",
    "soft",
    "simple",
    "softtorch",
    "allrank",
)


def statements(kind: type[Any]) -> list[Any]:
    """All statements of one kind, peer by peer, in the order of the tests."""
    modules = (import_module(f"tests.peers.test_{name}") for name in PEERS)
    every = (
        getattr(test, "statement", None) for module in modules for test in vars(module).values()
    )
    return [statement for statement in every if isinstance(statement, kind)]


def tables() -> str:
    """Agreements and differences, as Markdown."""
    note = "<!-- Written by `python -m benchmarks.peers_page`. -->"
    blocks = ["## What agrees", _left(_agreements()), "## What does not, and who is right"]
    return "\n\n".join([note, *blocks, _left(_differences())]) + "\n"


def _agreements() -> Table:
    table = Table(["peer", "theirs", "ours", "digits: values", "gradients", ""])
    for s in statements(Agreement):
        cells = (_code(s.theirs), _code(s.ours), _digits(s.values), _digits(s.gradients))
        table.add(_name(s.peer), *cells, s.note)
    return table


def _differences() -> Table:
    table = Table(["peer", "what", "theirs", "ours", "right", "shown by"])
    for s in statements(Difference):
        table.add(_name(s.peer), s.what, s.theirs, s.ours, s.right, s.proof)
    return table


def _left(table: Table) -> str:
    """All columns are text here."""
    return table.markdown().replace("---:", "---")


def _name(peer: Peer) -> str:
    return f"{peer.name} {peer.version}" + ("" if peer.module else " *")


def _code(call: str) -> str:
    return f"`{call}`"


def _digits(digits: int | None) -> str:
    if digits is None:
        return ""
    return "all" if digits == ALL else str(digits)


if __name__ == "__main__":
    SNIPPET.write_text(tables())
    print(f"wrote {SNIPPET}")

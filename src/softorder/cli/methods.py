"""softorder methods: which method to take, and what it promises."""

from __future__ import annotations

import argparse
from textwrap import fill

import softorder as so
from softorder.cli._table import Table

_EPILOG = """\
examples:
  softorder methods             what each method is good for, and what it serves
  softorder methods uniform     everything about one of them
  softorder methods --all       the whole table, wide: so.methods() in Python
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "methods",
        help="list the methods, what each is good for, and its paper",
        description="Say what each method is good for and which operators it serves; of one method "
        "also its costs, its paper and what it promises.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = sorted({row.name for row in so.methods()})
    parser.add_argument(
        "name", nargs="?", choices=names, metavar="METHOD", help=f"one of {', '.join(names)}"
    )
    parser.add_argument("--all", action="store_true", help="print the table of so.methods()")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    if arguments.all:
        print(so.methods())
    elif arguments.name is not None:
        print(_one(arguments.name))
    else:
        print(_overview())
        print("\nsoftorder methods NAME tells more about one of them.")
    return 0


_SHORT = {  # the columns of the overview: an operator, and what stands above it
    "soft_topk": "topk",
    "soft_rank": "rank",
    "soft_sort": "sort",
    "soft_permutation": "perm.",
    "soft_quantile": "quant.",
}


def _overview() -> str:
    """A line for each method, the general ones first."""
    served: dict[str, set[str]] = {}
    good_for = {}
    for row in so.methods():
        served.setdefault(row.name, set()).add(row.operator)
        good_for[row.name] = row.good_for
    order = [*so.densities.BUILT_IN, *sorted(served.keys() - so.densities.BUILT_IN.keys())]
    width = max(map(len, order))
    head = "  ".join(["method".ljust(width), *_SHORT.values(), "take it for"])
    lines = [head, "-" * 99]
    for name in order:
        marks = [
            ("•" if operator in served[name] else "").center(len(short))
            for operator, short in _SHORT.items()
        ]
        start = "  ".join([name.ljust(width), *marks, ""])
        rest = " " * len(start)
        lines.append(fill(good_for[name], 99, initial_indent=start, subsequent_indent=rest))
    return "\n".join(lines)


def _one(name: str) -> str:
    rows = [row for row in so.methods() if row.name == name]
    first = rows[0]
    table = Table(["operator", "cost", "derivatives", "forward mode", "vmap", "compile", "sharded"])
    for row in rows:
        flags = (row.forward_mode, row.vmap, row.compile, row.sharded)
        words = ("yes" if flag else "no" for flag in flags)
        table.add(row.operator, row.cost, str(row.derivatives), *words)
    broken = sorted({law for row in rows for law in row.breaks})
    facts = [
        f"{name}: {first.good_for}.",
        f"smoothness: {first.smoothness}",
        f"paper: {first.paper}",
        *([fill(f"laws that it breaks by its definition: {', '.join(broken)}", 99)] * bool(broken)),
    ]
    return "\n".join([*facts, "", table.text()])

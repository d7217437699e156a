"""Commands that are part of the repository, not of the installed package.

The modules named here have the same `add_parser` as the commands of this package. They are found
when the current folder is the root of a checkout.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

COMMANDS = {"bench": "benchmarks.command", "reproduce": "experiments.command"}


def is_here() -> bool:
    return all(Path(*name.split(".")).with_suffix(".py").is_file() for name in COMMANDS.values())


def commands() -> list[Any]:
    """The modules of the commands; none outside a checkout."""
    if not is_here():
        return []
    root = str(Path.cwd())
    if root not in sys.path:
        sys.path.insert(0, root)
    return [import_module(name) for name in COMMANDS.values()]


def require(argv: Sequence[str]) -> None:
    """Stop at a command of the checkout where there is no checkout."""
    if argv and argv[0] in COMMANDS and not is_here():
        raise SystemExit(
            f"softorder {argv[0]} needs a checkout: clone the softorder repository and run it from "
            f"the root; the current folder, {Path.cwd()}, is not one."
        )

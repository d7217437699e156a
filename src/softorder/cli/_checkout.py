"""Code that is part of the repository, not of the installed package."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any


def module(command: str, name: str) -> Any:
    """Import `name`, such as benchmarks.topk, from the current folder."""
    if not Path(*name.split(".")).with_suffix(".py").exists():
        raise SystemExit(
            f"softorder {command}: there is no {name.split('.')[0]}/ in the current folder. "
            "Run it from the root of a checkout of the softorder repository."
        )
    root = str(Path.cwd())
    if root not in sys.path:
        sys.path.insert(0, root)
    return importlib.import_module(name)

"""Packages that only some commands need."""

from __future__ import annotations

import importlib.util


def require(command: str, **extras: str) -> None:
    """Stop with the pip command that helps when a package is missing.

    Each keyword is a package's import name, its value the extra of softorder that installs it:
    `require("demo", matplotlib="plot")`.
    """
    missing = [name for name in extras if importlib.util.find_spec(name) is None]
    if missing:
        wanted = ",".join(dict.fromkeys(extras[name] for name in missing))
        raise SystemExit(
            f"softorder {command} needs {' and '.join(missing)}, which "
            f"{'is' if len(missing) == 1 else 'are'} not installed. Install with\n\n"
            f'    pip install "softorder[{wanted}]"'
        )

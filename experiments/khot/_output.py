"""Where the results go."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

_RESULTS, _FIGURES, _SCRATCH = (
    Path("experiments/khot/results"),
    Path("docs/figures"),
    Path("reports"),
)


def quick(description: str) -> bool:
    """Whether a small version is wanted."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="a small version, some seconds")
    return bool(parser.parse_args().quick)


def write(name: str, numbers: Any, table: str, small: bool, figure: Figure | None = None) -> None:
    """Prints the table; writes it, the numbers and the figure."""
    print(table)
    results, figures = (_SCRATCH, _SCRATCH) if small else (_RESULTS, _FIGURES)
    results.mkdir(parents=True, exist_ok=True)
    (results / f"{name}.json").write_text(json.dumps(numbers, indent=1, ensure_ascii=False) + "\n")
    (results / f"{name}.md").write_text(table + "\n")
    print(f"\nwrote {results}/{name}.json and .md")
    if figure is not None:
        path = figures / f"khot_{name}.png"
        figure.savefig(path)
        print(f"wrote {path}")


def plain(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#e5e7eb")
    axes.set_axisbelow(True)

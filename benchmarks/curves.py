"""Draws the soft top-k of the five densities for the documentation.

python -m benchmarks.curves      writes docs/figures/soft_topk.png
"""

from __future__ import annotations

from pathlib import Path

import torch
from matplotlib.figure import Figure

import softorder as so
from benchmarks.providers import DENSITIES

_COLORS = ("#c2410c", "#2563eb", "#059669", "#9333ea", "#ca8a04")
_TARGET = Path("docs", "figures", "soft_topk.png")


def draw(path: Path) -> None:
    """p of each of 21 evenly spread scores, k = 7, at three temperatures."""
    scores = torch.linspace(0, 1, 21)
    figure = Figure(figsize=(9, 3), dpi=110, layout="constrained")
    panels = figure.subplots(1, 3, sharey=True)
    for axes, temperature in zip(panels, (0.2, 0.05, 0.01), strict=True):
        axes.step(scores, so.hard.topk(scores, 7), where="mid", color="#94a3b8", lw=1)
        for density, color in zip(DENSITIES, _COLORS, strict=True):
            p = so.soft_topk(scores, 7, method=density, temperature=temperature)
            axes.plot(scores, p, ".-", color=color, label=density, lw=1.4, ms=4)
        axes.set_title(f"τ = {temperature}", fontsize=10)
        axes.set_xlabel("score")
        axes.grid(color="#e5e7eb", linewidth=0.8)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("p, of k = 7")
    panels[0].legend(frameon=False, fontsize=8)
    figure.savefig(path)


if __name__ == "__main__":
    draw(_TARGET)
    print(f"wrote {_TARGET}")

"""Draws soft ranks and sorted values for the documentation.

python -m benchmarks.rank_curves      writes docs/figures/soft_rank.png
"""

from __future__ import annotations

from pathlib import Path

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import softorder as so

_COLORS = ("#c2410c", "#2563eb", "#059669", "#9333ea", "#ca8a04")
_TARGET = Path("docs", "figures", "soft_rank.png")


def draw(path: Path) -> None:
    figure = Figure(figsize=(9, 3.4), dpi=110, layout="constrained")
    left, right = figure.subplots(1, 2)
    _ranks(left)
    _sorted(right)
    for axes in (left, right):
        axes.grid(color="#e5e7eb", linewidth=0.8)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)


def _ranks(axes: Axes) -> None:
    """The rank of one score that moves past four others."""
    moving = torch.linspace(-1, 5, 400)
    others = torch.tensor([0.0, 1.0, 1.0, 3.5])
    scores = torch.cat([moving.unsqueeze(-1), others.expand(400, 4)], -1)
    axes.step(moving, so.hard.rank(scores)[:, 0], color="#94a3b8", lw=1, label="hard")
    for temperature, color in zip((0.05, 0.2, 0.6), _COLORS, strict=False):
        ranks = so.soft_rank(scores, temperature=temperature)[:, 0]
        axes.plot(moving, ranks, color=color, lw=1.6, label=f"τ = {temperature}")
    axes.plot(others, torch.full((4,), 0.85), "k^", ms=5, clip_on=False)
    axes.set_title("rank of one score among 0, 1, 1 and 3.5", fontsize=10)
    axes.set_xlabel("score")
    axes.legend(frameon=False, fontsize=8)


def _sorted(axes: Axes) -> None:
    """Sorted values against the temperature."""
    scores = torch.tensor([1.0, 3.5, 0.0, 1.0, 2.0])
    temperatures = torch.logspace(-2, 0.3, 200)
    values = so.soft_sort(scores.expand(200, 5), temperature=temperatures)
    for place, color in enumerate(_COLORS):
        axes.semilogx(temperatures, values[:, place], color=color, lw=1.6)
    axes.set_title("0, 1, 1, 2, 3.5 softly sorted", fontsize=10)
    axes.set_xlabel("temperature")


if __name__ == "__main__":
    draw(_TARGET)
    print(f"wrote {_TARGET}")

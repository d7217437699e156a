"""A model, on paper, of a row of 10⁹ scores on 8 to 4,096 ranks.

    ours     passes × (n/ranks × c + L(ranks))      c: measured, of one pass; L: of an all-reduce
    gather   n × 4 bytes / bandwidth + n × c_topk   every rank receives all of the row

Nothing here was measured but c and c_topk, by one thread of one CPU: latencies and bandwidths are
assumptions, stated below. A GPU has smaller c, and gains less from many ranks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

RANKS = tuple(2**i for i in range(3, 13))
SCORES = 10**9
EXCHANGES = 5  # of a bell-shaped row
LATENCY = 10e-6  # seconds for one step of a tree over a fast network
BANDWIDTH = 25e9  # bytes per second into one rank


def all_reduce(ranks: int) -> float:
    """Seconds for a handful of numbers: up a tree and down again."""
    return 2 * LATENCY * math.log2(ranks)


def ours(ranks: int, pass_seconds: float) -> float:
    """`pass_seconds` are those of one score in one pass."""
    return EXCHANGES * (SCORES / ranks * pass_seconds + all_reduce(ranks))


def gathered(ranks: int, topk_seconds: float) -> float:
    """The same for a score of a top-k that comes after a gather."""
    return SCORES * 4 / BANDWIDTH + SCORES * topk_seconds


def draw(found: Sequence[Any], path: Path) -> None:
    """Time over ranks, from the longest rows that were measured on one rank."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    alone = [one for one in found if one.ranks == 1]
    longest = max(one.n for one in alone)
    forward = {one.way: one.forward / one.n for one in alone if one.n == longest}
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    pass_seconds = forward["softorder"] / EXCHANGES
    curves = {
        "softorder, nothing gathered": [ours(r, pass_seconds) for r in RANKS],
        "gather, soft top-k": [gathered(r, forward["gather, soft top-k"]) for r in RANKS],
        "gather, torch.topk": [gathered(r, forward["gather, torch.topk"]) for r in RANKS],
    }
    for label, seconds in curves.items():
        axes.plot(RANKS, seconds, marker="o", label=label)
    latency = [EXCHANGES * all_reduce(r) for r in RANKS]
    axes.plot(RANKS, latency, ":", color="grey", label=f"{EXCHANGES} all-reduces alone")
    axes.set(xscale="log", yscale="log", xlabel="ranks", ylabel="seconds, forward")
    axes.set_xticks(RANKS, [f"{r:,}" for r in RANKS])
    axes.minorticks_off()
    axes.set_title(
        f"A row of {SCORES:.0e} scores, by a model".replace("e+09", "·10⁹").replace("1·", "")
    )
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncol=2)
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=140)
    plt.close(figure)

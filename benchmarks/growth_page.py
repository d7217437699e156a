"""What the growth of rank and sort shows: a table, a plot, and a sentence that is computed."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from softorder.cli._table import Table

ORDERS = ("soft_rank", "soft_sort")
_COLOURS = {"torch.sort": "#1d4ed8", "soft_rank": "#c2410c", "soft_sort": "#f59e0b"}
_NOTICED = 0.1  # misses per score: less is nothing


def nanoseconds(results: Mapping[str, Any]) -> dict[str, dict[int, float]]:
    """Per score, by who and n."""
    found: dict[str, dict[int, float]] = {}
    for row in results["timings"]:
        found.setdefault(_who(row["provider"]), {})[row["n"]] = 1e9 * row["minimum"] / row["n"]
    return found


def misses(results: Mapping[str, Any]) -> dict[str, dict[int, float]]:
    """Per score, by operator and n."""
    found: dict[str, dict[int, float]] = {}
    for row in results["misses"]:
        found.setdefault(row["operator"], {})[row["n"]] = row["per_score"]
    return found


def _who(provider: str) -> str:
    """softorder rank, laplace is soft_rank."""
    if not provider.startswith("softorder "):
        return provider
    return "soft_" + provider.removeprefix("softorder ").split(",")[0]


def growth_table(results: Mapping[str, Any]) -> Table:
    """ns per score, time(2n)/time(n), misses per score."""
    times, missed = nanoseconds(results), misses(results)
    sizes = sorted({n for of in (*times.values(), *missed.values()) for n in of})
    heads = [f"{who}, {what}" for who in times for what in ("ns", "× for 2n")]
    table = Table(["n", *heads, *(f"{who}, misses" for who in missed)])
    for n in sizes:
        cells = []
        for of in times.values():
            cells += [f"{of[n]:.2f}", f"{2 * of[2 * n] / of[n]:.2f}" if 2 * n in of else ""]
        cells += [f"{of[n]:.3f}" if n in of else "" for of in missed.values()]
        table.add(f"{n:,}", *cells)
    return table


def sentence(results: Mapping[str, Any]) -> str:
    """How fast they grow, and where the cache ends, from the numbers alone."""
    times, missed = nanoseconds(results), misses(results)
    parts = []
    for who, of in times.items():
        sizes = sorted(of)
        if len(sizes) > 1:
            factors = [2 * of[b] / of[a] for a, b in pairwise(sizes)]
            parts.append(f"`{who}` by {min(factors):.2f} to {max(factors):.2f}")
    text = f"When n doubles, the time grows: {', '.join(parts)}." if parts else ""
    for who, of in missed.items():
        text += " " + _of_misses(who, of, times.get(who, {}), results["cache"])
    return text.strip()


def _of_misses(who: str, of: dict[int, float], times: dict[int, float], cache: str) -> str:
    sizes = sorted(of)
    first, last = sizes[0], sizes[-1]
    mebibytes = int(cache.split(",")[0]) / 2**20
    told = (
        f"On one core `{who}` misses a last cache of {mebibytes:.0f} MiB {of[first]:.3f} times per "
        f"score at n = {first:,} and {of[last]:.2f} times at n = {last:,}"
    )
    beyond = next((n for n in sizes if of[n] > _NOTICED), None)
    if beyond is None or beyond == first:
        return told + "."
    before, after = _slopes(times, beyond)
    told += f"; it no longer fits from n = {beyond:,} on"
    if before and after:
        told += f", where the factor of a doubling goes from {before:.2f} to {after:.2f}"
    return told + "."


def _slopes(times: dict[int, float], n: int) -> tuple[float | None, float | None]:
    """The factor of a doubling on both sides: on average below n, and from n/2 to the end."""
    below = [2 * times[m] / times[m // 2] for m in times if m < n and m // 2 in times]
    above = [2 * times[m] / times[m // 2] for m in times if m >= n and m // 2 in times]
    return (
        sum(below) / len(below) if below else None,
        sum(above) / len(above) if above else None,
    )


def draw(results: Mapping[str, Any], path: Path) -> None:
    """Time per score above, misses per score below, on one axis of n."""
    figure = Figure(figsize=(7, 5), dpi=110, layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    for axes, lines, label in (
        (upper, nanoseconds(results), "ns per score"),
        (lower, misses(results), "last-cache misses per score"),
    ):
        for who, of in lines.items():
            sizes = sorted(of)
            axes.plot(sizes, [of[n] for n in sizes], "o-", ms=3, color=_COLOURS[who], label=who)
        axes.set_xscale("log", base=2)
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
        axes.grid(color="#e5e7eb")
        axes.spines[["top", "right"]].set_visible(False)
    if upper.get_lines():
        upper.legend(frameon=False, fontsize=8)
    lower.set_xlabel("n")
    figure.savefig(path)

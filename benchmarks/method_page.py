"""What the page about all methods shows: pictures on one input, and tables from so.methods().

python -m benchmarks.method_page      writes docs/figures/methods_*.png and docs/snippets/methods.md
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

import softorder as so
from softorder.cli._table import Table

_DOCS = Path("docs")
SNIPPET = _DOCS / "snippets" / "methods.md"
_ORANGE, _GREY = "#c2410c", "#94a3b8"
_N, _K, _SOFTNESS = 10, 4, 0.6

_FEW = ("soft_topk", "soft_rank", "soft_sort", "soft_permutation", "soft_quantile")


def scores() -> Tensor:
    """The one input: a crowd, a pair and some who stand alone, not in order."""
    values = [0.3, 2.6, -1.0, 1.2, 0.1, 1.4, -2.2, 0.0, 3.4, -0.4]
    return torch.tensor(values, dtype=torch.float64)


def names(operator: str) -> list[str]:
    return [row.name for row in so.methods() if row.operator == operator]


# ---- tables ------------------------------------------------------------------------------------


def tables() -> str:
    """Costs and broken laws, as Markdown."""
    note = "<!-- Written by `python -m benchmarks.method_page`. -->"
    blocks = ["### What they cost", _costs().markdown(), "### Which laws they break"]
    return "\n\n".join([note, *blocks, _laws().markdown()]) + "\n"


def _costs() -> Table:
    """A method in each line, an operator in each column."""
    rows = {(row.name, row.operator): row for row in so.methods()}
    table = Table(["", *(f"`{operator}`" for operator in _FEW), "smoothness"])
    for name in dict.fromkeys(row.name for row in so.methods()):
        here = [rows.get((name, operator)) for operator in _FEW]
        smoothness = dict.fromkeys(row.smoothness for row in here if row)
        cells = ("" if row is None else row.cost for row in here)
        table.add(f"`{name}`", *cells, "; ".join(smoothness))
    return table


def _laws() -> Table:
    """A broken law in each line, and who breaks it."""
    culprits: dict[tuple[str, str], list[str]] = {}
    for row in so.methods():
        for law in row.breaks:
            culprits.setdefault((row.operator, law), []).append(f"`{row.name}`")
    table = Table(["operator", "law", "broken by"])
    for (operator, law), methods in culprits.items():
        table.add(f"`{operator}`", law.replace("_", " "), ", ".join(methods))
    return table


# ---- pictures ----------------------------------------------------------------------------------


def temperature_of(softness: Callable[[float], float]) -> float:
    """The temperature at which a mean diagonal, which falls, is what we want."""
    low, high = -6.0, 6.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if softness(10**middle) > _SOFTNESS else (low, middle)
    return 10**low


def matrix(method: str, temperature: float) -> Tensor:
    """P with its columns in the order of the scores."""
    x = scores()
    p = so.soft_permutation(x, method=method, temperature=temperature)
    return p[:, x.argsort()]


def jacobian(method: str, temperature: float) -> Tensor:
    """How sorted values answer to the scores, in order."""
    x = scores()
    function = torch.func.jacrev(lambda x: so.soft_sort(x, method=method, temperature=temperature))
    return function(x)[:, x.argsort()]


def draw_matrices(path: Path) -> None:
    _draw(path, "soft_permutation", matrix)


def draw_gradients(path: Path) -> None:
    _draw(path, "soft_sort", jacobian)


def _draw(path: Path, operator: str, picture: Callable[[str, float], Tensor]) -> None:
    chosen = names(operator)
    figure, panels = _grid(len(chosen))
    for axes, method in zip(panels, chosen, strict=False):
        temperature = temperature_of(lambda t, m=method: picture(m, t).diagonal().mean().item())
        image = picture(method, temperature)
        shown = axes.imshow(image, cmap="PuOr_r", vmin=-1, vmax=1)
        axes.set_title(f"{method}\nτ = {temperature:.2g}", fontsize=8)
        axes.set(xticks=[], yticks=[])
    figure.colorbar(shown, ax=list(panels), shrink=0.6, pad=0.01)
    figure.savefig(path)


def draw_masks(path: Path) -> None:
    """p against the scores, k = 4, as soft as the others."""
    chosen, x = names("soft_topk"), scores()
    best = x.topk(_K).indices
    figure, panels = _grid(len(chosen))
    for axes, method in zip(panels, chosen, strict=False):

        def mask(temperature: float, method: str = method) -> Tensor:
            return so.soft_topk(x, _K, method=method, temperature=temperature)

        temperature = temperature_of(lambda t, mask=mask: mask(t)[best].mean().item() - 0.2)
        axes.axhline(1, color=_GREY, lw=0.7)
        axes.vlines(x, 0, mask(temperature), color=_ORANGE, lw=1.2)
        axes.plot(x, mask(temperature), "o", color=_ORANGE, ms=3.5)
        axes.set_title(f"{method}\nτ = {temperature:.2g}", fontsize=8)
        axes.set(ylim=(0, 1.45), xticks=[], yticks=(0, 1))
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)


def draw_network(path: Path) -> None:
    """A splitter network that selects 3 of 16."""
    figure = Figure(figsize=(6, 4.4), dpi=110, layout="constrained")
    so.networks.selection_network(16, 3).plot(figure.subplots())
    figure.savefig(path)


def _grid(count: int) -> tuple[Figure, Iterable[Axes]]:
    columns = 6
    rows = -(-count // columns)
    figure = Figure(figsize=(9.6, 1.8 * rows), dpi=110, layout="constrained")
    panels = figure.subplots(rows, columns).flat
    for axes in panels[count:]:
        axes.set_axis_off()
    return figure, panels[:count]


if __name__ == "__main__":
    SNIPPET.parent.mkdir(exist_ok=True)
    SNIPPET.write_text(tables())
    for name, draw in (
        ("matrices", draw_matrices),
        ("gradients", draw_gradients),
        ("masks", draw_masks),
        ("network", draw_network),
    ):
        draw(_DOCS / "figures" / f"methods_{name}.png")
    print(f"wrote {SNIPPET} and {_DOCS}/figures/methods_*.png")

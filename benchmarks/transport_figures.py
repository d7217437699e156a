"""Draws figures 3 and 7 of the SOFT top-k paper for the documentation.

python -m benchmarks.transport_figures      writes docs/figures/transport_{plans,gradients}.png
"""

from __future__ import annotations

from pathlib import Path

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import softorder as so

_FOLDER = Path("docs", "figures")
_EPSILONS = (1e-3, 1e-2, 1e-1, 1.0)
_OURS, _THEIRS = "#c2410c", "#2563eb"


def draw_plans(path: Path) -> None:
    """Figure 3: the plan of 50 normal scores and two anchors, and A against the scores."""
    scores = torch.randn(50, generator=torch.Generator().manual_seed(0)).sort().values
    figure = Figure(figsize=(9, 4.2), dpi=110, layout="constrained")
    plans, weights = figure.subplots(2, 4, sharey="row", height_ratios=(1, 2))
    for upper, lower, epsilon in zip(plans, weights, _EPSILONS, strict=True):
        a = so.soft_topk(scores, 5, method="sinkhorn", temperature=epsilon, largest=False)
        upper.imshow(torch.stack([a, 1 - a]) / 50, aspect="auto", cmap="YlOrBr")
        upper.set_title(f"ε = {epsilon:g}", fontsize=10)
        upper.set_yticks((0, 1), ("anchor 0", "anchor 1"))
        lower.plot(scores, a, ".", color=_OURS)
        lower.set_xlabel("score")
        _plain(lower)
    weights[0].set_ylabel("A")
    figure.savefig(path)


def draw_gradients(path: Path) -> None:
    """Figure 7: where the scores 0..9 go to be chosen, if these or others should be the top 3."""
    figure = Figure(figsize=(9, 2.4), dpi=110, layout="constrained")
    for axes, wanted in zip(figure.subplots(1, 2), ((0, 1, 2), (1, 4, 6)), strict=True):
        scores = torch.arange(10.0, requires_grad=True)
        a = so.soft_topk(scores, 3, method="sinkhorn", temperature=4.0, largest=False)
        (gradient,) = torch.autograd.grad(a[list(wanted)].sum(), scores)
        _arrows(axes, scores.detach(), gradient, wanted)
    figure.savefig(path)


def _arrows(
    axes: Axes, scores: torch.Tensor, gradient: torch.Tensor, wanted: tuple[int, ...]
) -> None:
    longest = gradient.abs().max()
    height = torch.zeros_like(scores)
    axes.quiver(
        scores, height, 0.9 * gradient / longest, height, angles="xy", scale_units="xy", scale=1
    )
    colors = [_OURS if i in wanted else _THEIRS for i in range(10)]
    axes.scatter(scores, height, c=colors, zorder=3)
    axes.set_title(f"wanted: {', '.join(map(str, wanted))}", fontsize=10)
    axes.set_xlim(-1.2, 9.5)
    axes.set_ylim(-1, 1)
    axes.set_yticks([])
    _plain(axes)


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    draw_plans(_FOLDER / "transport_plans.png")
    draw_gradients(_FOLDER / "transport_gradients.png")
    print(f"wrote {_FOLDER}/transport_plans.png and transport_gradients.png")

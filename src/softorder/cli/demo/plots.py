"""The pictures of the report, as SVG text."""

from __future__ import annotations

import io
from itertools import product

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor, nn

from softorder.cli.demo import neighbours, speed
from softorder.cli.demo.digits import Digits
from softorder.cli.demo.neighbours import K
from softorder.cli.demo.session import METHODS, Session
from softorder.cli.demo.training import reproducible
from softorder.nn import SoftKNN
from softorder.nn.functional import soft_neighbours

_COLORS = dict(zip(METHODS, ("#c2410c", "#2563eb", "#059669", "#9333ea", "#ca8a04"), strict=True))
_GREY = "#64748b"
_WRONG = "#dc2626"


def _figure(width: float, height: float) -> Figure:
    return Figure(figsize=(width, height), layout="constrained")


def _svg(figure: Figure) -> str:
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def _bare(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#e5e7eb", linewidth=0.8)
    axes.set_axisbelow(True)


def _color(label: str) -> str:
    return next((color for method, color in _COLORS.items() if method in label), _GREY)


def accuracy(session: Session) -> str:
    """A dot per seed, a bar at the mean."""
    rows = session.rows()[::-1]
    figure = _figure(7.5, 3.2)
    axes = figure.subplots()
    for height, row in enumerate(rows):
        color = _color(row.trained)
        percent = [100 * value for value in row.accuracies]
        axes.plot(percent, [height] * len(percent), "o", color=color, alpha=0.45, ms=6, mew=0)
        axes.plot([100 * row.mean], [height], "|", color=color, ms=17, mew=3)
    axes.set_yticks(range(len(rows)), [f"{row.trained}: {row.predicted}" for row in rows])
    axes.set_xlabel("test accuracy, %: one dot per seed, the mean as a bar")
    _bare(axes)
    return _svg(figure)


def losses(session: Session) -> str:
    """The training loss of each density: the mean of a tenth of the steps and of all seeds."""
    figure = _figure(7.5, 3.2)
    axes = figure.subplots()
    for method in METHODS:
        losses = torch.tensor([run.losses for run in session.runs[method]]).mean(0)
        axes.plot(*_smooth(losses), color=_COLORS[method], label=method, lw=1.8)
    axes.set_yscale("log")
    axes.set_xlabel("step")
    axes.set_ylabel("share of wrong neighbours")
    axes.legend(frameon=False, ncols=2)
    _bare(axes)
    return _svg(figure)


def _smooth(losses: Tensor) -> tuple[Tensor, Tensor]:
    """Steps, and the mean of the tenth of all losses around each."""
    width = max(1, len(losses) // 10)
    stride = max(1, width // 3)
    means = losses.unfold(0, width, stride).mean(-1)
    return torch.arange(len(means)) * stride + width / 2, means


def weights(session: Session) -> str:
    """What a soft top-k makes of one row of scores: an untrained query against the templates."""
    digits = session.runs[METHODS[0]][0].digits
    with reproducible():
        torch.manual_seed(0)
        body = neighbours.network()
    with torch.no_grad():
        query, templates = body(digits.test_images[:1]), body(digits.images)
    shown = torch.arange(1, 41)
    figure = _figure(7.5, 3.2)
    axes = figure.subplots()
    axes.step(shown, shown <= K, where="mid", color=_GREY, lw=1)
    for method in METHODS:
        tau = session.temperature(method)
        p = soft_neighbours(query, templates, K, method=method, temperature=tau, distance="squared")
        nearest = p[0].topk(len(shown)).values
        axes.plot(shown, nearest, color=_COLORS[method], label=method, lw=1.8)
    axes.set_xlabel("templates, nearest first (grey: the hard top-k)")
    axes.set_ylabel("weight")
    axes.legend(frameon=False)
    _bare(axes)
    return _svg(figure)


def faces(session: Session) -> str:
    """Queries that the pixels get wrong, with their neighbours by pixels and by features."""
    run = session.runs[METHODS[0]][0]
    digits = run.digits
    voters = {
        "pixels": neighbours.voters(nn.Identity(), digits),
        "features": neighbours.voters(run.body, digits),
    }
    right = [knn.predict(digits.test_images) == digits.test_labels for knn in voters.values()]
    chosen = (~right[0] & right[1]).nonzero()[:3, 0]
    figure = _figure(9, 1.75 * len(chosen) + 0.2)
    grid = figure.subplots(2 * len(chosen), K + 1, squeeze=False)
    for axes, (query, name) in zip(grid, product(chosen.tolist(), voters), strict=True):
        axes[0].set_ylabel(f"by {name}", rotation=0, ha="right", va="center", labelpad=8)
        _neighbour_row(list(axes), voters[name], digits, query)
    return _svg(figure)


def _neighbour_row(axes: list[Axes], voters: SoftKNN, digits: Digits, query: int) -> None:
    _, indices = voters.kneighbors(digits.test_images[query : query + 1])
    _image(axes[0], digits.test_images[query], "black")
    for cell, index in zip(axes[1:], indices[0].tolist(), strict=True):
        good = digits.labels[index] == digits.test_labels[query]
        _image(cell, digits.images[index], "#e5e7eb" if good else _WRONG)


def _image(axes: Axes, pixels: Tensor, frame: str) -> None:
    axes.imshow(pixels.reshape(8, 8).numpy(), cmap="gray_r", interpolation="nearest")
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_color(frame)
        spine.set_linewidth(2)


def speeds(session: Session) -> str:
    """How many softmaxes each call takes, one panel per shape."""
    figure = _figure(9, 2.9)
    panels = figure.subplots(1, len(session.speeds), sharey=True, squeeze=False)[0]
    for axes, ((rows, n), timings) in zip(panels, session.speeds.items(), strict=True):
        names = list(timings)[::-1]
        times = [timings[name].minimum / timings["softmax"].minimum for name in names]
        labels, colors = [speed.label(name) for name in names], [_color(name) for name in names]
        bars = axes.barh(labels, times, color=colors)
        axes.bar_label(bars, [f"{value:.1f}" for value in times], padding=3, fontsize=9)
        axes.set_xscale("log")
        axes.set_xlim(0.5, 6 * max(times))
        axes.set_title(f"{rows:,}×{n:,}", fontsize=10)
        axes.set_xlabel("× softmax")
        _bare(axes)
    return _svg(figure)

"""Accuracies, accuracy over the temperature, and maps of the features."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from experiments import panels
from experiments.data.idx import Images
from experiments.trials import Column, Trials

_MAPPED = 400  #: images on a map
_ACCURACY = Column("accuracy", "test accuracy, %", 2, 100)


@torch.no_grad()
def map_of(features: nn.Module, images: Images) -> dict[str, list[float]]:
    """Places of some test images on a plane, by t-SNE of their features, and their classes."""
    from sklearn.manifold import TSNE

    features.eval()
    some = features(images.test_images[:_MAPPED]).flatten(1).cpu().numpy()
    tsne = TSNE(perplexity=min(30, (len(some) - 1) / 3), init="pca", random_state=0)
    places = tsne.fit_transform(some)
    return {
        "map_x": places[:, 0].tolist(),
        "map_y": places[:, 1].tolist(),
        "map_class": images.test_labels[:_MAPPED].tolist(),
    }


def draw(trials: Trials, path: Path) -> None:
    from matplotlib.figure import Figure

    if trials.config.get("sweep"):
        figure = Figure(figsize=(7, 4.2), layout="constrained")
        _over_temperature(figure.subplots(), trials)
    else:
        maps = [r for r in trials.records if "map_x" in r]
        rows = -(-len(maps) // 2)
        height = max(1.2 + 0.3 * len(trials.arms), 3.0 * rows)
        figure = Figure(figsize=(6 + (6.4 if maps else 0), height), layout="constrained")
        left, *right = figure.subfigures(1, 2 if maps else 1, squeeze=False)[0]
        axes = left.subplots()
        panels.dots(axes, trials, _ACCURACY)
        axes.invert_yaxis()
        if maps:
            _maps(list(right[0].subplots(rows, 2, squeeze=False).flat), maps)
    figure.suptitle(trials.title, fontsize=10)
    figure.savefig(path, dpi=120)


def _over_temperature(axes: Any, trials: Trials) -> None:
    """After figures 6 and 8 of LapSum, which have classification in the place of neighbours."""
    lines = [f"{method}, share" for method in trials.config["methods"]]
    lines += [f"{method}, share, learned τ" for method in trials.config["learned"]]
    panels.means(
        axes, trials, _ACCURACY, lines, trials.config["sweep"], lambda line, τ: f"{line}, τ = {τ:g}"
    )
    axes.set_xscale("log")
    axes.set_xlabel("τ at the start / spread of the distances there")
    axes.legend(fontsize=8)


def _maps(all_axes: Sequence[Any], maps: Sequence[Any]) -> None:
    """After figure 5 of SOFT top-k: t-SNE of the features of test images, a colour per class."""
    for axes in all_axes:
        axes.set_axis_off()
    for axes, record in zip(all_axes, maps, strict=False):
        axes.scatter(record["map_x"], record["map_y"], c=record["map_class"], cmap="tab10", s=5)
        axes.set_title(f"{record['arm']}: {100 * record['accuracy']:.1f} %", fontsize=9)

"""Scores of every arm, and what the words of a sentence look at (figure 6 of SOFT top-k)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from experiments import panels
from experiments.topk_attention.data import END, START, Data
from experiments.topk_attention.model import Translator
from experiments.trials import Column, Trials

_COLUMNS = (Column("bleu", "BLEU", 2), Column("loss", "test loss per word", 3))


def map_of(model: Translator, data: Data, longest: int) -> dict[str, list[Any]]:
    """The longest of the first test sentences, the translation, and the attention between them."""
    model.eval()
    sentence = max((english for english, _ in data.test[:20]), key=len)
    english = data.english.tensor([sentence], wrap=False)
    said = model.translate(english, longest)[0].tolist()
    if END in said:
        said = said[: said.index(END) + 1]
    weights = model.attention(english, torch.tensor([[START, *said[:-1]]]))[0]
    return {
        "map_english": list(sentence),
        "map_french": [data.french.names[word] for word in said],
        "map_weights": weights.tolist(),
    }


def draw(trials: Trials, path: Path) -> None:
    from matplotlib.figure import Figure

    maps = [r for r in trials.records if "map_weights" in r]
    curved = [arm for arm in trials.arms if trials.values(arm, "curve_loss")]
    size = (9 + 4 * bool(curved), 2.6 + (3.6 if maps else 0))
    figure = Figure(figsize=size, layout="constrained")
    above, *below = figure.subfigures(2 if maps else 1, 1, squeeze=False)[:, 0]
    row = above.subplots(1, len(_COLUMNS) + bool(curved), squeeze=False)[0]
    for axes, column in zip(row, _COLUMNS, strict=False):
        panels.dots(axes, trials, column)
        axes.invert_yaxis()
    row[1].set_yticklabels([])
    if curved:
        panels.curves(row[2], trials, "curve_loss", "curve_updates", curved)
        row[2].set_title("loss per word on the validation part", fontsize=9)
        row[2].set_xlabel("updates")
        row[2].legend(fontsize=7)
    if maps:
        _maps(below[0].subplots(1, len(maps), squeeze=False)[0], maps)
    figure.suptitle(trials.title, fontsize=10)
    figure.savefig(path, dpi=120)


def _maps(row: Sequence[Any], maps: Sequence[Any]) -> None:
    for axes, record in zip(row, maps, strict=True):
        axes.imshow(record["map_weights"], cmap="Blues", vmin=0, vmax=1)
        english, french = record["map_english"], record["map_french"]
        axes.set_xticks(range(len(english)), english, rotation=90, fontsize=7)
        axes.set_yticks(range(len(french)), french, fontsize=7)
        axes.set_title(record["arm"], fontsize=9)

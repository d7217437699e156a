"""Characters drawn from fonts. A family of fonts is in one part only: its style is new there."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

from torch import nn

from experiments.data import glyphs
from experiments.data.fonts import SCRIPTS
from experiments.experiment import Setting
from experiments.topk_classification.splits import Data, mixed

_EPOCHS = {"glyphs": 8, "kanji": 2}
_SIDE = 24


def writing(name: str, quick: bool, setting: Setting) -> Data:
    """Eight font families to learn from, two to choose by, two to be judged by."""
    families = list(SCRIPTS[name].families)
    ends = (6, 8, 9, 10) if quick else (0, 8, 10, 12)
    drawn = (
        glyphs.load(name, families[start:end], setting.data, setting.fetch, _SIDE)
        for start, end in pairwise(ends)
    )
    splits = [mixed(*part) for part in drawn]
    classes = len(SCRIPTS[name].characters)
    epochs = 1 if quick else _EPOCHS[name]
    return Data(
        name, *splits, classes, partial(network, classes), epochs=epochs, batch=128, rate=1e-2
    )


WRITING = {name: partial(writing, name) for name in SCRIPTS}


def network(classes: int, width: int = 128) -> nn.Module:
    """Two convolutions of stride 2 and a hidden layer.

    With thousands of classes it takes the normalisation of the hidden layer to learn in a few
    hundred steps.
    """
    side = _SIDE // 4
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, 2, 2),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, 2, 1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * side * side, width),
        nn.BatchNorm1d(width),
        nn.ReLU(),
        nn.Linear(width, classes),
    )

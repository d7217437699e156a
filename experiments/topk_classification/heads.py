"""Fine-tuning: the last layer of a network that softmax cross-entropy has trained on characters."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from functools import lru_cache, partial

import torch
from torch import Tensor, nn

from experiments.experiment import Setting
from experiments.topk_classification.candidates import Candidate
from experiments.topk_classification.splits import Data, Split
from experiments.topk_classification.training import trained
from experiments.topk_classification.writing import writing

_SEED = 2_000_000  # that no trial uses
_SOFTMAX = Candidate("softmax", "1", 10.0)  # the best of its grid, of kanji
_EPOCHS = 4
HEADS = {"kanji_features": "kanji"}  #: and the characters that they are features of


@lru_cache(maxsize=1)
def heads(name: str, quick: bool, setting: Setting) -> Data:
    """Features (rows, width) of all images. Every head starts as the softmax one.

    It is multiplied by 1/τ of the softmax, so that all losses meet logits of the same scale.
    """
    script = HEADS[name]
    images = writing(script, quick, setting).to(setting.device)
    epochs = 1 if quick else _EPOCHS
    model = trained(replace(images, epochs=epochs), _SOFTMAX, _SEED).eval()
    assert isinstance(model, nn.Sequential)
    body, head = model[:-1], model[-1]
    with torch.no_grad():
        for parameter in head.parameters():
            parameter /= _SOFTMAX.temperature
    parts = (_seen(body, part) for part in (images.train, images.validation, images.test))
    epochs = 1 if quick else 5
    start = partial(deepcopy, head)
    return Data(name, *parts, images.classes, start, epochs=epochs, batch=500, rate=1e-3)


@torch.no_grad()
def _seen(body: nn.Module, split: Split) -> Split:
    """What the last layer sees of them."""
    batches = torch.arange(len(split)).split(1024)
    seen: list[tuple[Tensor, Tensor]] = [split[places] for places in batches]
    inputs = torch.cat([body(images) for images, _ in seen])
    target = torch.cat([labels for _, labels in seen])
    return Split(inputs, target, torch.arange(len(target), device=target.device))

"""What a trained network says of the images of ImageNet: only the last layer is learned."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from torch import Tensor, nn

from experiments.data import features as files
from experiments.experiment import Setting
from experiments.topk_classification.splits import Data, held_out, whole


@dataclass(frozen=True)
class Schedule:
    epochs: int
    rate: float


FEATURES = {"imagenet": Schedule(100, 10**-4.5), "imagenet21k": Schedule(40, 1e-4)}


def features(name: str, quick: bool, setting: Setting) -> Data:
    """Batches of 500, as the papers have; a fiftieth of the training rows is for validation."""
    found = files.load(name, setting.data)
    train, validation = held_out(found.features, found.labels, 0.02)
    if quick:
        train = train.part(0.01)
    classes = 1 + int(found.labels.max())
    model = partial(_head, found.features.shape[1], classes)
    schedule = FEATURES[name]
    epochs = 1 if quick else schedule.epochs
    splits = (train, validation, whole(found.test_features, found.test_labels))
    return Data(name, *splits, classes, model, epochs=epochs, batch=500, rate=schedule.rate)


class _Widen(nn.Module):
    """Features may be kept in half precision."""

    def forward(self, x: Tensor) -> Tensor:
        return x.float()


def _head(width: int, classes: int) -> nn.Module:
    return nn.Sequential(_Widen(), nn.Linear(width, classes))

"""Real data, as tensors, split once and for all."""

from __future__ import annotations

from experiments.experiment import Setting
from experiments.topk_classification.features import FEATURES, features
from experiments.topk_classification.heads import HEADS, heads
from experiments.topk_classification.pictures import PICTURES, pictures
from experiments.topk_classification.splits import Data
from experiments.topk_classification.tables import TABLES
from experiments.topk_classification.writing import WRITING

NAMES = (*TABLES, *WRITING, *HEADS, *PICTURES, *FEATURES)


def source(name: str) -> str:
    """The data set that is fetched for it."""
    return HEADS.get(name, name)


def load(name: str, quick: bool = False, setting: Setting | None = None) -> Data:
    """By name; `quick` takes a part of it, a smaller network, fewer epochs."""
    setting = setting or Setting()
    if name in TABLES:
        data = TABLES[name](quick)
    elif name in WRITING:
        data = WRITING[name](quick, setting)
    elif name in HEADS:
        data = heads(name, quick, setting)
    elif name in PICTURES:
        data = pictures(name, quick, setting)
    else:
        data = features(name, quick, setting)
    return data.to(setting.device)

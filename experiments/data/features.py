"""Features of images, computed before by any network, in four files of NumPy.

train_features.npy   (N, width), float16 or float32
train_labels.npy     (N,), integers from 0
test_features.npy    (M, width)
test_labels.npy      (M,)
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from experiments.data.sources import SOURCES, locate
from experiments.data.unpacking import content


@dataclass(frozen=True)
class Features:
    features: Tensor
    labels: Tensor
    test_features: Tensor
    test_labels: Tensor


def load(name: str, folder: Path | None = None) -> Features:
    """ "imagenet" or "imagenet21k". No registry has them: there is nothing to fetch."""
    paths = SOURCES[name].paths(locate(name, folder))
    table, labels, test_table, test_labels = map(read, paths)
    for path, rows, names in ((paths[0], table, labels), (paths[2], test_table, test_labels)):
        if rows.ndim != 2 or not rows.is_floating_point():
            raise ValueError(f"{path} has {rows.dtype} of shape {tuple(rows.shape)}, not features")
        if names.shape != rows.shape[:1]:
            raise ValueError(f"{path} has {len(rows)} rows, its labels are {tuple(names.shape)}")
    if table.shape[1] != test_table.shape[1]:
        raise ValueError(f"{paths[2]} has width {test_table.shape[1]}, not {table.shape[1]}")
    return Features(table, labels.long(), test_table, test_labels.long())


def read(path: Path) -> Tensor:
    """Mapped into memory: a file may be larger than that. What is compressed has to be read."""
    if path.suffix == ".gz":
        return torch.from_numpy(np.load(io.BytesIO(content(path))))
    # Copy on write: the file is never changed, and torch takes no array that is read-only.
    return torch.from_numpy(np.load(path, mmap_mode="c"))

"""CIFAR-100, as its authors have it: two pickled dictionaries, `train` and `test`."""

from __future__ import annotations

import io
import pickle
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from experiments.data.idx import Images
from experiments.data.sources import SOURCES, locate

_MULTIARRAY, _NUMERIC = (
    [f"numpy.{core}.{module}" for core in ("core", "_core")] for module in ("multiarray", "numeric")
)  # NumPy moved them
_ALLOWED = {
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("_codecs", "encode"),
    *((module, "_reconstruct") for module in _MULTIARRAY),
    *((module, "scalar") for module in _MULTIARRAY),
    *((module, "_frombuffer") for module in _NUMERIC),
}


def load(folder: Path | None = None, fetch: bool = False) -> Images:
    train, test = SOURCES["cifar100"].paths(locate("cifar100", folder, fetch))
    return Images(*read(train), *read(test))


def read(path: Path) -> tuple[Tensor, Tensor]:
    """Images (N, 3, 32, 32) and fine labels."""
    raw = path.read_bytes()
    found = _Unpickler(io.BytesIO(raw), encoding="bytes").load()
    table = found[b"data"]
    if not isinstance(table, np.ndarray) or table.dtype != np.uint8 or table.nbytes > len(raw):
        raise ValueError(f"{path} has no table of bytes, data, that fits into the file")
    images = torch.from_numpy(np.array(table)).view(-1, 3, 32, 32)
    return images.float() / 255, torch.tensor(found[b"fine_labels"])


class _Unpickler(pickle.Unpickler):
    """Reads numbers, strings and arrays: a pickle from elsewhere may not run code."""

    def find_class(self, module: str, name: str) -> object:
        if (module, name) in _ALLOWED:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"CIFAR-100 has no {module}.{name}")

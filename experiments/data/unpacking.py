"""What is packed, read with a bound: a file of a few kilobytes may hold gigabytes of zeros."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import IO

RATIO = 100  #: how many times larger than packed: texts reach 10, the images of digits 5
_LEAST = 1 << 20  # bytes that anything may have


class Bounded:
    """A stream that is read up to a bound; what goes on behind it is refused.

    Args:
        stream: of what is unpacked.
        name: of the file, for the error.
        packed: bytes that it takes packed.
    """

    def __init__(self, stream: IO[bytes], name: object, packed: int) -> None:
        self._stream, self._name = stream, name
        self._most = self._left = RATIO * packed + _LEAST

    def read(self, size: int = -1) -> bytes:
        wanted = self._left + 1 if size < 0 else min(size, self._left + 1)
        part = self._stream.read(wanted)
        self._left -= len(part)
        if self._left < 0:
            raise OSError(f"{self._name} unpacks to more than {self._most} bytes")
        return part


def content(path: Path) -> bytes:
    """All of a file, which is unpacked if its name ends with .gz."""
    if path.suffix != ".gz":
        return path.read_bytes()
    with gzip.open(path) as stream:
        return Bounded(stream, path, path.stat().st_size).read()

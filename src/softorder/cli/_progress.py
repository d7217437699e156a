"""A progress bar on stderr; in a log file, one line per tenth of the way."""

from __future__ import annotations

import shutil
import sys
import time

_WIDTH = 28


class Progress:
    """Counts steps: `with Progress(total) as bar: bar.step("what was done")`."""

    def __init__(self, total: int) -> None:
        self._total = max(1, total)
        self._done = 0
        self._start = self._drawn = time.monotonic()
        self._live = sys.stderr.isatty()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def step(self, label: str) -> None:
        before, self._done = self._done, self._done + 1
        if self._live:
            self._draw(label)
        elif 10 * self._done // self._total > 10 * before // self._total:
            print(self._status(label), file=sys.stderr, flush=True)

    def _draw(self, label: str) -> None:
        now = time.monotonic()
        if now - self._drawn < 0.05:
            return
        self._drawn = now
        filled = _WIDTH * self._done // self._total
        bar = "█" * filled + "░" * (_WIDTH - filled)
        line = f"{bar} {self._status(label)}"[: shutil.get_terminal_size().columns - 1]
        print("\r\x1b[K" + line, end="", file=sys.stderr, flush=True)

    def _status(self, label: str) -> str:
        return f"{self._done / self._total:4.0%} {time.monotonic() - self._start:4.0f} s  {label}"

"""What every suite leaves behind: JSON with all numbers, a page of tables, perhaps a picture."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Written(ABC):
    """A report that is written into a folder, under the name of its suite."""

    machine: dict[str, str]
    stem: str

    @abstractmethod
    def text(self) -> str:
        """For the terminal."""

    @abstractmethod
    def markdown(self) -> str:
        """For the documentation."""

    @abstractmethod
    def json(self) -> dict[str, Any]:
        """All that was measured."""

    def draw(self, path: Path) -> bool:
        """Draws the picture, if there is one."""
        return False

    def heading(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.machine.items())

    def write(self, folder: Path) -> Iterator[Path]:
        """Write the files of a suite, and name them."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.stem}.json"
        path.write_text(json.dumps(self.json(), indent=1, ensure_ascii=False) + "\n")
        yield path
        path = path.with_suffix(".md")
        path.write_text(self.markdown())
        yield path
        if self.draw(path.with_suffix(".png")):
            yield path.with_suffix(".png")

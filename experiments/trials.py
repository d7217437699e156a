"""The trials of an experiment: several arms, several seeds, a few figures each.

They are kept in one JSON file, a line for each trial, that is complete after every trial.
"""

from __future__ import annotations

import json
import math
import platform
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

import softorder as so

RESULTS = Path(__file__).parent / "results"  #: those that are part of the repository
_MOST = 1 << 26  # bytes of a file; the longest has 10^5
Figures = Mapping[str, "float | Sequence[Any]"]  #: by key; a sequence is a curve or a map


@dataclass(frozen=True)
class Column:
    """A figure of a trial: its key, its heading, and how many digits are worth printing."""

    key: str
    heading: str
    digits: int = 2
    scale: float = 1.0

    def shown(self, values: Sequence[float]) -> str:
        """The mean, and the standard deviation if there are several."""
        if not values:
            return "-"
        scaled = [self.scale * value for value in values]
        mean = f"{statistics.mean(scaled):.{self.digits}f}"
        if len(scaled) < 2:
            return mean
        return f"{mean} ± {statistics.stdev(scaled):.{self.digits}f}"


@dataclass
class Trials:
    """What came out, one record per arm and seed."""

    title: str
    config: Mapping[str, Any]
    records: list[dict[str, Any]] = field(default_factory=list)
    about: Mapping[str, Any] = field(default_factory=lambda: machine())

    def add(self, arm: str, seed: int, figures: Figures) -> None:
        rounded = {key: _significant(value) for key, value in figures.items()}
        self.records.append({"arm": arm, "seed": seed, **rounded})

    def sort(self, arms: Sequence[str]) -> None:
        """By seed, then as the arms are listed; they may have come in any order."""
        place = {arm: i for i, arm in enumerate(arms)}
        self.records.sort(key=lambda r: (r["seed"], place.get(r["arm"], len(place))))

    def find(self, arm: str, seed: int) -> dict[str, Any] | None:
        matches = (r for r in self.records if r["arm"] == arm and r["seed"] == seed)
        return next(matches, None)

    def values(self, arm: str, key: str) -> list[Any]:
        return [r[key] for r in self.records if r["arm"] == arm and key in r]

    def seeds(self, arm: str) -> int:
        return sum(r["arm"] == arm for r in self.records)

    def minutes(self) -> float:
        """Of all trials together; side by side they take less."""
        return sum(r.get("seconds", 0.0) for r in self.records) / 60

    @property
    def arms(self) -> list[str]:
        return list(dict.fromkeys(r["arm"] for r in self.records))

    @classmethod
    def read(cls, path: Path) -> Trials:
        """What `write` wrote; a file that is too long, or of something else, is refused."""
        if path.stat().st_size > _MOST:
            raise ValueError(f"{path} has more than {_MOST} bytes")
        kept = json.loads(path.read_text(encoding="utf-8"))
        if not _is_trials(kept):
            raise ValueError(f"{path} has no title, config and trials with an arm and a seed each")
        title, config, records = (kept.pop(key) for key in ("title", "config", "trials"))
        return cls(title, config, records, kept)

    def write(self, path: Path) -> None:
        """The new file takes the place of the old one at once: a stop in between loses nothing."""
        path.parent.mkdir(parents=True, exist_ok=True)
        head = {"title": self.title, **self.about, "config": self.config}
        records = ",\n  ".join(json.dumps(r, ensure_ascii=False) for r in self.records)
        text = json.dumps(head, indent=1, ensure_ascii=False)[:-2]
        part = path.with_suffix(".part")
        part.write_text(f'{text},\n "trials": [\n  {records}\n ]\n}}\n', encoding="utf-8")
        part.replace(path)


def _is_trials(kept: Any) -> bool:
    if not isinstance(kept, dict):
        return False
    records, title, config = kept.get("trials"), kept.get("title"), kept.get("config")
    known = isinstance(title, str) and isinstance(config, dict) and isinstance(records, list)
    return known and all(
        isinstance(r, dict) and isinstance(r.get("arm"), str) and isinstance(r.get("seed"), int)
        for r in records
    )


def machine() -> dict[str, Any]:
    """What the figures may depend on besides the configuration."""
    return {
        "softorder": so.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
    }


def _significant(value: Any) -> Any:
    """Five digits behind the first; also of every number of a curve. Words stay as they are."""
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence):
        return [_significant(x) for x in value]
    if value == 0 or not math.isfinite(value):
        return value
    return round(value, 5 - math.floor(math.log10(abs(value))))

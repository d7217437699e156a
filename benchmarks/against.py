"""What got slower since results that were kept: a run beside the JSON of another.

A time is divided by that of torch's own operator which was measured in alternation with it, since
seconds of two runs do not compare. Where a case has no such yardstick, seconds are divided by the
drift of the machine, the median of how much slower all yardsticks are now. A change is marked where
it exceeds what the rounds of the two runs differ by among themselves, of both the time and its
yardstick, and 5 % in any case. Bytes and counts have no rounds: a fixed part of them is noise.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.rounds import spread
from softorder.cli._table import Table

LEAST = 0.05  #: a change of a time that is never marked
COUNTED = {"memory": 0.10, "measured": 0.10, "instructions": 0.01, "misses": 0.05}  #: of a count
UNKNOWN_SPREAD = 0.10  #: of a timing that was kept without its rounds

#: What is measured in each list of a file of results; all other fields say what it was measured on.
_TIMES = {"timings": ("minimum",), "measured": ("forward", "both")}
_COUNTS = {
    "memory": ("forward", "saved"),
    "measured": ("peak", "sent", "exchanges"),
    "instructions": ("per_score",),
    "misses": ("per_score",),
}
_NO_IDENTITY = {"median", "repetitions", "rounds"}
_YARDSTICKS = ("torch", "relu", "write and softmax")  # how names of what torch does alone begin


@dataclass(frozen=True)
class Value:
    """One number of one run."""

    number: float
    spread: float | None  # None: nobody kept one
    group: str  # the case and the section, without who was measured
    provider: str
    kind: str  # the list that it stands in

    @property
    def yardstick(self) -> bool:
        return self.provider.startswith(_YARDSTICKS)


@dataclass(frozen=True)
class Change:
    """One number then and now, as far as runs can be compared."""

    name: str
    factor: float  # above 1: slower, or more
    allowed: float  # the largest factor that noise explains

    @property
    def slower(self) -> bool:
        return self.factor > self.allowed

    @property
    def faster(self) -> bool:
        return self.factor < 1 / self.allowed


@dataclass
class Comparison:
    changes: list[Change] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def slower(self) -> list[Change]:
        return sorted((c for c in self.changes if c.slower), key=lambda c: -c.factor)

    @property
    def faster(self) -> list[Change]:
        return sorted((c for c in self.changes if c.faster), key=lambda c: c.factor)

    def text(self) -> str:
        table = Table(["", "now / then", "noise up to", ""])
        for mark, changes in (("✗ slower", self.slower), ("faster", self.faster)):
            for change in changes:
                table.add(change.name, f"{change.factor:.2f}", f"{change.allowed:.2f}", mark)
        counts = (
            f"{len(self.changes)} compared: {len(self.slower)} slower, {len(self.faster)} faster."
        )
        tables = [table.text()] if table.rows else []
        return "\n\n".join(["\n".join(self.notes), *tables, counts]).strip()


def compare(kept: Mapping[str, Any], now: Mapping[str, Any]) -> Comparison:
    """Every number that both runs have."""
    found = Comparison(notes=_machines(kept, now))
    _compare_times(_values(kept, _TIMES), _values(now, _TIMES), found)
    _compare_counts(_values(kept, _COUNTS), _values(now, _COUNTS), found)
    if not found.changes:
        found.notes.append("The two runs have no case in common.")
    return found


def _machines(kept: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    then, here = kept.get("machine", {}), now.get("machine", {})
    differing = [
        name for name in ("processor", "threads", "vectors") if then.get(name) != here.get(name)
    ]
    return [
        f"Another machine: {name} was {then.get(name)}, is {here.get(name)}. Ratios to torch "
        "compare only roughly."
        for name in differing
    ]


# ---- numbers of a file -------------------------------------------------------------------------


def _values(results: Mapping[str, Any], kinds: Mapping[str, tuple[str, ...]]) -> dict[str, Value]:
    """Each number by a name that says what it is of."""
    measured = _NO_IDENTITY.union(*_TIMES.values(), *_COUNTS.values())
    return {
        f"{group} {provider}".strip() + (f", {key}" if len(keys) > 1 else ""): Value(
            row[key], _spread_of(row), group, provider, kind
        )
        for kind, keys in kinds.items()
        for row in results.get(kind, [])
        for group, provider in [_identity(row, measured)]
        for key in keys
        if row.get(key) is not None and row[key] > 0 and not math.isnan(row[key])
    }


def _identity(row: Mapping[str, Any], measured: Iterable[str]) -> tuple[str, str]:
    about = {key: value for key, value in row.items() if key not in measured}
    provider = about.pop("provider", about.pop("way", ""))
    section = about.pop("section", "")
    shape = f"{about.pop('rows')}×{about.pop('n')}" if {"rows", "n"} <= about.keys() else ""
    rest = (f"{key}={value}" for key, value in about.items() if value not in (None, ""))
    return " ".join(filter(None, [str(section), shape, *rest])), str(provider)


def _spread_of(row: Mapping[str, Any]) -> float | None:
    return spread(row["rounds"]) if row.get("rounds") else None


# ---- then and now ------------------------------------------------------------------------------


def _compare_times(kept: Mapping[str, Value], now: Mapping[str, Value], found: Comparison) -> None:
    common = [name for name in now if name in kept]
    theirs = [name for name in common if now[name].yardstick]
    yardstick: dict[str, str] = {}
    for name in theirs:
        yardstick.setdefault(now[name].group, name)
    drift = statistics.median([now[n].number / kept[n].number for n in theirs]) if theirs else 1.0
    alone = 0
    for name in common:
        if now[name].yardstick:
            continue
        by = yardstick.get(now[name].group)
        factor, noise = _change(kept[name], now[name])
        if by is None:
            alone, factor = alone + 1, factor / drift
        else:
            slower, more = _change(kept[by], now[by])
            factor, noise = factor / slower, noise * more
        found.changes.append(Change(name, factor, max(1 + LEAST, noise)))
    found.notes += _notes(kept, common, alone, drift)


def _notes(kept: Mapping[str, Value], common: list[str], alone: int, drift: float) -> list[str]:
    notes = []
    if any(kept[name].spread is None for name in common):
        notes.append(
            "The kept results have no rounds, hence no spread: "
            f"{UNKNOWN_SPREAD:.0%} is taken for it."
        )
    if alone:
        notes.append(
            f"{alone} times have no yardstick beside them: seconds, divided by the drift of all "
            f"yardsticks, {drift:.2f}."
        )
    return notes


def _change(then: Value, now: Value) -> tuple[float, float]:
    """By what factor it grew, and what factor the noise of both explains."""
    spreads = (UNKNOWN_SPREAD if v.spread is None else v.spread for v in (then, now))
    return now.number / then.number, math.prod(1 + spread for spread in spreads)


def _compare_counts(kept: Mapping[str, Value], now: Mapping[str, Value], found: Comparison) -> None:
    for name in now:
        if name in kept:
            factor = now[name].number / kept[name].number
            found.changes.append(Change(name, factor, 1 + COUNTED[now[name].kind]))

"""Time several calls against each other in one run."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_SAMPLE = 1e-4  # a sample repeats a shorter call until it takes about this many seconds


@dataclass(frozen=True)
class Timing:
    """Seconds per call. Other processes only ever add time, so ratios are taken of the minima."""

    minimum: float
    median: float
    repetitions: int


def interleaved(
    calls: Mapping[str, Callable[[], object]], seconds: float, at_least: int = 3
) -> dict[str, Timing]:
    """Time the calls in alternation, `seconds` in all: a slow spell of the machine hits them alike.

    The turn goes to the call that has had the least time so far, so a slow one takes as large a
    share as a fast one, but every call is sampled `at_least` that many times.
    """
    loops = {name: _warm_up(call) for name, call in calls.items()}
    samples: dict[str, list[float]] = {name: [] for name in calls}
    spent = dict.fromkeys(calls, 0.0)
    with _NoCollection():
        while pending := _pending(samples, spent, seconds, at_least):
            name = min(pending, key=spent.__getitem__)
            elapsed = _sample(calls[name], loops[name])
            spent[name] += elapsed
            samples[name].append(elapsed / loops[name])
    return {name: _summary(values, loops[name]) for name, values in samples.items()}


def _pending(
    samples: Mapping[str, list[float]], spent: Mapping[str, float], seconds: float, at_least: int
) -> list[str]:
    """Everybody while there is time, then those that were sampled too rarely."""
    if sum(spent.values()) < seconds:
        return list(samples)
    return [name for name, values in samples.items() if len(values) < at_least]


def _warm_up(call: Callable[[], object]) -> int:
    """Run it once or twice, and say how many calls make a sample."""
    elapsed = _sample(call, 1)
    if elapsed < 0.1:
        elapsed = _sample(call, 1)
    return max(1, round(_SAMPLE / elapsed))


def _sample(call: Callable[[], object], loops: int) -> float:
    start = time.perf_counter()
    for _ in range(loops):
        call()
    return time.perf_counter() - start


def _summary(samples: list[float], loops: int) -> Timing:
    return Timing(min(samples), statistics.median(samples), len(samples) * loops)


class _NoCollection:
    """Keep Python's garbage collector out of the measurement."""

    def __enter__(self) -> None:
        self._was_on = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._was_on:
            gc.enable()

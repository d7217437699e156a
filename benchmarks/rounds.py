"""How far a timing can be trusted: the fastest call of each of several rounds."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from softorder.cli._timing import Timing, interleaved

ROUNDS = 4


@dataclass(frozen=True)
class Rounds(Timing):
    """A timing, and the fastest call of each round. What differs between rounds is noise."""

    rounds: tuple[float, ...] = ()


def in_rounds(
    calls: Mapping[str, Callable[[], object]], seconds: float, rounds: int = ROUNDS
) -> dict[str, Rounds]:
    """Time the calls in alternation, `seconds` in all, in several rounds one after the other."""
    found = [interleaved(calls, seconds / rounds, at_least=1) for _ in range(rounds)]
    return {name: summary([turn[name] for turn in found]) for name in calls}


def seconds_of(call: Callable[[], object]) -> float:
    """Of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def few_calls(call: Callable[[], object], times: int) -> Rounds:
    """Of one that takes long, and was warmed up: each call is a round."""
    seconds = [seconds_of(call) for _ in range(times)]
    return summary([Timing(one, one, 1) for one in seconds])


def summary(timings: list[Timing]) -> Rounds:
    """One timing of several, one of each round."""
    fastest = tuple(timing.minimum for timing in timings)
    return Rounds(
        minimum=min(fastest),
        median=statistics.median(timing.median for timing in timings),
        repetitions=sum(timing.repetitions for timing in timings),
        rounds=fastest,
    )


def spread(rounds: tuple[float, ...] | list[float]) -> float:
    """By what part the slowest round was slower than the fastest."""
    return max(rounds) / min(rounds) - 1

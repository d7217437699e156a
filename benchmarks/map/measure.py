"""How the times of one operator at one size are taken: all its methods, the yardstick and peers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from benchmarks.cases import Case, Shape
from benchmarks.map.alternatives import YARDSTICKS, Peer, Yardstick
from benchmarks.map.entries import SQUARE, Entry, case_of, inputs_of, rows_of_permutation
from benchmarks.map.patience import Patience, Taken
from benchmarks.rounds import Rounds, few_calls, in_rounds, seconds_of
from benchmarks.timing import prepared

PASSES = {"forward": "forward", "backward": "forward + backward"}
SLOW = 0.05  # a first call from here on is repeated a few times, outside of the alternation
ROUNDS, FEW = 3, 2


@dataclass(frozen=True)
class Time:
    """One who was measured: ours, a yardstick or a peer."""

    operator: str
    section: str  # of PASSES
    shape: Shape
    provider: str
    timing: Rounds


@dataclass(frozen=True)
class Skipped:
    """A cell that was left out, and why."""

    operator: str
    section: str
    shape: Shape
    provider: str
    why: str


@dataclass(frozen=True)
class _Candidate:
    """Somebody who may be measured."""

    name: str
    cost: str
    outputs: int
    prepare: Callable[[], Callable[[], object]]
    builds: bool = False


def measure(
    operator: str,
    shape: Shape,
    section: str,
    entries: Sequence[Entry],
    peers: dict[tuple[str, str], Peer],
    patience: Patience,
    seconds: float,
) -> Iterator[Time | Skipped]:
    """Times of all that are quick enough, in alternation; and what was left out.

    `seconds` is the share of each.
    """
    quick: dict[str, Callable[[], object]] = {}
    firsts: dict[_Candidate, float] = {}
    timings: dict[str, Rounds] = {}
    for one in _candidates(operator, shape, section, entries, peers):
        call, first, why = _admitted(one, operator, section, shape, patience)
        if why is not None:
            yield Skipped(operator, section, shape, one.name, why)
            continue
        firsts[one] = first
        if first > SLOW:
            timings[one.name] = few_calls(call, FEW)
        else:
            quick[one.name] = call
    timings |= in_rounds(quick, seconds * len(quick), ROUNDS)
    for one, first in firsts.items():
        timing = timings[one.name]
        taken = Taken(section, shape, one.outputs, first, timing.minimum, one.builds)
        patience.note(f"{operator} {one.name}", taken)
        yield Time(operator, section, shape, one.name, timing)


def _admitted(
    one: _Candidate, operator: str, section: str, shape: Shape, patience: Patience
) -> tuple[Callable[[], object], float, str | None]:
    """The call, what its first time took, and why it is left out, if it is."""
    who = f"{operator} {one.name}"
    objection = patience.objection(who, section, one.cost, shape, one.outputs)
    if objection is not None:
        return _nothing, 0.0, objection
    try:
        call = one.prepare()
        first = seconds_of(call)
    except (ValueError, RuntimeError, TypeError) as error:
        return _nothing, 0.0, f"{type(error).__name__}: {str(error).splitlines()[0]}"
    if first <= patience.limit:
        return call, first, None
    patience.note(who, Taken(section, shape, one.outputs, first, first))
    return _nothing, first, f"the first call took {first:.2g} s"


def _nothing() -> None:
    raise AssertionError("what is left out is never called")


def _candidates(
    operator: str,
    shape: Shape,
    section: str,
    entries: Sequence[Entry],
    peers: dict[tuple[str, str], Peer],
) -> Iterator[_Candidate]:
    """The yardstick, and who has what is asked for: a gradient, room for the input."""
    case, backward = case_of(shape), section == "backward"
    entries = [e for e in entries if _makes_sense(e, shape, backward)]
    if entries:
        yield _of_yardstick(YARDSTICKS[operator], case, backward)
    for entry in entries:
        yield _of_entry(entry, case, backward)
        peer = peers.get((operator, entry.method))
        if peer and peer.fits(shape) and (peer.gradient or not backward):
            yield _of_peer(peer, case, backward, operator == "soft_permutation")


def _makes_sense(entry: Entry, shape: Shape, backward: bool) -> bool:
    fits = not entry.square or shape.rows * shape.n**2 <= SQUARE
    return fits and (entry.gradient or not backward)


def _of_yardstick(yardstick: Yardstick, case: Case, backward: bool) -> _Candidate:
    def prepare() -> Callable[[], object]:
        operator, inputs = yardstick.bind(case), yardstick.inputs(case)
        return prepared(operator, inputs, backward and yardstick.gradient)

    return _Candidate(yardstick.name, "O(n)", 1, prepare)


def _of_entry(entry: Entry, case: Case, backward: bool) -> _Candidate:
    def prepare() -> Callable[[], object]:
        return prepared(entry.bind(case), inputs_of(entry, case), backward)

    outputs, builds = entry.rows_of_output(case.shape), entry.method == "network"
    return _Candidate(entry.provider.name, entry.cost, outputs, prepare, builds)


def _of_peer(peer: Peer, case: Case, backward: bool, permutation: bool) -> _Candidate:
    def prepare() -> Callable[[], object]:
        return prepared(peer.provider.bind(same), case.scores(), backward)

    same = replace(case, k=rows_of_permutation(case.shape)) if permutation else case
    return _Candidate(peer.provider.name, "O(n)", 1, prepare)

"""Many problems: seeds in blocks, among processes, with what is done kept in a file.

A run that is interrupted goes on where it was when it is started again with the same file. A
process that dies, by a crash in a kernel or a sanitizer's verdict, names the problem that it had.
"""

import itertools
import json
import os
import sys
import time
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.fuzz import problems
from tests.fuzz.run import Tally, run

BLOCK = 200


@dataclass(frozen=True)
class Plan:
    """Which problems, and how they are asked."""

    first: int  # seed
    calls: int
    most: int = problems.MOST
    operators: tuple | None = None  # all
    levels: tuple | None = None  # the one in use

    def seeds(self):
        """The first ones, of the problems of these operators."""
        fitting = (seed for seed in itertools.count(self.first) if self._fits(seed))
        return itertools.islice(fitting, self.calls)

    def _fits(self, seed):
        operator, *_ = problems.CASES[seed % len(problems.CASES)]
        return self.operators is None or operator in self.operators


@dataclass
class State:
    """How far a run is: what was found, in how many blocks without a gap and in which others."""

    plan: Plan
    tally: Tally = field(default_factory=Tally)
    blocks: int = 0
    beyond: list = field(default_factory=list)
    seconds: float = 0.0

    def add(self, block, tally, seconds):
        self.tally.add(tally)
        self.seconds += seconds
        self.beyond.append(block)
        while self.blocks in self.beyond:
            self.beyond.remove(self.blocks)
            self.blocks += 1

    def write(self, path):
        """Whole or not at all."""
        beside = path.with_suffix(".new")
        beside.write_text(
            json.dumps(
                vars(self) | {"plan": asdict(self.plan), "tally": vars(self.tally)}, indent=1
            )
        )
        beside.replace(path)

    @classmethod
    def read(cls, path, plan):
        """Of the same plan; another one is an error."""
        kept = json.loads(path.read_text())
        if kept["plan"] != json.loads(json.dumps(asdict(plan))):
            raise SystemExit(f"{path} is of another run: {kept['plan']}")
        tally = Tally(Counter(kept["tally"]["counts"]), kept["tally"]["failures"])
        return cls(plan, tally, kept["blocks"], kept["beyond"], kept["seconds"])

    def summary(self):
        plan, done = self.plan, self.tally.counts["problems"]
        last = f"to {self.next_seed() - 1}" if done == plan.calls else f"of {plan.calls}"
        rate = done / self.seconds if self.seconds else 0.0
        levels = " and ".join(plan.levels) if plan.levels else "one level"
        return (
            f"seeds from {plan.first} {last}, at most {plan.most} scores, {levels}: {self.tally}; "
            f"{rate:.0f} problems a second and core"
        )

    def next_seed(self):
        """After the blocks that are done without a gap."""
        done = min(self.blocks * BLOCK, self.plan.calls)
        *_, last = itertools.chain([self.plan.first - 1], itertools.islice(self.plan.seeds(), done))
        return last + 1


def run_all(plan, jobs=1, path=None, stop_after=float("inf"), show=None):
    """The state after as many blocks as there was CPU time for; `show` gets it after each."""
    state = State.read(path, plan) if path and path.exists() else State(plan)
    left = _blocks_left(plan, state)
    began = state.seconds
    with TemporaryDirectory() as notes, _Workers(jobs, notes) as workers:
        for block, seeds in itertools.islice(left, 2 * jobs):
            workers.start(block, seeds, plan)
        for block, tally, seconds in workers.finished():
            state.add(block, tally, seconds)
            if path:
                state.write(path)
            if show:
                show(state)
            following = next(left, None) if state.seconds - began < stop_after else None
            if following:
                workers.start(*following, plan)
    return state


def _blocks_left(plan, state):
    seeds = plan.seeds()
    for block in itertools.count():
        some = list(itertools.islice(seeds, BLOCK))
        if not some:
            return
        if block >= state.blocks and block not in state.beyond:
            yield block, some


class _Workers:
    """Processes that are forks of this one: with its libraries, and nothing to import."""

    def __init__(self, jobs, notes):
        self._pool = ProcessPoolExecutor(jobs, get_context("fork"))
        self._notes, self._open = notes, {}

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._pool.shutdown(cancel_futures=True)

    def start(self, block, seeds, plan):
        started = self._pool.submit(_block, seeds, plan.most, plan.levels, self._notes)
        self._open[started] = block

    def finished(self):
        """(block, its tally, CPU seconds) as they come."""
        while self._open:
            done, _ = wait(self._open, return_when=FIRST_COMPLETED)
            for future in done:
                block = self._open.pop(future)
                try:
                    yield block, *future.result()
                except BrokenProcessPool:
                    raise SystemExit(f"a process died; they were at\n{self._current()}") from None

    def _current(self):
        notes = sorted(Path(self._notes).iterdir())
        return "\n".join(note.read_text().rstrip() for note in notes)


def _block(seeds, most, levels, notes):
    """In a worker: the line of the problem at hand is in a file, always of the same length."""
    begin = time.process_time()
    note = os.open(f"{notes}/{os.getpid()}", os.O_WRONLY | os.O_CREAT)

    def show(line):
        os.pwrite(note, line.encode()[:500].ljust(500), 0)

    try:
        return run(seeds, most=most, levels=levels, show=show), time.process_time() - begin
    finally:
        os.close(note)


class Progress:
    """A bar on a terminal; elsewhere a line a minute."""

    def __init__(self, output=sys.stderr):
        self._output, self._bar = output, output.isatty()
        self._every, self._last = (0.2 if self._bar else 60.0), 0.0
        self._failures = 0

    def __call__(self, state):
        for line in state.tally.failures[self._failures :]:
            print(f"\r\033[K{line}" if self._bar else line, file=self._output, flush=True)
        self._failures = len(state.tally.failures)
        if time.monotonic() - self._last < self._every:
            return
        self._last = time.monotonic()
        done, calls = state.tally.counts["problems"], state.plan.calls
        filled = "█" * (30 * done // calls)
        rate = done / max(state.seconds, 1e-9)
        line = f"{filled:·<30} {done} of {calls}, {self._failures} failures, {rate:.0f}/s and core"
        print(f"\r{line}" if self._bar else line, end="" if self._bar else "\n", file=self._output)
        self._output.flush()

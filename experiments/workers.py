"""Trials side by side, each process with its share of the cores."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from queue import Empty
from typing import Any

import torch

from experiments.experiment import Setting, Trial
from experiments.trials import Figures, Trials

Task = tuple[str, int]  #: an arm and a seed
Done = tuple[str, int, Figures]
_SECONDS = 1.0  #: between looks at silent processes


@dataclass(frozen=True)
class Plan:
    """All that a process needs to make trials."""

    session: Callable[[Any, Setting, Trials], Trial]  #: of a module: it goes to other processes
    config: Any
    setting: Setting
    trials: Trials  #: what has been done already


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads(jobs: int) -> int:
    """Of every process, if there are so many."""
    return max(1, cores() // jobs) if jobs > 1 else torch.get_num_threads()


def attempt(trial: Trial, arm: str, seed: int) -> Figures:
    """One trial, timed."""
    start = time.perf_counter()
    torch.manual_seed(seed)
    figures = trial(arm, seed)
    return {**figures, "seconds": time.perf_counter() - start}


def here(plan: Plan, tasks: Iterable[Task]) -> Iterator[Done]:
    """One after the other, in this process."""
    trial = plan.session(plan.config, plan.setting, plan.trials)
    for arm, seed in tasks:
        yield arm, seed, attempt(trial, arm, seed)


def side_by_side(plan: Plan, units: Sequence[Sequence[Task]], jobs: int) -> Iterator[Done]:
    """In `jobs` processes; the tasks of a unit stay in one process, in their order.

    Raises:
        SystemExit: a trial failed; the others that had begun are stopped.
    """
    context = get_context("spawn")  # a forked torch may hang in its own threads
    waiting, done = context.Queue(), context.Queue()
    waiting.cancel_join_thread()  # a run that fails leaves tasks that nobody takes
    for unit in units:
        waiting.put(unit)
    for _ in range(jobs):
        waiting.put(None)
    processes = [
        context.Process(target=_serve, args=(plan, waiting, done, threads(jobs)), daemon=True)
        for _ in range(jobs)
    ]
    try:
        for process in processes:
            process.start()
        for _ in range(sum(map(len, units))):
            yield _received(done, processes)
    finally:
        for process in processes:
            process.terminate()
            process.join()


def _received(done: Any, processes: Sequence[Any]) -> Done:
    """What comes next; a process that was killed says nothing any more, so it is looked after."""
    while True:
        try:
            message: Done | str = done.get(timeout=_SECONDS)
        except Empty:
            codes = [process.exitcode for process in processes if process.exitcode]
            if codes:
                raise SystemExit(
                    f"a process ended with exit code {codes[0]}; if memory was short, take fewer "
                    "by --jobs. What was done is kept"
                ) from None
            continue
        if isinstance(message, str):
            raise SystemExit(message)
        return message


def _serve(plan: Plan, waiting: Any, done: Any, share: int) -> None:
    """A process's life: a unit at a time, until there is none."""
    torch.set_num_threads(share)
    try:
        trial = plan.session(plan.config, plan.setting, plan.trials)
        while (unit := waiting.get()) is not None:
            for arm, seed in unit:
                figures = attempt(trial, arm, seed)
                plan.trials.add(arm, seed, figures)  # for the tasks after it
                done.put((arm, seed, figures))
    except SystemExit as error:
        done.put(str(error))
    except Exception:
        done.put(traceback.format_exc())

"""The suite of rows that are cut among ranks: processes on one machine, and a model of many.

Three ways to a soft or hard top-k of one row whose scores the ranks share: ours, where only sums
travel; and two that gather the row first.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, distributed
from torch.utils._python_dispatch import TorchDispatchMode

import softorder as so
from benchmarks import machine
from benchmarks.jobs import folder_of
from benchmarks.memory import growth
from benchmarks.sharded_model import draw
from softorder.cli._progress import Progress
from softorder.cli._table import Table

SECTIONS = ("strong", "weak")
LENGTHS = (10**5, 10**6, 10**7, 10**8)
QUICK = (10**5, 10**6)
RANKS = (1, 2)
TEMPERATURE = 0.1
_REPEATS = 5
_PATIENCE = 600.0


def names() -> list[str]:
    """What `only` understands: strong scaling, weak scaling, and lengths."""
    return [*SECTIONS, *(f"{n:.0e}" for n in LENGTHS)]


@dataclass(frozen=True)
class Measured:
    """One way on one number of ranks; the slowest rank counts."""

    section: str
    n: int
    ranks: int
    way: str
    forward: float  # seconds
    both: float  # forward and backward; NaN without a gradient
    peak: int  # bytes of one rank, during the forward pass
    sent: int  # bytes that a rank hands over to torch.distributed, forward
    exchanges: int


def run(quick: bool, only: Sequence[str], seconds: float | None, output: Path | None) -> None:
    """Measure, showing progress; print a table; write it, the raw numbers and the model's plot."""
    print(", ".join(f"{k} {v}" for k, v in machine.facts().items()), machine.busy(), sep="\n")
    lengths = [n for n in (QUICK if quick else LENGTHS) if _wanted(only, f"{n:.0e}", LENGTHS)]
    jobs = [
        (section, ranks, n if section == "strong" else n * ranks)
        for section in SECTIONS
        if _wanted(only, section, SECTIONS)
        for n in lengths
        for ranks in RANKS
        if not (section == "weak" and n * max(RANKS) > LENGTHS[-1])
    ]
    found: list[Measured] = []
    with Progress(len(jobs)) as progress:
        for section, ranks, n in jobs:
            found += _measured(section, ranks, n)
            progress.step(f"{section}, {ranks} × {n // ranks:,}")
    table = _table(found)
    print(table.text())
    folder = folder_of(not (quick or only or seconds), output)
    folder.mkdir(parents=True, exist_ok=True)
    facts = machine.facts()
    heading = "Measured on: " + ", ".join(f"{name} {value}" for name, value in facts.items())
    (folder / "sharded.md").write_text(f"{heading}.\n\n{table.markdown()}\n")
    record = {"machine": facts, "measured": [asdict(one) for one in found]}
    (folder / "sharded.json").write_text(json.dumps(record, indent=1) + "\n")
    draw(found, folder / "sharded.png")
    print(f"wrote {folder / 'sharded.md'}, sharded.json, sharded.png")


def _wanted(only: Sequence[str], name: str, kind: Sequence[Any]) -> bool:
    named = [v if isinstance(v, str) else f"{v:.0e}" for v in kind]
    return name in only or not set(only) & set(named)


def _table(found: Sequence[Measured]) -> Table:
    head = "scaling", "n", "ranks", "way", "forward ms", "+ backward ms", "peak MB", "sent", "times"
    table = Table(list(head))
    for one in found:
        both = "" if math.isnan(one.both) else f"{1e3 * one.both:,.1f}"
        numbers = f"{1e3 * one.forward:,.1f}", both, f"{one.peak / 1e6:,.0f}"
        traffic = f"{one.sent:,} B", str(one.exchanges)
        table.add(one.section, f"{one.n:,}", str(one.ranks), one.way, *numbers, *traffic)
    return table


# ---- the ways -----------------------------------------------------------------------------------


def _ours(x: Tensor, k: float) -> Tensor:
    return so.distributed.soft_topk(x, k, temperature=TEMPERATURE)


def _gathered(x: Tensor) -> Tensor:
    parts = [torch.empty_like(x) for _ in range(distributed.get_world_size())]
    distributed.all_gather(parts, x.detach())
    parts[distributed.get_rank()] = x  # with its gradient
    return torch.cat(parts)


def _gather_soft(x: Tensor, k: float) -> Tensor:
    return so.soft_topk(_gathered(x), k, temperature=TEMPERATURE)


def _gather_hard(x: Tensor, k: float) -> Tensor:
    return _gathered(x).topk(int(k), sorted=False).values


WAYS: dict[str, Callable[[Tensor, float], Tensor]] = {
    "softorder": _ours,
    "gather, soft top-k": _gather_soft,
    "gather, torch.topk": _gather_hard,
}


class _Traffic(TorchDispatchMode):
    """Bytes and number of what is handed over to torch.distributed."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes, self.times = 0, 0

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if "allreduce" in str(function):
            self.times, self.bytes = self.times + 1, self.bytes + _size(args[0])
        elif "allgather" in str(function):
            self.times, self.bytes = self.times + 1, self.bytes + _size(args[1])
        return function(*args, **(kwargs or {}))


def _size(tensors: Any) -> int:
    return sum(v.numel() * v.element_size() for v in tensors)


# ---- processes ----------------------------------------------------------------------------------


def _measured(section: str, ranks: int, n: int) -> list[Measured]:
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder, "store").as_uri()
        ends = [context.Pipe(duplex=False) for _ in range(ranks)]
        processes = [
            context.Process(target=_work, args=(far, rank, ranks, store, n), daemon=True)
            for rank, (_, far) in enumerate(ends)
        ]
        for process in processes:
            process.start()
        answers = [_answer(near) for near, _ in ends]
        for process in processes:
            process.join()
    return [
        Measured(
            section, n, ranks, way, *(max(answer[way][i] for answer in answers) for i in range(5))
        )
        for way in WAYS
    ]


def _answer(pipe: Any) -> Any:
    if not pipe.poll(_PATIENCE):
        raise TimeoutError("a rank did not answer")
    return pipe.recv()


def _work(pipe: Any, rank: int, ranks: int, store: str, n: int) -> None:
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=store, rank=rank, world_size=ranks)
    x = torch.randn(n // ranks, generator=torch.Generator().manual_seed(rank))
    x.requires_grad_()
    pipe.send({way: _one(call, x, n / 100) for way, call in WAYS.items()})
    distributed.destroy_process_group()


def _one(call: Callable[[Tensor, float], Tensor], x: Tensor, k: float) -> tuple[float, ...]:
    with torch.no_grad():
        call(x, k)  # what happens only once
        forward = _seconds(lambda: call(x, k))
        peak = growth(lambda: call(x, k))
        with _Traffic() as traffic:
            call(x, k)

    def both() -> None:
        p = call(x, k)
        torch.autograd.grad(p, x, torch.ones_like(p))

    both()
    return forward, _seconds(both), peak, traffic.bytes, traffic.times


def _seconds(call: Callable[[], object]) -> float:
    """The median; all ranks begin together."""
    times = []
    for _ in range(_REPEATS):
        distributed.barrier()
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return statistics.median(times)

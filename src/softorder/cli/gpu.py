"""softorder gpu: compiles the kernels for GPUs that need not be there, and shows their cost."""

from __future__ import annotations

import argparse
import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import NamedTuple

from softorder.cli import _extras
from softorder.cli._progress import Progress
from softorder.cli._table import Table
from softorder.densities import BUILT_IN

_TARGETS = ("sm_80", "sm_90", "sm_100", "gfx942")
_DTYPES = {"float32": "fp32", "float64": "fp64", "float16": "fp16", "bfloat16": "bf16"}
_COLUMNS = (
    "kernel",
    "GPU",
    "warps",
    "registers",
    "spilled",
    "shared",
    "occupancy",
    "reads",
    "writes",
    "code/score",
)
#: Bytes and exponentials per second: 16 of these per cycle and processor (CUDA C++ Programming
#: Guide, throughput of arithmetic instructions). NVIDIA's data sheets: A100 SXM 80 GB has 2,039
#: GB/s and 108 processors of 1.41 GHz, H100 SXM5 has 3.35 TB/s and 132 of at most 1.98 GHz.
_ROOFS = {"A100": (2.039e12, 108 * 16 * 1.41e9), "H100": (3.35e12, 132 * 16 * 1.98e9)}
_PASSES = 4  # the median for bell-shaped rows; each takes an exponential, and so does the result


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "gpu",
        help="compile the GPU kernels and show registers, spills and memory traffic",
        description="Compile the Triton kernels in every configuration that the launcher can "
        "choose, for GPUs that need not be there. Prints what the compiler says: registers per "
        "thread, bytes spilled, shared memory, occupancy; reads and writes of global memory per "
        "score; instructions in the code per score that a thread holds. Then what memory and "
        "exponentials allow at best. Takes some seconds for each; choose with the options. Exit "
        "status 1 if anything spills.",
    )
    parser.add_argument("--target", choices=_TARGETS, action="append", help="default: all of them")
    parser.add_argument(
        "--dtype", choices=_DTYPES, action="append", help="of the scores; default: all"
    )
    parser.add_argument("--folder", action="append", help="of src/softorder/kernels; default: all")
    parser.add_argument(
        "--density", choices=tuple(BUILT_IN), action="append", help="only kernels of this one"
    )
    parser.add_argument("--n", type=int, action="append", help="row length; default: all tiles")
    parser.add_argument("--kernel", action="append", help="part of a kernel's name; default: all")
    parser.add_argument("--jobs", type=int, default=1, help="processes; default: 1")
    parser.set_defaults(run=run)


class Job(NamedTuple):
    """A configuration to compile, as it is told to another process."""

    folder: str
    dtype: str
    name: str
    lengths: tuple[int, ...]
    target: str

    @property
    def label(self) -> str:
        return f"{self.folder} {self.dtype} {self.name}"


class Cost(NamedTuple):
    """What the compiler says of it."""

    cells: tuple[str, ...]
    spilled: int


def run(arguments: argparse.Namespace) -> int:
    _extras.require("gpu", triton="gpu")
    if os.environ.pop("TRITON_INTERPRET", None):
        print("(TRITON_INTERPRET is ignored here)")
    jobs = list(_jobs(arguments))
    costs = _compile_all(jobs, arguments.jobs)
    table = Table(_COLUMNS)
    for job in jobs:
        table.add(job.label, job.target, *costs[job].cells)
    spills = sum(cost.spilled > 0 for cost in costs.values())
    print(table.text())
    print(f"\n{len(jobs)} kernels, {spills} with spills\n")
    print(_roofline(4).text())
    return 1 if spills else 0


def _jobs(arguments: argparse.Namespace) -> Iterator[Job]:
    from softorder.kernels import _triton_compile

    known = _triton_compile.folders()
    for folder in arguments.folder or known:
        if folder not in known:
            raise SystemExit(f"--folder must be one of {', '.join(known)}, but got {folder!r}")
    lengths = tuple(arguments.n or _triton_compile.LENGTHS)
    densities, parts = arguments.density or [""], arguments.kernel or [""]
    for folder in arguments.folder or known:
        for dtype in arguments.dtype or _DTYPES:
            for kernel in _triton_compile.configurations(folder, _DTYPES[dtype], lengths):
                wanted = any(kernel.name.startswith(density) for density in densities)
                if wanted and any(part in kernel.name for part in parts):
                    for target in arguments.target or _TARGETS:
                        yield Job(folder, dtype, kernel.name, lengths, target)


def _compile_all(jobs: Sequence[Job], processes: int) -> dict[Job, Cost]:
    costs = {}
    with Progress(len(jobs)) as bar:
        for job, cost in _in_processes(jobs, processes) if processes > 1 else _one_by_one(jobs):
            costs[job] = cost
            bar.step(f"{job.label}, {job.target}")
    return costs


def _one_by_one(jobs: Sequence[Job]) -> Iterator[tuple[Job, Cost]]:
    for job in jobs:
        yield job, _compile(job)


def _in_processes(jobs: Sequence[Job], processes: int) -> Iterator[tuple[Job, Cost]]:
    spawn = multiprocessing.get_context("spawn")  # torch has threads, which a fork would lose
    with ProcessPoolExecutor(processes, mp_context=spawn) as pool:
        waiting = {pool.submit(_compile, job): job for job in jobs}
        for done in as_completed(waiting):
            yield waiting[done], done.result()


def _compile(job: Job) -> Cost:
    from softorder.kernels import _triton_compile

    kernels = _triton_compile.configurations(job.folder, _DTYPES[job.dtype], job.lengths)
    kernel = next(kernel for kernel in kernels if kernel.name == job.name)
    binary = kernel.compiled(_triton_compile.GPUS[job.target])
    held = kernel.scores / (binary.warps * binary.gpu.target.warp_size)
    cells = (
        str(binary.warps),
        str(binary.registers),
        str(binary.spilled),
        str(binary.shared),
        f"{binary.occupancy:.0%}",
        kernel.reads,
        kernel.writes,
        f"{binary.instructions / held:.0f}",
    )
    return Cost(cells, binary.spilled)


def _roofline(size: int) -> Table:
    """Seconds per score at best: memory and exponentials, for rows that stay on chip."""
    table = Table(["at best, ps per score of float32", *_ROOFS])
    work = {
        "torch.softmax, 2 reads and 1 write": (3, 2),
        "p, 1 read and 1 write": (2, _PASSES),
        "gradient, 2 reads and 1 write": (3, 1),
    }
    for name, (touches, exponentials) in work.items():
        times = [max(touches * size / b, exponentials / e) for b, e in _ROOFS.values()]
        table.add(name, *(f"{1e12 * time:.1f}" for time in times))
    return table

"""softorder gpu: compiles the kernels for GPUs that need not be there, and shows their cost."""

from __future__ import annotations

import argparse
import importlib
import os
from collections.abc import Iterator
from typing import Any

from softorder.cli import _extras
from softorder.cli._table import Table
from softorder.densities import BUILT_IN

_IDEAS = ("threshold", "fsum", "order", "permutation")  # the folders of kernels/ with Triton's
_TARGETS = ("sm_80", "sm_90", "sm_100", "gfx942")
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
#: Bytes and exponentials per second, by NVIDIA's data sheets: 16 per cycle and processor.
_ROOFS = {"A100": (2.04e12, 108 * 16 * 1.41e9), "H100": (3.35e12, 132 * 16 * 1.83e9)}
_PASSES = 4  # the median for bell-shaped rows; each takes an exponential, and so does the result


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "gpu",
        help="compile the GPU kernels and show registers, spills and memory traffic",
        description="Compile the Triton kernels in every configuration that the launcher can "
        "choose, for GPUs that need not be there. Prints what the compiler says: registers per "
        "thread, bytes spilled, shared memory, occupancy; reads and writes of global memory per "
        "score; instructions in the code per score that a thread holds. Then what memory and "
        "exponentials allow at best. Takes a few seconds for each; choose with the options. Exit "
        "status 1 if anything spills.",
    )
    parser.add_argument("--target", choices=_TARGETS, action="append", help="default: all of them")
    parser.add_argument("--density", choices=tuple(BUILT_IN), action="append", help="default: all")
    parser.add_argument("--float64", action="store_true", help="scores of float64, not float32")
    parser.add_argument("--n", type=int, action="append", help="row length; default: all tiles")
    parser.add_argument("--kernel", action="append", help="part of a kernel's name; default: all")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    _extras.require("gpu", triton="gpu")
    if os.environ.pop("TRITON_INTERPRET", None):
        print("(TRITON_INTERPRET is ignored here)")
    table, spills = Table(_COLUMNS), 0
    for label, binary, configuration, target in _binaries(arguments):
        held = configuration.scores / (binary.warps * binary.gpu.target.warp_size)
        spills += binary.spilled > 0
        table.add(
            label,
            target,
            str(binary.warps),
            str(binary.registers),
            str(binary.spilled),
            str(binary.shared),
            f"{binary.occupancy:.0%}",
            configuration.reads,
            configuration.writes,
            f"{binary.instructions / held:.0f}",
        )
    print(table.text())
    print(f"\n{len(table.rows)} kernels, {spills} with spills\n")
    print(_roofline(8 if arguments.float64 else 4).text())
    return 1 if spills else 0


def _binaries(arguments: argparse.Namespace) -> Iterator[tuple[str, Any, Any, str]]:
    from softorder.kernels import _triton_compile

    wanted = arguments.kernel or [""]
    for density in arguments.density or BUILT_IN:
        number = list(BUILT_IN).index(density)
        options = {} if arguments.n is None else {"widths": arguments.n}
        for idea in _IDEAS:
            launches = importlib.import_module(f"softorder.kernels.{idea}.triton")
            for configuration in launches.configurations(number, arguments.float64, **options):
                label = f"{density}: {configuration.name}"
                if any(part in label for part in wanted):
                    for target in arguments.target or _TARGETS:
                        binary = configuration.compiled(_triton_compile.GPUS[target])
                        yield label, binary, configuration, target


def _roofline(size: int) -> Table:
    """Seconds per score at best: memory and exponentials, for rows that stay on chip."""
    table = Table(["at best, ps per score", *_ROOFS])
    work = {
        "torch.softmax, 2 reads and 1 write": (3, 2),
        "p, 1 read and 1 write": (2, _PASSES),
        "gradient, 2 reads and 1 write": (3, 1),
    }
    for name, (touches, exponentials) in work.items():
        times = [max(touches * size / b, exponentials / e) for b, e in _ROOFS.values()]
        table.add(name, *(f"{1e12 * time:.1f}" for time in times))
    return table

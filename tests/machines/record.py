"""Records calls of all kernels with their right answers, for `replay.cpp`.

    python -m tests.machines.record FILE [--few]

The answers are those of plain torch in float64, with autograd for the gradients: never those of a
compiled kernel. What a backward kernel reads of its forward pass may come from one.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import torch

from softorder.kernels import native
from tests.machines.calls import Call, write
from tests.machines.cases import fsum, matrices, order, sort, topk

_THREADS = (1, 3, 1)
_FEW = 4  #: calls of each kernel for a quick replay


def record(path: Path, few: bool = False) -> int:
    """Writes the file, and says how many calls are in it."""
    calls = all_calls()
    if few:
        calls = some_of_each(calls, _FEW)
    write(path, calls)
    return len(calls)


def all_calls() -> list[Call]:
    """Every case, on one thread or on several."""
    torch.manual_seed(0)
    with native.use("torch"):
        calls = [*topk.calls(), *sort.calls(), *fsum.calls()]
    calls += [*order.calls(), *matrices.calls()]
    for turn, call in enumerate(calls):
        call.values["threads"] = _THREADS[turn % len(_THREADS)]
    if missing := native.KERNELS.keys() - {call.kernel for call in calls}:
        raise ValueError(f"no call of {', '.join(sorted(missing))}")
    return calls


def some_of_each(calls: list[Call], most: int) -> list[Call]:
    """So many calls of every kernel, from all over its list."""
    of_kernel = defaultdict(list)
    for call in calls:
        of_kernel[call.kernel].append(call)
    return [
        some[int((turn + 0.5) * len(some) / most)]
        for some in of_kernel.values()
        for turn in range(most)
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--few", action="store_true", help="only a few calls of every kernel")
    arguments = parser.parse_args()
    print(f"{record(arguments.file, arguments.few)} calls in {arguments.file}")

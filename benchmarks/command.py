"""softorder bench: time the operators on this machine, against torch and the peers."""

from __future__ import annotations

import argparse
import json
from importlib import import_module
from pathlib import Path
from typing import Any

from softorder.cli._extras import require

_SUITES = (
    "topk",
    "rank",
    "transport",
    "families",
    "sampling",
    "losses",
    "ragged",
    "levels",
    "compile",
    "sharded",
    "map",
    "goals",
    "growth",
    "instructions",
)

_EPILOG = """\
examples:
  softorder bench                           everything, a few minutes; writes benchmarks/results/
  softorder bench --quick                   a first impression, some seconds
  softorder bench rank                      rank, sort and permutation only
  softorder bench transport                 sorted SOFT top-k against Sinkhorn's iterations
  softorder bench families                  networks, row softmax, permutahedron
  softorder bench sampling                  k-hot draws and their log-probabilities
  softorder bench losses                    top-k losses against torch's cross_entropy
  softorder bench ragged                    rows of different lengths against padding
  softorder bench levels                    the same kernels at every SIMD level of this CPU
  softorder bench compile                   compiled graphs against eager mode
  softorder bench goals                     what must be reached, at two SIMD levels
  softorder bench growth                    rank and sort as n doubles, with cache misses
  softorder bench instructions              of the top-k kernels, by valgrind: free of noise
  softorder bench map                       every operator, method and size beside alternatives
  softorder bench sharded                   rows that are cut among processes
  softorder bench topk --device cuda        soft top-k on a GPU; writes to reports/
  softorder bench --only 128x1000 laplace   one shape and one density
  softorder bench --only call memory        the cost of a small call, and the memory
  softorder bench --against benchmarks/results/topk.json
                                            the same suite again: what got slower by more than
                                            noise; ends with code 1 if anything did

Ratios are taken within one run, of calls that alternate; run it on an idle machine. A run that
is not complete writes to reports/ instead, so that it cannot pass for a complete one.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "bench",
        help="time the operators against softmax, topk, sort and other libraries",
        description="Measure time and memory of the operators beside torch.softmax, torch.topk, "
        "torch.sort, entmax and published formulas; print each figure beside its limit.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "suites",
        nargs="*",
        metavar="SUITE",
        help=f"what to measure: {', '.join(_SUITES)}; all of them if none is named",
    )
    parser.add_argument("--quick", action="store_true", help="few shapes, short measurements")
    parser.add_argument(
        "--only",
        nargs="+",
        default=[],
        metavar="NAME",
        help="measure only these sections, shapes, densities or providers; a wrong name lists all",
    )
    parser.add_argument(
        "--seconds", type=float, metavar="S", help="time for each case, all providers together"
    )
    parser.add_argument("--output", type=Path, metavar="DIR", help="where to write the results")
    parser.add_argument(
        "--device",
        metavar="DEVICE",
        help="another device than the CPU, such as cuda: suite topk only, by the device's clock",
    )
    parser.add_argument(
        "--against",
        type=Path,
        metavar="FILE",
        help="results that were kept (the JSON of a suite): mark what got slower than there by "
        "more than the spread of both runs, and end with code 1 if anything did",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    require("bench", matplotlib="bench")
    if arguments.device is not None:
        return _run_on_device(arguments)
    kept = _kept(arguments)
    chosen = [arguments.against.stem] if kept else _chosen(arguments.suites)
    suites = {name: import_module(f"benchmarks.{name}") for name in chosen}
    known = list(dict.fromkeys(name for suite in suites.values() for name in suite.names()))
    unknown = sorted(set(arguments.only) - set(known))
    if unknown:
        raise SystemExit(
            f"softorder bench --only: unknown {', '.join(unknown)}; known are {', '.join(known)}"
        )
    for name, suite in suites.items():
        reason = suite.missing() if hasattr(suite, "missing") else None
        if reason and name in arguments.suites:
            raise SystemExit(f"softorder bench {name} needs {reason}")
        if reason:
            print(f"softorder bench: without {name}, which needs {reason}")
            continue
        only = [name for name in arguments.only if name in suite.names()]
        if len(only) == len(arguments.only):
            suite.run(arguments.quick, only, arguments.seconds, arguments.output)
    return _compare(kept, arguments) if kept else 0


def _kept(arguments: argparse.Namespace) -> dict[str, Any] | None:
    """Results to compare with, read before the run writes its own in their place."""
    path = arguments.against
    if path is None:
        return None
    if path.stem not in _SUITES or not path.exists():
        raise SystemExit(
            f"softorder bench --against: {path} is no file of results; it has the name of its "
            f"suite, such as benchmarks/results/{_SUITES[0]}.json"
        )
    if arguments.suites not in ([], [path.stem]):
        raise SystemExit(f"softorder bench --against: {path} is of the suite {path.stem}, no other")
    return json.loads(path.read_text())


def _compare(kept: dict[str, Any], arguments: argparse.Namespace) -> int:
    from benchmarks.against import compare
    from benchmarks.jobs import folder_of

    complete = not (arguments.quick or arguments.only or arguments.seconds)
    path = folder_of(complete, arguments.output) / f"{arguments.against.stem}.json"
    found = compare(kept, json.loads(path.read_text()))
    print(f"\nAgainst {arguments.against}:\n\n{found.text()}")
    return 1 if found.slower else 0


def _run_on_device(arguments: argparse.Namespace) -> int:
    if arguments.suites != ["topk"]:
        raise SystemExit("softorder bench --device: only the suite topk, softorder bench topk")
    if arguments.against is not None:
        raise SystemExit("softorder bench --device: --against is for runs on the CPU")
    from benchmarks import on_device

    shapes = arguments.only or (["128x1000"] if arguments.quick else [])
    on_device.run(arguments.device, shapes, arguments.seconds, arguments.output)
    return 0


def _chosen(names: list[str]) -> list[str]:
    unknown = sorted(set(names) - set(_SUITES))
    if unknown:
        raise SystemExit(
            f"softorder bench: unknown suite {', '.join(unknown)}; known are {', '.join(_SUITES)}"
        )
    return names or list(_SUITES)

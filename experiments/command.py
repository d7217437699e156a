"""softorder reproduce: run the papers' experiments, and put the results beside the papers'."""

from __future__ import annotations

import argparse
from pathlib import Path

from experiments import catalogue
from experiments.experiment import Setting
from experiments.running import Order
from softorder.cli._extras import require

_EPILOG = """\
examples:
  softorder reproduce                              list the experiments
  softorder reproduce polynomial                   the quick preset: minutes
  softorder reproduce feature_selection --preset paper --seeds 5 --device cuda
  softorder reproduce --all --preset quick         everything that is quick
  softorder reproduce knn --data /my/mnist         files that are here already

Results go to results/NAME: PRESET.json with every trial, PRESET.png, and index.html with the
tables beside the paper's figures; results/index.html leads to all of them. A run that was stopped
goes on where it was.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "reproduce",
        help="run the papers' experiments, and put the results beside the papers'",
        description="Without a name, list the experiments. With one, find or fetch its data, run "
        "what has not been run yet, and write tables, plots and a page.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="?", help="the experiment")
    parser.add_argument("--all", action="store_true", help="every experiment that has the preset")
    parser.add_argument("--preset", default="quick", help="quick (the default), paper, or another")
    parser.add_argument(
        "--seeds", type=_positive, metavar="N", help="instead of the preset's number"
    )
    parser.add_argument("--arms", nargs="+", default=[], metavar="ARM", help="only these")
    parser.add_argument("--device", default="cpu", help="where to compute, such as cuda")
    parser.add_argument(
        "--jobs",
        type=_positive,
        metavar="N",
        help="trials side by side; one per core unless said otherwise, on other devices one. "
        "Where time is measured it is always one",
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="where to look for data first")
    parser.add_argument("--offline", action="store_true", help="fetch nothing")
    parser.add_argument("--fresh", action="store_true", help="forget what was run before")
    parser.add_argument("--output", type=Path, default=Path("results"), metavar="DIR")
    parser.set_defaults(run=run)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer of at least 1")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    require("reproduce", matplotlib="plot")
    if arguments.all and arguments.name:
        raise SystemExit("softorder reproduce: give a name or --all, not both")
    if arguments.name:
        catalogue.run(catalogue.get(arguments.name), _order(arguments))
        return 0
    if not arguments.all:
        print(catalogue.listing(arguments.output, arguments.data).text())
        return 0
    failed = catalogue.run_all(_order(arguments))
    if failed:
        print(f"not run: {', '.join(failed)}")
    return 1 if failed else 0


def _order(arguments: argparse.Namespace) -> Order:
    setting = Setting(arguments.data, not arguments.offline, arguments.device)
    return Order(
        preset=arguments.preset,
        seeds=arguments.seeds,
        arms=tuple(arguments.arms),
        jobs=arguments.jobs,
        fresh=arguments.fresh,
        output=arguments.output,
        setting=setting,
    )

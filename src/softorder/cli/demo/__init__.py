"""softorder demo: train a small network through a soft top-k, and see how fast it is."""

from __future__ import annotations

import argparse
from pathlib import Path
from textwrap import fill

from softorder.cli._extras import require
from softorder.cli._progress import Progress

_EPILOG = """\
The task is a nearest-neighbour vote on handwritten digits: a network maps images to features,
the ten nearest templates of a query vote on its class. A hard choice of neighbours has no
gradient; a soft top-k has one, so the network learns to put the right neighbours near.
Everything comes with scikit-learn, nothing is downloaded. Seeds are fixed.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "demo",
        help="train on handwritten digits through a soft top-k; about a minute",
        description="Train a small network end to end through a soft top-k, once per density, "
        "against the same network without it; then time soft_topk beside softmax, topk and sort. "
        "Prints two tables and writes a report with plots, one HTML file.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("softorder-demo.html"),
        metavar="FILE",
        help="where to write the report (default: %(default)s)",
    )
    parser.add_argument("--quick", action="store_true", help="one seed, few steps, short timing")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    require("demo", sklearn="demo", matplotlib="demo")
    from softorder.cli.demo import report
    from softorder.cli.demo.session import FULL, QUICK, Session

    session = Session(QUICK if arguments.quick else FULL)
    print(fill(session.introduction(), 90), end="\n\n", flush=True)
    with Progress(session.ticks) as progress:
        session.run(progress.step)
    print(session.accuracy_table().text(), end="\n\n")
    print(fill(session.temperature_note(), 90), end="\n\n")
    print(session.speed_table().text(), end="\n\n")
    print(fill(session.speed_note(), 90), end="\n\n")
    report.write(session, arguments.output)
    print(f"wrote {arguments.output}")
    return 0

"""The `softorder` command."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

import softorder as so
from softorder.cli import _checkout, demo, gpu, methods

_EPILOG = """\
start here:
  softorder methods    what there is to choose from
  softorder demo       see it work: trains on handwritten digits, about a minute, no network

In Python:

  import softorder as so
  weights = so.soft_topk(scores, k=5, temperature=0.1)    # in [0, 1], sums to 5, differentiable
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    argv = sys.argv[1:] if argv is None else argv
    _checkout.require(argv)
    arguments = _parser().parse_args(argv)
    try:
        status: int = arguments.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="softorder",
        description="Differentiable top-k, sorting and ranking for PyTorch.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"softorder {so.__version__}")
    parser.set_defaults(run=lambda _: print(parser.format_help(), end="") or 0)
    commands = parser.add_subparsers(title="commands", metavar="command")
    for command in (demo, methods, gpu, *_checkout.commands()):
        command.add_parser(commands)
    return parser

"""softorder methods: which method serves which operator."""

from __future__ import annotations

import argparse

import softorder as so


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "methods",
        help="list the methods, what each is good for, and its paper",
        description="Print the table of so.methods(): the operators, the methods that serve "
        "them, their cost and smoothness, and the papers they come from.",
    )
    parser.set_defaults(run=run)


def run(_: argparse.Namespace) -> int:
    print(so.methods())
    return 0

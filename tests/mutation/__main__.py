"""Seeds one defect after the other and tells which test noticed it first.

    python -m tests.mutation                         every mutant, by the selection of `make test`
    python -m tests.mutation --only topk.cpp         those whose file or name contains this
    python -m tests.mutation -m ""                   by all tests, the slow ones too
    python -m tests.mutation tests/laws              by these files alone

A mutant names the tests that are near to it. They go first; if they are content with it, the whole
selection runs. The exit status tells whether every mutant was caught.
"""

import argparse
import re
import sys
import tempfile
import time

from tests.mutation.mutants import MUTANTS
from tests.mutation.workspace import Workspace, unbroken_passes

_FAILURE = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


def first_failure(workspace, selections, options):
    """The name of a test that fails, or None."""
    for tests in selections:
        output, passed = workspace.run_tests("-x", *options, *tests)
        if passed:
            continue
        failure = _FAILURE.search(output)
        if failure is None:  # not a verdict of the tests
            raise SystemExit(f"pytest could not run the tests:\n{output[-4000:]}")
        return failure[1]
    return None


def main(arguments=None):
    options = _options(arguments)
    chosen = [m for m in MUTANTS if options.only in m.file or options.only in m.breaks]
    with tempfile.TemporaryDirectory() as temporary:
        workspace = Workspace(options.workspace or temporary)
        workspace.prepare()
        missed = [mutant for mutant in chosen if not _tried(workspace, mutant, options)]
    print(f"{len(chosen) - len(missed)} of {len(chosen)} caught")
    return bool(missed)


def _tried(workspace, mutant, options):
    """Prints a row of the table; whether the mutant was caught."""
    pytest = ["-n", str(options.workers)]
    if options.markers is not None:
        pytest += ["-m", options.markers]
    selections = [options.tests] if options.tests else [mutant.near, ()][: 2 - options.near]
    start = time.monotonic()
    with workspace.broken(mutant):
        failure = first_failure(workspace, selections, pytest)
    if failure and not unbroken_passes(failure):
        raise SystemExit(f"{failure} fails without any defect")
    verdict = f"caught by {failure}" if failure else "NOT CAUGHT"
    print(f"{mutant.file}: {mutant.breaks}\n    {verdict} ({time.monotonic() - start:.0f} s)")
    sys.stdout.flush()
    return failure is not None


def _options(arguments):
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description="Seeds defects.")
    parser.add_argument("tests", nargs="*", help="run these tests only")
    parser.add_argument("--near", action="store_true", help="only the tests near to each mutant")
    parser.add_argument("--only", default="", help="mutants whose file or name contains this")
    parser.add_argument("--workspace", help="a folder for the copy, kept to be used again")
    parser.add_argument("-m", dest="markers", help="pytest's selection by markers")
    parser.add_argument("-n", dest="workers", default=2, type=int, help="test processes")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())

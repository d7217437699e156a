"""docs/design.md walks through a call of soft_topk: the calls are those, in that order."""

import re
import sys
from pathlib import Path

import torch

import softorder as so
from softorder.kernels import _native

_PAGE = Path(__file__).parent.parent / "docs" / "design.md"
_PACKAGE = Path(so.__file__).parent


def _walk():
    """The hops of the page: files and functions."""
    rows = re.findall(r"^\| \d+ \| `([^`]+)` \| `([^`]+)` \|", _PAGE.read_text(), re.MULTILINE)
    assert len(rows) > 5
    return rows


def _calls(function):
    """Files and functions of the package in the order in which they are entered, or left again."""
    seen = []

    def look(frame, event, argument):
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(_PACKAGE):
            seen.append((str(path.relative_to(_PACKAGE)), frame.f_code.co_name))

    sys.setprofile(look)
    try:
        function()
    finally:
        sys.setprofile(None)
    return seen


def test_the_walk_is_what_happens():
    scores = torch.randn(2, 8, requires_grad=True)
    with _native.use("native"):
        so.soft_topk(scores, 3)  # whatever happens only once
        calls = iter(_calls(lambda: so.soft_topk(scores, 3)))
    for hop in _walk():
        assert hop in calls, f"{hop} does not come after the hops before it"

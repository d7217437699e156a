"""Many calls leave nothing behind: the process stays as large as it was."""

import sys

import pytest

from tests.runtime.calls import NAMES
from tests.runtime.processes import run, run_fresh

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads the size from /proc")

_NOISE = 2 * 2**20  # bytes: what the allocator keeps for itself, now more and now less

_GROWTH = """
import ctypes
import torch
from tests.runtime import calls

def resident():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) * 1024

torch.set_num_threads(1)
scores = calls.scores(0)
for name in {names}:
    for _ in range({count} // 5):
        calls.call(name, scores)
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    trim and trim(0)  # what imports freed would hide what is kept from here on
    before = resident()
    for _ in range({count}):
        calls.call(name, scores)
    print(name, resident() - before)
"""


def _grown(process, names, count, **options):
    """By how many bytes, in a process of one kind."""
    printed = process(_GROWTH.format(names=names, count=count), **options)
    return [int(line.split()[-1]) for line in printed.splitlines()]


def test_some_hundred_calls_leave_nothing_behind():
    by_default = [name for name in NAMES if name.endswith(", laplace")]
    assert max(_grown(run, by_default, 300)) <= _NOISE


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", NAMES)
def test_twenty_thousand_calls_leave_nothing_behind(name):
    assert max(_grown(run_fresh, [name], 20_000, patience=1000)) <= _NOISE


def test_a_leak_is_seen():
    """The same measure, of calls that keep their results."""
    keeping = "kept = []\ncalls.call = lambda name, scores: kept.append(torch.ones(3, 500))\n"
    script = _GROWTH.format(names=["leak"], count=1000)
    script = script.replace("\ntorch.set", f"\n{keeping}torch.set")
    assert int(run(script).split()[-1]) > _NOISE

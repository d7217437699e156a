"""Ctrl-C during a long call: KeyboardInterrupt arrives, and the next call works."""

import sys

import pytest

from tests.runtime.processes import run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

_SCRIPT = """
import os, signal, threading
import torch
from tests.runtime import calls

signal.signal(signal.SIGINT, signal.default_int_handler)
short, long = calls.scores(0), calls.scores(1, (1, 500_000))
for name in ("soft_topk, laplace", "soft_rank, laplace", "soft_sort, permutahedron_kl"):
    expected = calls.call(name, short)
    ended = 0
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        while True:
            calls.call(name, long)
            ended += 1
            assert ended < 1000, "no KeyboardInterrupt"
    except KeyboardInterrupt:
        print("interrupted")
    assert all(map(torch.equal, calls.call(name, short), expected))
"""


def test_control_c():
    assert len(run(_SCRIPT).split()) == 3

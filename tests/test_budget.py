"""The option --minutes."""

import subprocess
import sys
from pathlib import Path

import pytest

_TESTS = Path(__file__).parent / "oracles"


@pytest.mark.slow
@pytest.mark.parametrize("processes", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_what_would_start_too_late_is_skipped_and_counted(processes):
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-k", "projection"]
    ends = {}
    for minutes in ("0", "60"):
        run = [*command, *processes, "--minutes", minutes, _TESTS]
        found = subprocess.run(run, capture_output=True, text=True)
        assert found.returncode == 0, found.stdout
        ends[minutes] = found.stdout
    assert "SKIPPED [12] tests/conftest.py" in ends["0"]
    assert "the 0 minutes are used up" in ends["0"]
    assert "12 passed" in ends["60"]

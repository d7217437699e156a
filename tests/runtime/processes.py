"""Scenarios for a fresh interpreter, so that no other test can have touched its threads."""

import os
import subprocess
import sys


def run(script, **environment):
    """Runs a script with warnings as errors and returns what it printed."""
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout

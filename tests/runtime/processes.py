"""Scenarios for a process of their own, so that no other test can have touched its threads.

`run` forks them off a process that has imported torch and done nothing with it: softorder is new to
each of them, and the seconds that torch takes to load are spent once.
"""

import atexit
import json
import os
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

_PATIENCE = 120  # seconds

_TEMPLATE = """
import json, os, signal, sys
import torch, torch._dynamo
for line in sys.stdin:
    script, environment, printed, errors, patience = json.loads(line)
    child = os.fork()
    if child == 0:
        signal.alarm(patience)
        for descriptor, path in ((1, printed), (2, errors)):
            os.dup2(os.open(path, os.O_WRONLY), descriptor)
        os.environ.update(environment)
        exec(compile(script, "<script>", "exec"), {"__name__": "__main__"})
        sys.exit()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def run(script, **environment):
    """Runs a script with warnings as errors and returns what it printed."""
    if not hasattr(os, "fork"):
        return run_fresh(script, **environment)
    with tempfile.TemporaryDirectory() as folder:
        printed, errors = Path(folder, "printed"), Path(folder, "errors")
        printed.touch(), errors.touch()
        template = _template()
        task = script, environment, str(printed), str(errors), _PATIENCE
        print(json.dumps(task), file=template.stdin, flush=True)
        assert template.stdout.readline().strip() == "0", errors.read_text()
        return printed.read_text()


def run_fresh(script, patience=_PATIENCE, **environment):
    """The same in an interpreter that has imported nothing."""
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=patience,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@lru_cache
def _template():
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-W", "error", "-c", _TEMPLATE], **pipes)
    atexit.register(process.communicate)  # which ends it
    return process

"""The example of the documentation, on two processes: as on one."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

_EXAMPLE = Path(__file__).parents[2] / "examples" / "sharded_classifier.py"


def _losses(*launcher):
    command = [*launcher, str(_EXAMPLE), "--classes", "64", "--steps", "10"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "top-5 accuracy" in done.stdout
    return [float(loss) for loss in re.findall(r"loss ([\d.]+)", done.stdout)]


@pytest.mark.slow
def test_two_processes_train():
    two = _losses(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2")
    assert two[-1] < 0.8 * two[0]

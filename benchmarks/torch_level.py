"""The SIMD level of torch's own kernels, which a process chooses once, when it starts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

_CAPABILITIES = {"baseline": "default", "avx2": "avx2", "avx512": "avx512"}  # in torch's words
# torch's own kernels, and the two libraries that multiply matrices for it
_VARIABLES = ("ATEN_CPU_CAPABILITY", "MKL_ENABLE_INSTRUCTIONS", "DNNL_MAX_CPU_ISA")


def here(level: str) -> bool:
    """Whether torch's kernels in this process are of our level of that name, or have none."""
    found = torch.backends.cpu.get_cpu_capability().lower()
    return found == _CAPABILITIES[level] or found not in _CAPABILITIES.values()


def measured_apart(suite: str, level: str, only: Sequence[str], seconds: float) -> dict[str, Any]:
    """The JSON of a suite, run in a process of its own where torch is at that level, too."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "softorder", "bench", suite, "--output", folder]
        command += ["--seconds", str(seconds), "--only", level, *only]
        subprocess.run(command, env=_environment(level), stdout=subprocess.DEVNULL, check=True)
        return json.loads(Path(folder, f"{suite}.json").read_text())


def _environment(level: str) -> dict[str, str]:
    name = _CAPABILITIES[level]
    narrow = dict.fromkeys(_VARIABLES[1:], "SSE41" if level == "baseline" else name.upper())
    return {**os.environ, **narrow, _VARIABLES[0]: name}

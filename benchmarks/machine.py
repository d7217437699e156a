"""Where it was measured."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from softorder.kernels import _native


def facts() -> dict[str, str]:
    return {
        "processor": _processor(),
        "threads": str(torch.get_num_threads()),
        "vectors": _native.level(),
        "softorder": _version("softorder"),
        "torch": torch.__version__,
        "entmax": _version("entmax"),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def busy() -> str:
    """A warning when other processes are at work; they hit parallel calls hardest."""
    if not hasattr(os, "getloadavg"):
        return ""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load < 0.5 * cores:
        return ""
    return f"The machine is busy (load {load:.1f} on {cores} cores): do not trust these figures."


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"

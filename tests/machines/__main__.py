"""`make test-machines`: all kernels on CPUs that this machine is not, by emulation.

Calls are recorded here, with right answers from plain torch, and replayed by a program without
Python on every SIMD level of this CPU and, under qemu, on older x86-64 CPUs and on aarch64.
Nothing is installed: what is missing is said.
"""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from softorder.kernels import _native
from tests.machines.driver import ROOT, Report, build, compiler, replay
from tests.machines.record import record

_FOLDER = ROOT / "build" / "machines"
_PACKAGES = {  # of Debian and its relatives
    "qemu-x86_64": "qemu-user",
    "qemu-aarch64": "qemu-user",
    "aarch64-linux-gnu-g++": "g++-aarch64-linux-gnu",
    "cmake": "cmake",
    "make": "make",
}
_OLDEST_QEMU = (7, 2)  # the first with AVX2

#: Emulated x86-64 CPUs, and the level that each of them runs.
X86_64 = {"qemu64": "baseline", "SandyBridge": "baseline", "Haswell": "avx2", "EPYC": "avx2"}
#: Emulated aarch64 CPUs; NEON is part of the baseline there.
AARCH64 = {"cortex-a53": "baseline", "neoverse-n1": "baseline"}


class Run(NamedTuple):
    machine: str
    level: str  #: that has to be the one that is used
    program: Path
    libraries: Path
    options: tuple[str, ...] = ()
    emulator: tuple[str, ...] = ()


def main() -> int:
    if missing := _missing():
        print("\n".join(missing))
        return 1
    _FOLDER.mkdir(parents=True, exist_ok=True)
    calls = _FOLDER / "calls.bin"
    print(f"{record(calls)} calls of {len(_native.KERNELS)} kernels are recorded", flush=True)
    runs = [*_runs()]
    print(f"{'machine':24} {'level':8} {'calls':>6} {'passed':>6} {'failed':>6} {'seconds':>7}")
    good = [_report(run, calls) for run in runs]
    for level in _absent():
        print(f"{level} could not be exercised: this CPU has none, and qemu emulates none")
    return 0 if all(good) else 1


# ---- what is needed ------------------------------------------------------------------------------


def _missing() -> list[str]:
    """What keeps this machine from emulating others."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        return ["make test-machines runs on x86-64 Linux only"]
    absent = [name for name in _PACKAGES if shutil.which(name) is None]
    said = []
    if absent:
        packages = " ".join(sorted({_PACKAGES[name] for name in absent}))
        said.append(f"not found: {', '.join(absent)}. On Debian: apt-get install {packages}")
    if compiler() is None:
        said.append("not found: a C++20 compiler. On Debian: apt-get install g++")
    if _native.library_path("cpu") is None:
        said.append("softorder is installed without its compiled kernels: run make install")
    if "qemu-x86_64" not in absent and (version := _qemu_version()) < _OLDEST_QEMU:
        wanted, found = (".".join(map(str, v)) for v in (_OLDEST_QEMU, version))
        said.append(f"AVX2 needs qemu {wanted} or newer, and this is {found}")
    return said


def _qemu_version() -> tuple[int, ...]:
    command = ["qemu-x86_64", "--version"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"version (\d+)\.(\d+)", text)
    return tuple(map(int, found.groups())) if found else (0, 0)


def _absent() -> list[str]:
    """The levels that neither this CPU nor an emulated one has."""
    here = _native.LEVELS.index(_native.machine_level())
    return [level for level in _native.LEVELS[here + 1 :] if level not in X86_64.values()]


# ---- which machines ------------------------------------------------------------------------------


def _runs() -> Iterator[Run]:
    cpu = _native.library_path("cpu")
    host = compiler()
    assert cpu is not None
    assert host is not None
    program = build(host, _FOLDER / "replay")
    for level in _native.LEVELS[: _native.LEVELS.index(_native.machine_level()) + 1]:
        if _native.library_path(level) is not None:
            yield Run("this CPU", level, program, cpu.parent, ("--level", level))
    for name, level in X86_64.items():
        expect = ("--expect-level", level)
        emulator = ("qemu-x86_64", "-cpu", name)
        yield Run(f"x86-64, {name}", level, program, cpu.parent, expect, emulator)
    cross = build("aarch64-linux-gnu-g++", _FOLDER / "replay-aarch64")
    libraries = _build_for_aarch64()
    for name, level in AARCH64.items():
        expect = ("--expect-level", level)
        emulator = ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", "-cpu", name)
        yield Run(f"aarch64, {name}", level, cross, libraries, expect, emulator)


def _build_for_aarch64() -> Path:
    """The kernels for aarch64, by the same CMakeLists.txt; only what changed is built again."""
    folder = _FOLDER / "aarch64"
    system = {
        "CMAKE_SYSTEM_NAME": "Linux",
        "CMAKE_SYSTEM_PROCESSOR": "aarch64",
        "CMAKE_CXX_COMPILER": "aarch64-linux-gnu-g++",
    }
    options = [f"-D{name}={value}" for name, value in system.items()]
    for command in (
        ["cmake", "-S", ROOT, "-B", folder, "-G", "Unix Makefiles", *options],
        ["cmake", "--build", folder, "--parallel", "2"],
    ):
        done = subprocess.run([*map(str, command)], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"the kernels cannot be built for aarch64:\n{done.stdout}{done.stderr}")
        print(done.stderr, end="")  # warnings
    return folder


# ---- what they say -------------------------------------------------------------------------------


def _report(run: Run, calls: Path) -> bool:
    """One line of the table, and whatever went wrong below it."""
    started = time.perf_counter()
    found = replay(run.program, run.libraries, calls, *run.options, emulator=run.emulator)
    seconds = time.perf_counter() - started
    total = found.passed + found.failed
    numbers = f"{total:6} {found.passed:6} {found.failed:6} {seconds:7.1f}"
    print(f"{run.machine:24} {found.level:8} {numbers}", flush=True)
    good = found.code == 0 and found.level == run.level
    if not good:
        print(_complaint(run, found))
    return good


def _complaint(run: Run, found: Report) -> str:
    if found.code == 0:
        return f"{run.machine}: {found.level} was used instead of {run.level}"
    return f"{run.machine}: exit code {found.code}\n{found.text}"


if __name__ == "__main__":
    sys.exit(main())

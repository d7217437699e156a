"""Counts of recorded calls: `count.cpp` under callgrind, which looks into one function only.

Callgrind's cache simulation is that of cachegrind, which cannot be switched on and off.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from benchmarks.valgrind.recording import Recorded, write
from softorder.kernels import _native
from tests.machines.driver import compiler

LEVELS = ("baseline", "avx2")  #: that valgrind can run: it knows no AVX-512
_HERE = Path(__file__).parent
_CSRC = _HERE.parents[1] / "csrc"
# The libraries leave the functions of the OpenMP runtime undefined: the program brings them.
_OPTIONS = ("-std=c++20", "-O1", f"-I{_CSRC}", "-Wl,--no-as-needed", "-fopenmp", "-ldl")
_LOOK = ("--toggle-collect=counted", "--dump-after=counted", "--combine-dumps=yes")
_CACHE = Path("/sys/devices/system/cpu/cpu0/cache")

Counts = dict[str, int]  # by the name of an event, Ir the instructions


def missing() -> str | None:
    """What is not here and would be needed, if anything."""
    if shutil.which("valgrind") is None:
        return "valgrind, which is not installed (on Debian: apt-get install valgrind)"
    if compiler() is None:
        return "a C++ compiler, and there is none"
    return None


def levels() -> list[str]:
    return [level for level in LEVELS if level in _native.usable_levels()]


def count(calls: list[Recorded], level: str, cache: bool = False) -> list[Counts]:
    """What every call did, in the library of that level; with the misses of a cache, if asked."""
    library = _native.library_path(level)
    with tempfile.TemporaryDirectory() as folder:
        program, recorded, found = (Path(folder, name) for name in ("count", "calls", "found"))
        source = str(_HERE / "count.cpp")
        subprocess.run([str(compiler()), source, *_OPTIONS, "-o", str(program)], check=True)
        write(recorded, calls)
        options = ["--tool=callgrind", f"--callgrind-out-file={found}", *_LOOK]
        if cache:
            options += ["--cache-sim=yes", f"--LL={last_level()}"]
        command = ["valgrind", *options, str(program), str(library), str(recorded)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"valgrind ended with code {done.returncode}:\n{done.stderr}")
        counts = parse(found.read_text())
    if len(counts) != len(calls):
        raise RuntimeError(f"valgrind saw {len(counts)} calls instead of {len(calls)}")
    return counts


def parse(text: str) -> list[Counts]:
    """The parts of a file of callgrind that something was counted in, one for each call."""
    events = re.search(r"^events: (.*)$", text, re.MULTILINE)
    if events is None:
        return []
    names = events[1].split()
    totals = re.findall(r"^totals: ([\d ]+)$", text, re.MULTILINE)
    parts = [dict(zip(names, map(int, line.split()), strict=False)) for line in totals]
    return [part for part in parts if part.get("Ir")]


def last_level() -> str:
    """The last cache of this machine as valgrind wants it: size, associativity, line size."""
    size, ways, line = 0, 16, 64
    for index in _CACHE.glob("index*"):
        here = _bytes((index / "size").read_text().strip())
        if here > size:
            size, line = here, int((index / "coherency_line_size").read_text())
            ways = int((index / "ways_of_associativity").read_text()) or ways
    size = size or 32 << 20
    sets = 1 << (size // (ways * line)).bit_length() - 1  # a power of two, the next below
    return f"{sets * ways * line},{ways},{line}"


def _bytes(text: str) -> int:
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    return int(text[:-1]) * units[text[-1]] if text[-1] in units else int(text)

"""Compiles `replay.cpp`, and runs it on this CPU or under an emulator."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
_FLAGS = ("-std=c++20", "-O1", "-Wall", "-Wextra", f"-I{ROOT / 'csrc'}")
# The libraries leave the functions of the OpenMP runtime undefined: the program has to bring them.
_OPENMP = ("-Wl,--no-as-needed", "-fopenmp", "-ldl")


class Report(NamedTuple):
    """What a replay said."""

    level: str  #: of the library that it opened, "" if it did not get that far
    passed: int
    failed: int
    code: int  #: how the process ended; 0 if everything passed
    text: str


def compiler() -> str | None:
    """The C++ compiler of this machine."""
    names = (os.environ.get("CXX", ""), "c++", "g++", "clang++")
    return next((found for name in names if name and (found := shutil.which(name))), None)


def build(compiler: str, program: Path) -> Path:
    """Compiles the driver."""
    source = Path(__file__).with_name("replay.cpp")
    command = [compiler, *_FLAGS, str(source), *_OPENMP, "-o", str(program)]
    subprocess.run(command, check=True)
    return program


def replay(
    program: Path,
    libraries: Path,
    calls: Path,
    *options: str,
    emulator: Sequence[str] = (),
) -> Report:
    """Runs it; options are those of `replay.cpp`."""
    command = [*emulator, program, libraries, calls, *options]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=600)
    # qemu warns of every feature of a CPU that it does not emulate.
    text = done.stdout + re.sub(r"^qemu-\w+: warning: .*\n", "", done.stderr, flags=re.MULTILINE)
    level = re.search(r"^library (\w+),", text, re.MULTILINE)
    counts = re.search(r"^(\d+) passed, (\d+) failed$", text, re.MULTILINE)
    passed, failed = map(int, counts.groups()) if counts else (0, 0)
    return Report(level[1] if level else "", passed, failed, done.returncode, text)

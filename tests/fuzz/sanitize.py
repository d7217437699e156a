"""Builds the kernels with a sanitizer, then runs their tests and the fuzzer on them.

python -m tests.fuzz.sanitize address thread [--level avx2] [--seconds 300] [--from SEED]
python -m tests.fuzz.sanitize address --no-tests --calls 10000 --most 300

One SIMD level is built: the widest that this CPU can run unless told otherwise. The sanitizer's
runtime has to be the first library of the process, hence the environment that the children get.
Python and torch are not instrumented: what they do among themselves is not looked at.
"""

import argparse
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from softorder.kernels import _native

_ROOT = Path(__file__).parents[2]
_BUILDS = _ROOT / "build" / "sanitize"
# About the libraries of the installation, and about kernels that are not in them.
_ELSEWHERE = ("test_libraries.py", "test_triton.py", "test_triton_seam.py", "test_gpu.py")


@dataclass(frozen=True)
class Sanitizer:
    flags: str  # as in -fsanitize=
    runtimes: tuple  # to be loaded first
    environment: dict


SANITIZERS = {
    "address": Sanitizer(
        "address,undefined",
        ("libasan.so", "libubsan.so", "libstdc++.so"),
        {
            # Python keeps what it has to the end; tests/runtime/test_growth.py sees what grows.
            # Frames that outlive a call are not aligned for packs of 64 bytes: GCC bug 110027.
            "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return={frames}",
            "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
        },
    ),
    "thread": Sanitizer(
        "thread",
        ("libtsan.so", "libstdc++.so"),
        {"TSAN_OPTIONS": f"halt_on_error=1:suppressions={Path(__file__).with_name('tsan.txt')}"},
    ),
}


@dataclass(frozen=True)
class Build:
    """The kernels of one SIMD level with one sanitizer."""

    name: str
    level: str

    @property
    def folder(self):
        return _BUILDS / f"{self.name}-{self.level}"

    def compile(self):
        flags = f"-DSOFTORDER_SANITIZE={SANITIZERS[self.name].flags}"
        _command("cmake", "-S", _ROOT, "-B", self.folder, flags)
        targets = ("softorder_cpu", f"softorder_{self.level}")
        _command("cmake", "--build", self.folder, "--parallel", "2", "--target", *targets)

    def environment(self):
        sanitizer, frames = SANITIZERS[self.name], int(self.level != "avx512")
        return {
            **os.environ,
            **{key: value.format(frames=frames) for key, value in sanitizer.environment.items()},
            "LD_PRELOAD": " ".join(_runtime(library) for library in sanitizer.runtimes),
            "SOFTORDER_KERNELS": "native",
            "PYTHONMALLOC": "malloc",  # so that Python's own objects have guarded ends as well
        }

    def run(self, module, *arguments):
        """A module of Python with these kernels."""
        command = [sys.executable, "-m", "tests.fuzz.with_libraries", self.folder, module]
        words = [str(word) for word in (*command, *arguments)]
        result = subprocess.run(words, cwd=_ROOT, env=self.environment())
        if result.returncode:
            sys.exit(f"{self.name}: {module} ended with {result.returncode}")


def _runtime(library):
    compiler = os.environ.get("CXX", "c++")
    found = subprocess.check_output([compiler, f"-print-file-name={library}"], text=True).strip()
    if not Path(found).is_absolute():
        sys.exit(f"{compiler} has no {library}: install its sanitizers")
    return str(Path(found).resolve())


def test(build):
    """The tests of the kernels, in one process."""
    files = sorted((_ROOT / "tests" / "kernels").glob("test_*.py"))
    chosen = [file for file in files if file.name not in _ELSEWHERE]
    build.run("pytest", "-q", "-p", "no:cacheprovider", "--timeout", "3000", *chosen)


def _command(*words):
    subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.sanitize", description=__doc__)
    parser.add_argument("names", nargs="+", choices=[*SANITIZERS])
    parser.add_argument("--level", choices=_native.LEVELS, default=_native.machine_level())
    parser.add_argument("--seconds", type=float, default=300, help="of fuzzing, each")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first seed")
    parser.add_argument("--calls", type=int, default=10**9, help="problems at the most")
    parser.add_argument("--most", type=int, default=70_000, help="scores of a problem")
    parser.add_argument("--no-tests", action="store_true", help="the fuzzer alone")
    given = parser.parse_args()
    for name in given.names:
        build = Build(name, given.level)
        build.compile()
        if not given.no_tests:
            test(build)
        limits = ("--calls", given.calls, "--seconds", given.seconds, "--most", given.most)
        build.run("tests.fuzz.run", "--from", given.first, *limits)


if __name__ == "__main__":
    main()

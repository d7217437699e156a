"""A few calls of every kernel on other CPUs; `make test-machines` has all of them."""

import dataclasses
import platform
import shutil

import pytest
import torch

from softorder.kernels import _native
from tests.machines.calls import Call, Expected, Unchecked, write
from tests.machines.driver import build, compiler, replay
from tests.machines.record import made

pytestmark = [
    pytest.mark.skipif(platform.system() != "Linux", reason="the replay wants Linux"),
    pytest.mark.skipif(compiler() is None, reason="no C++ compiler to build the replay with"),
    pytest.mark.skipif(_native.library_path("cpu") is None, reason="no compiled kernels"),
]
emulated = pytest.mark.skipif(
    shutil.which("qemu-x86_64") is None or platform.machine() != "x86_64",
    reason="needs qemu-x86_64 (Debian: qemu-user) on an x86-64 machine",
)


@pytest.fixture(scope="module")
def calls():
    return made(few=True)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return build(compiler(), tmp_path_factory.mktemp("driver") / "replay")


@pytest.fixture
def run(program, calls, tmp_path):
    """Replays these calls, or the recorded ones."""

    def run(*options, calls=calls, **settings):
        path = tmp_path / "calls.bin"
        write(path, calls)
        folder = _native.library_path("cpu").parent
        return replay(program, folder, path, *options, **settings)

    return run


@pytest.mark.parametrize("level", _native.LEVELS)
def test_every_level_of_this_cpu(run, calls, level):
    if _native.LEVELS.index(level) > _native.LEVELS.index(_native.machine_level()):
        pytest.skip(f"this CPU has no {level}")
    if _native.library_path(level) is None:
        pytest.skip(f"the kernels were not built for {level}")
    found = run("--level", level)
    assert (found.code, found.level, found.passed) == (0, level, len(calls)), found.text


@emulated
@pytest.mark.parametrize(("cpu", "level"), [("qemu64", "baseline"), ("Haswell", "avx2")])
def test_an_older_cpu_takes_the_level_that_it_has(run, calls, cpu, level):
    """All levels are there; an AVX-512 instruction would end the process."""
    found = run("--expect-level", level, emulator=("qemu-x86_64", "-cpu", cpu))
    assert (found.code, found.level, found.passed) == (0, level, len(calls)), found.text


@emulated
def test_more_than_the_cpu_has_is_refused(run):
    found = run("--level", "avx512", emulator=("qemu-x86_64", "-cpu", "Haswell"))
    assert found.code == 2
    assert "this CPU runs avx2 at the most, not avx512" in found.text


def test_another_cpu_than_expected_is_an_error(run):
    other = "baseline" if _native.machine_level() != "baseline" else "avx512"
    found = run("--expect-level", other)
    assert found.code == 2
    assert f"was expected to run {other}" in found.text


# ---- the replay can fail -------------------------------------------------------------------------


def test_one_wrong_number_is_reported(run, calls):
    found = run(calls=[_spoiled(calls[0]), *calls[1:]])
    assert (found.code, found.passed, found.failed) == (1, len(calls) - 1, 1)
    assert f"FAILED {calls[0].kernel} ({calls[0].about}): p[" in found.text


def test_a_wrong_number_is_seen_in_every_call(run, calls):
    found = run(calls=[_spoiled(call) for call in calls])
    assert (found.passed, found.failed) == (0, len(calls)), found.text


def _spoiled(call):
    """The same call with one of the expected numbers twice as far off as is allowed."""
    name, right = next((k, v) for k, v in call.values.items() if isinstance(v, Expected))
    values = right.values.double().flatten().clone()
    tolerance = right.tolerance.double().repeat_interleave(len(values) // len(right.tolerance))
    place = int((values.isfinite() & tolerance.isfinite()).nonzero()[0])
    values[place] += 2 * tolerance[place] if tolerance[place] else 1
    spoiled = dataclasses.replace(right, values=values)
    return dataclasses.replace(call, values=call.values | {name: spoiled})


def test_a_kernel_that_writes_too_much_is_seen(run):
    found = run(calls=[_sort(Unchecked((2,), torch.float32))])
    assert found.code == 1
    assert "wrote beside values" in found.text


def test_kernels_that_nobody_called_are_counted(run):
    found = run(calls=[_sort(Unchecked((4,), torch.float32))])
    assert (found.code, found.passed) == (1, 1)
    assert f"only 1 of {len(_native.KERNELS)} kernels" in found.text


def _sort(values):
    fields = {
        "scores": torch.tensor([[3.0, 1.0, 2.0, 0.0]]),
        "values": values,
        "order": Expected(torch.tensor([[3, 1, 2, 0]]), torch.int64),
        "rows": 1,
        "n": 4,
        "format": 2,
        "threads": 1,
    }
    return Call("sort", "four numbers", fields)

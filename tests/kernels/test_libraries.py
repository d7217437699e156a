"""One library per SIMD level: the right one is opened, nothing runs at load, no fault is silent."""

import inspect
import struct
import sys
from ctypes.util import find_library
from pathlib import Path

import pytest

from softorder.kernels import _native
from tests.kernels.elf import section_size
from tests.runtime.processes import run, run_fresh

_LEVEL = "from softorder.kernels import _native; print(_native.level())"
_WIDTHS = {"baseline": 16, "avx2": 32, "avx512": 64}
_POINTER = struct.calcsize("P")

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads ELF files and /proc")


@pytest.fixture
def fresh(monkeypatch):
    """Nothing opened, nothing decided, nothing asked for."""
    monkeypatch.setattr(_native, "_kind", None)
    for variable in ("SOFTORDER_KERNELS", "SOFTORDER_SIMD"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(_native, "_library", None)
    _native._library_of.cache_clear()
    yield monkeypatch
    _native._library_of.cache_clear()


# ---- what is in the files ------------------------------------------------------------------------


@linux
@pytest.mark.parametrize("name", ["cpu", *_native.LEVELS])
def test_nothing_of_ours_runs_at_load(name):
    """The compiler's own initialiser is one pointer; another would run before the CPU is asked."""
    path = _native.library_path(name)
    if path is None:
        pytest.skip(f"no library for {name}")
    assert section_size(path, ".init_array") <= _POINTER
    assert section_size(path, ".ctors") == 0


@linux
def test_the_reader_of_elf_files_sees_initialisers():
    """numpy's core has them: the test above can fail."""
    from numpy._core import _multiarray_umath

    assert section_size(Path(_multiarray_umath.__file__), ".init_array") > _POINTER
    assert section_size(Path(_multiarray_umath.__file__), ".no_such_section") == 0


# ---- which one is opened -------------------------------------------------------------------------


def test_the_level_that_was_asked_for_is_the_only_one_in_the_process(level):
    maps = "print(open('/proc/self/maps').read())" if sys.platform == "linux" else ""
    found = run(f"{_LEVEL}\n{maps}", SOFTORDER_SIMD=level, SOFTORDER_KERNELS="native")
    assert found.split()[0] == level
    assert not any(f"softorder_{other}." in found for other in _native.LEVELS if other != level)


def test_a_level_has_its_width(level):
    with _native.use_level(level):
        assert _native.level() == level
        assert _native.library().pack_bytes == _WIDTHS[level]


def test_the_widest_level_is_opened_by_itself(fresh):
    assert _native.level() == _native.usable_levels()[-1]


def test_more_than_the_machine_has_is_refused(fresh):
    fresh.setattr(_native, "machine_level", lambda: "baseline")
    fresh.setenv("SOFTORDER_SIMD", "avx512")
    with pytest.raises(ValueError, match=r"SOFTORDER_SIMD=avx512 .*CPU runs baseline at the most"):
        _native.enabled()


def test_an_unknown_level_is_refused(fresh):
    fresh.setenv("SOFTORDER_SIMD", "sse9")
    with pytest.raises(ValueError, match=r"SOFTORDER_SIMD must be one of baseline, .*'sse9'"):
        _native.enabled()


# ---- what happens when it cannot be used ---------------------------------------------------------


def _without_a_library(fresh, folder):
    fresh.setattr(_native, "library_path", lambda name: None)
    return "has no compiled kernels.*compiler"


def _of_another_machine(fresh, folder):
    content = bytearray(_native.library_path("baseline").read_bytes())
    content[18:20] = (0xF3).to_bytes(2, "little")  # e_machine: RISC-V
    return _opens(fresh, folder, content, "cannot be opened")


def _that_is_no_library(fresh, folder):
    return _opens(fresh, folder, b"not a library", "cannot be opened")


def _of_another_version(fresh, folder):
    fresh.setattr(_native, "INTERFACE", _native.INTERFACE + 1)
    return "another version.*interface.*Rebuild"


def _with_another_struct(fresh, folder):
    fresh.setitem(_native.KERNELS, "sort", _native.KERNELS["sort"] + "P")
    return "another version.*bytes of arguments for sort.*Rebuild"


def _with_a_missing_kernel(fresh, folder):
    fresh.setitem(_native.KERNELS, "soft_everything", "3P")
    return "another version.*no kernel soft_everything.*Rebuild"


def _with_an_unknown_kernel(fresh, folder):
    fresh.delitem(_native.KERNELS, "sort")
    return "another version.*a kernel 'sort'.*Rebuild"


def _opens(fresh, folder, content, reason):
    path = folder / "libsoftorder_baseline.so"
    path.write_bytes(content)
    cpu = _native.library_path("cpu")
    fresh.setattr(_native, "library_path", {"cpu": cpu, "baseline": path}.get)
    return reason


_FAULTS = [
    _without_a_library,
    pytest.param(_of_another_machine, marks=linux),
    _that_is_no_library,
    _of_another_version,
    _with_another_struct,
    _with_a_missing_kernel,
    _with_an_unknown_kernel,
]


@pytest.mark.parametrize("fault", _FAULTS)
def test_a_fault_means_plain_torch_and_one_warning(fresh, fault, tmp_path):
    reason = fault(fresh, tmp_path)
    with pytest.warns(RuntimeWarning, match=f"plain torch.*{reason}"):
        assert not _native.enabled()
    assert not _native.enabled()  # a second warning would be an error


@pytest.mark.parametrize("fault", _FAULTS)
def test_a_fault_is_an_error_where_native_is_asked_for(fresh, fault, tmp_path):
    reason = fault(fresh, tmp_path)
    with pytest.raises(_native.UnusableError, match=f"asked for.*{reason}"), _native.use("native"):
        pass


@linux
def test_threads_come_from_the_runtime_that_torch_loaded():
    """A second OpenMP runtime in the process would mean twice the threads."""
    script = """
import torch, softorder as so
torch.set_num_threads(2)
so.soft_topk(torch.randn(64, 10_000), 5)
lines = open("/proc/self/maps").read().splitlines()
print(len({line.split()[-1] for line in lines if "libgomp" in line or "libomp" in line}))
"""
    assert run(script, SOFTORDER_KERNELS="native").strip() == "1"


@linux
@pytest.mark.skipif(not find_library("gomp"), reason="the system has no OpenMP runtime")
def test_without_a_runtime_of_torch_the_system_s_serves():
    script = f"""
from __future__ import annotations
import ctypes
{inspect.getsource(_native._load)}
print(_load({str(_native.library_path("baseline"))!r}).softorder_library is not None)
"""
    assert run_fresh(script).strip() == "True"


# ---- outcomes ------------------------------------------------------------------------------------


def test_an_unknown_choice_is_an_error():
    with pytest.raises(ValueError, match=r"kernel sort does not know"):
        _native.call("sort", 0, 0, 0, 0, 0, 0, 99, 1)


@pytest.mark.parametrize(
    ("outcome", "error", "words"),
    [
        (4096, MemoryError, "could not have 4096 bytes"),
        (-1, ValueError, "does not know"),
        (-2, RuntimeError, "unexpectedly"),
    ],
)
def test_every_outcome_has_words(monkeypatch, outcome, error, words):
    monkeypatch.setitem(_native.library().kernels, "sort", (lambda _: outcome, lambda *_: b""))
    with pytest.raises(error, match=words):
        _native.call("sort")

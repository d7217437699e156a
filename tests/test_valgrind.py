"""Counts of kernels by valgrind: what is recorded, what is read, what is said without valgrind."""

import shutil
import struct

import pytest
import torch

import softorder as so
from benchmarks import growth, growth_page, instructions
from benchmarks.valgrind import counting, recording
from softorder.cli import main
from softorder.kernels import _native

needs_kernels = pytest.mark.skipif(not _native.enabled(), reason="the kernels are not built")
needs_valgrind = pytest.mark.skipif(
    counting.missing() is not None or shutil.which("valgrind") is None, reason="needs valgrind"
)


def _calls(n=100):
    scores = torch.randn(4, n, generator=torch.Generator().manual_seed(0)).requires_grad_()
    return recording.record(lambda: so.soft_topk(scores, 3, temperature=0.1).sum().backward())


@needs_kernels
def test_calls_are_recorded_as_python_makes_them():
    before = torch.get_num_threads()
    forward, backward = _calls()
    assert (forward.kernel, backward.kernel) == ("topk_forward", "topk_backward")
    assert torch.get_num_threads() == before
    scores = torch.randn(4, 100, generator=torch.Generator().manual_seed(0))
    assert scores.numpy().tobytes() in [content for _, content in forward.buffers]
    assert forward.arguments[-1] == 1  # threads
    assert _native.pointer(scores) == scores.data_ptr()  # all is as it was


def test_an_address_that_nobody_noted_is_an_error():
    call = recording.Recorded("sort", (), ((64, b"12345678"),))
    assert call.place_of(68) == (0, 4)
    with pytest.raises(LookupError, match="nobody noted"):
        call.place_of(72)


@needs_kernels
def test_the_file_of_calls(tmp_path):
    forward, _ = _calls()
    recording.write(tmp_path / "calls", [forward])
    content = (tmp_path / "calls").read_bytes()
    assert struct.unpack("<QQ", content[:16]) == (1, len("topk_forward"))
    assert content[16:28] == b"topk_forward"


def test_counts_of_every_call_are_read():
    text = (
        "events: Ir DLmr\n\ntotals: 0\npart: 2\nevents: Ir DLmr\ntotals: 120 3\n"
        "part: 3\nevents: Ir DLmr\ntotals: 240 5\n"
    )
    assert counting.parse(text) == [{"Ir": 120, "DLmr": 3}, {"Ir": 240, "DLmr": 5}]
    assert counting.parse("nothing") == []


def test_the_last_cache_has_a_power_of_two_of_sets():
    size, ways, line = map(int, counting.last_level().split(","))
    sets = size // (ways * line)
    assert sets * ways * line == size
    assert sets & (sets - 1) == 0


@needs_kernels
@needs_valgrind
def test_counts_are_the_same_twice_and_grow_with_the_row():
    level = counting.levels()[-1]
    short, twice, long = counting.count([_calls()[0], _calls()[0], _calls(1000)[0]], level)
    assert short["Ir"] == pytest.approx(twice["Ir"], rel=0.02)  # malloc takes turns
    assert 2 * short["Ir"] < long["Ir"] < 10 * short["Ir"]


@needs_kernels
@needs_valgrind
@pytest.mark.slow
def test_the_suite_counts_both_kernels(tmp_path, capsys):
    level = counting.levels()[-1]
    found = instructions.run(True, ["256x64", "laplace", level], None, tmp_path)
    assert {count["kernel"] for count in found.counts} == set(instructions.KERNELS)
    assert all(1 < count["per_score"] < 1000 for count in found.counts)
    assert f"topk_backward, {level}" in capsys.readouterr().out


def test_without_valgrind_the_reason_is_said(monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(counting.shutil, "which", lambda name: None)
    with pytest.raises(SystemExit, match="bench instructions needs valgrind, which is not inst"):
        main(["bench", "instructions"])
    assert list(growth._jobs(growth.SIZES, ["misses"], 1.0)) == []
    assert "no cache misses, which would need valgrind" in capsys.readouterr().out


# ---- growth ------------------------------------------------------------------------------------


def _results():
    """The cache ends at n = 512: misses there, and more time per score."""
    sizes = (128, 256, 512, 1024)
    each = {"softorder rank, laplace": (1, 1, 1.5, 2.25), "torch.sort": (2, 2, 2, 2)}
    timings = [
        {"provider": who, "n": n, "minimum": ns * n * 1e-9}
        for who, times in each.items()
        for n, ns in zip(sizes, times, strict=True)
    ]
    misses = [
        {"operator": "soft_rank", "n": n, "per_score": missed}
        for n, missed in zip(sizes, (0.001, 0.01, 0.4, 0.9), strict=True)
    ]
    return {"timings": timings, "misses": misses, "cache": f"{2**21},16,64"}


def test_the_sentence_about_growth_is_computed():
    text = growth_page.sentence(_results())
    assert "`soft_rank` by 2.00 to 3.00, `torch.sort` by 2.00 to 2.00." in text
    assert "misses a last cache of 2 MiB 0.001 times per score at n = 128 and 0.90" in text
    assert (
        "no longer fits from n = 512 on, where the factor of a doubling goes from 2.00 to 3.00"
        in text
    )


def test_the_table_of_growth(tmp_path):
    rows = growth_page.growth_table(_results()).rows
    assert list(rows[1]) == ["256", "1.00", "3.00", "2.00", "2.00", "0.010"]
    growth_page.draw(_results(), tmp_path / "growth.png")
    assert (tmp_path / "growth.png").exists()

"""`softorder bench --against`, on made-up timings: no clock decides a test."""

import json
import types

import pytest

from benchmarks import against, command
from benchmarks.rounds import in_rounds, spread, summary
from softorder.cli import main
from softorder.cli._timing import Timing

_MACHINE = {"processor": "P", "threads": "2", "vectors": "avx2"}


def _timing(provider, seconds, noise=0.01, **case):
    rounds = [seconds, seconds * (1 + noise)] if noise is not None else []
    about = {"section": "forward", "rows": 2, "n": 10, "provider": provider} | case
    return about | {"minimum": seconds, "median": seconds, "repetitions": 2, "rounds": rounds}


def _run(ours, theirs=1.0, noise=0.01, machine=_MACHINE, **case):
    timings = [
        _timing("torch.softmax", theirs, noise, **case),
        _timing("softorder laplace", ours, noise, **case),
    ]
    return {"machine": machine, "timings": timings}


@pytest.mark.parametrize(
    ("then", "now", "slower", "faster"),
    [
        ((2.0, 1.0, 0.01), (2.0, 1.0, 0.01), 0, 0),
        ((2.0, 1.0, 0.01), (2.3, 1.0, 0.01), 1, 0),
        ((2.0, 1.0, 0.01), (4.0, 2.0, 0.01), 0, 0),  # a slower machine
        ((2.0, 1.0, 0.01), (2.0, 2.0, 0.01), 0, 1),
        ((2.0, 1.0, 0.01), (2.3, 1.0, 0.20), 0, 0),  # a noisy one
        ((2.0, 1.0, 0.00), (2.08, 1.0, 0.00), 0, 0),  # less than is ever marked
    ],
)
def test_slower_is_what_exceeds_the_noise_of_both_runs(then, now, slower, faster):
    found = against.compare(_run(*then), _run(*now))
    assert (len(found.slower), len(found.faster), len(found.changes)) == (slower, faster, 1)
    assert ("✗ slower" in found.text()) == bool(slower)


def test_kept_results_without_a_spread_get_a_stated_one():
    found = against.compare(_run(2.0, noise=None), _run(2.3))
    assert not found.slower
    assert "no spread: 10% is taken" in found.text()
    assert against.compare(_run(2.0, noise=None), _run(2.7)).slower


def test_a_time_without_a_yardstick_is_freed_from_the_drift():
    def run(drift, ours):
        alone = _timing("softorder sort", ours * drift, section="growth")
        return _run(2.0 * drift, drift) | {"timings": [*_run(2.0 * drift, drift)["timings"], alone]}

    found = against.compare(run(1.0, 1.0), run(3.0, 1.0))
    assert not found.slower
    assert "1 times have no yardstick" in found.text()
    assert "3.00" in found.text()
    (slower,) = against.compare(run(1.0, 1.0), run(3.0, 1.5)).slower
    assert slower.name == "growth 2×10 softorder sort"
    assert slower.factor == pytest.approx(1.5)


def test_bytes_and_instructions_are_compared_as_well():
    def run(saved, instructions):
        about = {"provider": "softorder laplace", "rows": 2, "n": 10}
        return {
            "machine": _MACHINE,
            "memory": [about | {"forward": None, "saved": saved}],
            "instructions": [about | {"kernel": "topk_forward", "per_score": instructions}],
        }

    assert not against.compare(run(100, 50.0), run(105, 50.3)).slower
    names = [change.name for change in against.compare(run(100, 50.0), run(200, 55.0)).slower]
    assert names == [
        "2×10 softorder laplace, saved",
        "2×10 kernel=topk_forward softorder laplace",
    ]


def test_another_machine_or_another_case_is_said():
    other = against.compare(_run(2.0), _run(2.0, machine=_MACHINE | {"processor": "Q"}))
    assert "processor was P, is Q" in other.text()
    assert "no case in common" in against.compare(_run(2.0), _run(2.0, n=11)).text()


def test_rounds_are_summed_up():
    timings = [Timing(2.0, 3.0, 5), Timing(2.5, 4.0, 7)]
    found = summary(timings)
    assert (found.minimum, found.median, found.repetitions) == (2.0, 3.5, 12)
    assert found.rounds == (2.0, 2.5)
    assert spread(found.rounds) == 0.25
    calls = []
    timed = in_rounds({"a": lambda: calls.append(1)}, 1e-3, rounds=3)
    assert len(timed["a"].rounds) == 3
    assert len(calls) >= timed["a"].repetitions


@pytest.fixture
def suite(monkeypatch, tmp_path):
    """A suite that measures nothing, and finds what it was told to."""
    found = {}

    def run(quick, only, seconds, output):
        (output / "topk.json").write_text(json.dumps(found["now"]))

    fake = types.SimpleNamespace(names=list, run=run)
    monkeypatch.setattr(command, "import_module", lambda name: fake)
    (tmp_path / "topk.json").write_text(json.dumps(_run(2.0)))
    return found


@pytest.mark.parametrize(("ours", "code"), [(2.0, 0), (3.0, 1)])
def test_the_command_ends_with_a_code(suite, tmp_path, capsys, ours, code):
    """Even where the run writes to the very file that it is compared with."""
    pytest.importorskip("matplotlib")
    suite["now"] = _run(ours)
    kept = str(tmp_path / "topk.json")
    assert main(["bench", "--against", kept, "--output", str(tmp_path)]) == code
    assert f"1 compared: {code} slower" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--against", "none.json"], "none.json is no file of results"),
        (["rank", "--against", "benchmarks/results/topk.json"], "is of the suite topk, no other"),
        (
            ["topk", "--device", "cpu", "--against", "benchmarks/results/topk.json"],
            "for runs on the CPU",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(arguments, message):
    pytest.importorskip("matplotlib")
    with pytest.raises(SystemExit, match=message):
        main(["bench", *arguments])

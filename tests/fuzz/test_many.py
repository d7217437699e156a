"""Runs of many problems: split, interrupted, taken up again, and ended by a crash."""

import os
import subprocess
import sys

import pytest

from tests.fuzz import many, problems, run

PLAN = many.Plan(first=7, calls=50, most=4, operators=("fsum", "soft_topk"))


@pytest.fixture(autouse=True)
def _small_blocks_of_nothing(monkeypatch):
    """No kernel runs in forks of a process that may have had threads."""
    monkeypatch.setattr(many, "BLOCK", 20)
    monkeypatch.setattr(run, "check", lambda problem, levels: "")


@pytest.mark.slow
def test_by_command():
    command = [
        sys.executable,
        "-m",
        "tests.fuzz.run",
        "--calls",
        "150",
        "--most",
        "9",
        "--jobs",
        "2",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "seeds from 0 to 149, at most 9 scores, one level: 150 problems (" in done.stdout


def test_seeds_are_those_of_the_operators():
    seeds = list(PLAN.seeds())
    assert len(seeds) == 50
    assert seeds[0] >= 7
    assert {problems.CASES[s % len(problems.CASES)][0] for s in seeds} == {"fsum", "soft_topk"}


def test_two_processes_and_an_interruption_change_nothing(tmp_path):
    whole = many.run_all(PLAN)
    path = tmp_path / "state.json"
    part = many.run_all(PLAN, jobs=1, path=path, stop_after=0)
    assert 0 < part.tally.counts["problems"] < 50
    again = many.run_all(PLAN, jobs=2, path=path)
    assert again.tally.counts == whole.tally.counts
    assert again.tally.failures == []
    assert again.next_seed() == list(PLAN.seeds())[-1] + 1
    assert "50 problems (" in again.summary()
    assert "0 failures" in again.summary()
    assert many.State.read(path, PLAN) == again


def test_a_file_of_another_run_is_refused(tmp_path):
    path = tmp_path / "state.json"
    many.State(PLAN).write(path)
    with pytest.raises(SystemExit, match="another run"):
        many.State.read(path, many.Plan(first=8, calls=50))


def test_failures_are_kept(monkeypatch):
    monkeypatch.setattr(run, "check", lambda problem, levels: "wrong" * (problem.seed % 2))
    failures = many.run_all(PLAN, jobs=2).tally.failures
    assert len(failures) == sum(seed % 2 for seed in PLAN.seeds())
    assert all(line.endswith("wrong") for line in failures)


def test_a_crash_names_its_problem(monkeypatch):
    at = list(PLAN.seeds())[30]

    def crash(problem, levels):
        if problem.seed == at:
            os._exit(1)
        return ""

    monkeypatch.setattr(run, "check", crash)
    with pytest.raises(SystemExit, match=f"tests.fuzz.run --seed {at} --most 4"):
        many.run_all(PLAN)

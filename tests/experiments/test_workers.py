"""Trials in several processes."""

import os
from dataclasses import replace

import pytest

from experiments.experiment import Setting
from experiments.running import Order, run
from experiments.trials import Trials
from experiments.workers import Plan, cores, side_by_side, threads
from tests.experiments import toy

ARMS = ("first", "second", "third")


def _run(folder, arms=ARMS, seeds=2, jobs=2, **changes):
    config = toy.Config(seeds=seeds, arms=arms)
    experiment = replace(toy.Toy().experiment(config), session=toy.session, **changes)
    return run(experiment, Order(output=folder, jobs=jobs))


def test_trials_run_in_other_processes_and_are_kept_in_order(tmp_path):
    records = _run(tmp_path).records
    assert [(r["arm"], r["seed"]) for r in records] == [(a, s) for s in (0, 1) for a in ARMS]
    assert [r["loss"] for r in records] == [3, 3, 3, 4, 4, 4]
    assert os.getpid() not in {r["process"] for r in records}
    again = _run(tmp_path, seeds=3, jobs=1).records
    assert again[:6] == records  # nothing ran twice
    assert len(again) == 9


@pytest.mark.slow
def test_trials_that_share_work_stay_together_and_know_each_other(tmp_path):
    records = _run(tmp_path, shared=lambda arm, seed: seed).records
    for seed in (0, 1):
        mine = [r for r in records if r["seed"] == seed]
        assert len({r["process"] for r in mine}) == 1
        before = [r["before"] for r in mine]
        assert before == [before[0], before[0] + 1, before[0] + 2]


def test_what_is_timed_runs_alone(tmp_path):
    assert {r["process"] for r in _run(tmp_path, timed=True).records} == {os.getpid()}


@pytest.mark.parametrize(
    ("arm", "message"),
    [
        ("fails", "ValueError: no fails"),
        pytest.param("killed", "exit code -9.*--jobs", marks=pytest.mark.slow),
    ],
)
def test_a_failure_is_told_and_the_rest_is_kept(tmp_path, arm, message):
    with pytest.raises(SystemExit, match=message):
        _run(tmp_path, arms=("first", arm), seeds=2, shared=lambda arm, seed: seed)


def test_cores_are_shared():
    assert threads(cores()) == 1
    assert threads(2 * cores()) == 1


@pytest.mark.slow
def test_more_tasks_than_a_pipe_holds():
    """Nobody takes any before the processes have started."""
    plan = Plan(toy.session, toy.Config(), Setting(), Trials("title", {}))
    units = [[(letter * 70_000, 0)] for letter in "abc"]
    found = {(arm, seed) for arm, seed, _ in side_by_side(plan, units, jobs=1)}
    assert found == {task for unit in units for task in unit}

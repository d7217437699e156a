"""What presets would take that are not run is measured, and said from what is kept."""

import doctest
import json
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from experiments import catalogue, costs, docs, words
from experiments.paper import Paper
from experiments.trials import RESULTS, Trials

NOT_RUN = [
    (name, preset)
    for name in catalogue.names()
    for preset in catalogue.get(name).presets
    if not (RESULTS / name / f"{preset}.json").exists()
]


@pytest.mark.parametrize(("name", "preset"), NOT_RUN)
def test_a_reason_has_its_cost_or_there_is_nothing_to_measure(name, preset):
    """Without the data, or where times are the figures, so that limits of time are set."""
    experiment = catalogue.get(name)
    reason = Paper.of(experiment).not_run[preset]
    known = (name, preset) in costs.CASES
    assert known == (costs.PLACE in reason)
    assert known or experiment.timed or "No package registry" in reason
    said = costs.filled(reason, experiment, preset)
    assert costs.PLACE not in said
    if known:
        config = experiment.presets[preset]
        assert f"there are {len(experiment.arms(config)) * config.seeds}" in said
        assert set(costs.CASES[name, preset].arms) <= set(experiment.arms(config))


def test_what_is_run_is_not_measured_for_it():
    assert costs.CASES.keys() <= set(NOT_RUN)
    kept = json.loads(costs.KEPT.read_text(encoding="utf-8"))["seconds"]
    assert kept.keys() == {f"{name}, {preset}" for name, preset in costs.CASES}
    assert all(second > 0 for seconds in kept.values() for second in seconds)


def test_a_few_steps_are_timed_and_no_more():
    made = []

    def trial(_arm, _seed):
        weight = torch.ones(3, requires_grad=True)
        optimiser = torch.optim.SGD([weight], lr=0.1)
        for step in range(100):
            end = time.process_time() + (0.2 if step == 0 else 0.01)
            while time.process_time() < end:
                pass
            optimiser.zero_grad()
            weight.sum().backward()
            optimiser.step()
            made.append(step)
        return {}

    experiment = SimpleNamespace(session=lambda *_: trial)
    case = costs.Case(("a",), lambda config: 100, skipped=2, timed=5)
    seconds = costs.measured(experiment, None, "a", case)
    assert 0.01 <= seconds < 0.1
    assert len(made) == 7  # the last of eight ends the trial
    costs.measured(experiment, None, "a", case)
    assert len(made) == 14


def test_what_is_begun_says_what_the_rest_would_take():
    experiment = catalogue.get("polynomial")
    trials = Trials("title", {}, about={"torch": "2"})
    assert (
        docs._about(experiment, "paper", trials) == "0 of 25 trials, 0.0 minutes in all; torch 2."
    )
    for seed in range(2):
        trials.add("πST", seed, {"seconds": 1_800.0})
    said = docs._about(experiment, "paper", trials)
    assert said.startswith("2 of 25 trials, 60.0 minutes in all; torch 2. ")
    assert said.endswith("At the same pace the other 23 would take 11.5 hours of a core.")


def _about(seeds, seconds, made=None, name="estimators", preset="quick"):
    """Of a preset with fewer seeds than five."""
    experiment = catalogue.get(name)
    config = replace(experiment.presets[preset], seeds=seeds)
    changed = replace(experiment, presets={preset: config})
    trials = Trials("title", {}, about={"torch": "2"})
    every = [(arm, seed) for seed in range(seeds) for arm in changed.arms(config)]
    for arm, seed in every[:made]:
        trials.add(arm, seed, {"seconds": seconds})
    return docs._about(changed, preset, trials)


def test_what_five_seeds_would_take_is_said_where_there_are_fewer():
    said = _about(seeds=3, seconds=60.0)  # eight arms
    assert said.endswith(
        "Five seeds would be 16 more trials: by the medians 16.0 minutes of a core."
    )
    assert "Five seeds" not in _about(seeds=5, seconds=60.0)
    assert "Five seeds" not in _about(seeds=3, seconds=301.0)  # a trial is not short
    assert "Five seeds" not in _about(seeds=3, seconds=60.0, made=23)  # that is said otherwise


def test_examples_of_the_durations():
    assert doctest.testmod(words).failed == 0


def test_a_step_of_a_preset_is_timed(tmp_path, monkeypatch):
    """With a preset that is quick, and all that is written goes elsewhere."""
    monkeypatch.setattr(costs, "KEPT", tmp_path / "costs.json")
    case = costs.Case(("πST",), lambda config: config.steps, {"samples": 4, "problems": 2}, timed=2)
    monkeypatch.setattr(costs, "CASES", {("polynomial", "paper"): case})
    costs.main(["polynomial"])
    said = costs.sentence(catalogue.get("polynomial"), "paper")
    assert said.startswith("5,000 steps of ")
    assert said.endswith("of a core for a trial, and there are 25")
    before = costs.KEPT.read_text(encoding="utf-8")
    costs.main(["knn"])
    assert costs.KEPT.read_text(encoding="utf-8") == before

"""The examples run, and what they show is so, with fewer steps than they take."""

import importlib
import importlib.util
import math
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch

from examples import study
from experiments.trials import Trials

_FOLDER = Path(__file__).parents[1] / "examples"


def _load(name):
    spec = importlib.util.spec_from_file_location(name, _FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_transformer_layer():
    assert _load("transformer_layer").main(steps=100) > 0.25  # by chance: 1/7


_STUDIES = (
    "sparse_autoencoder",
    "mixture_of_experts",
    "token_selection",
    "pruning",
    "robust_regression",
)


def _quick(module, folder):
    threads = torch.get_num_threads()
    try:
        return study.main(module.STUDY, module.__doc__, ["--quick", "--output", str(folder)])
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("name", _STUDIES)
def test_studies(name, tmp_path, capsys):
    """Every arm, with --quick: a table, a figure, what they say."""
    module = importlib.import_module(f"examples.{name}")
    trials = _quick(module, tmp_path)
    assert set(trials.arms) == set(module.STUDY.arms)
    for column in module.STUDY.columns:
        found = [value for arm in trials.arms for value in trials.values(arm, column.key)]
        assert all(math.isfinite(value) for value in found)
    text = (tmp_path / f"{name}.md").read_text()
    assert study.reading(module.STUDY, trials) in text
    assert (tmp_path / f"{name}.png").stat().st_size > 5_000
    assert trials.arms[-1] in capsys.readouterr().out


@pytest.mark.parametrize("name", _STUDIES)
def test_results_in_the_documentation_are_those_of_the_trials(name):
    """The table and its sentences are made from the JSON file, and were made from this one."""
    module = importlib.import_module(f"examples.{name}")
    trials = Trials.read(study.RESULTS / f"{name}.json")
    table, said = study.table(module.STUDY, trials), study.reading(module.STUDY, trials)
    kept = (study.RESULTS / f"{name}.md").read_text(encoding="utf-8")
    assert kept == f"{table.markdown()}\n\n{said}\n"
    assert set(trials.arms) == set(module.STUDY.arms)
    assert (study.RESULTS / f"{name}.png").exists()


def test_what_was_run_is_not_run_again(tmp_path):
    module = importlib.import_module("examples.pruning")
    settings = {
        arm: {name: list(values) for name, values in module.STUDY.settings(arm).items()}
        for arm in module.STUDY.arms
    }
    trials = Trials("so far", {**asdict(module.STUDY.quick), "settings": settings})
    trials.config["chosen"] = {arm: {"rate": 1e-3, "own": 0.1} for arm in module.STUDY.arms}
    for arm in module.STUDY.arms:
        trials.add(arm, 0, {"dense": 0.5, "shares": [], "curve": [], "rate": 1e-3, "own": 0.1})
    trials.write(tmp_path / "pruning.json")
    assert _quick(module, tmp_path).records == trials.records


def test_one_setting_after_the_other_is_chosen_by_validation(tmp_path):
    """The rate is best at 2 with the first own value; then the best own value is 5."""
    asked = []

    def trial(arm, seed, setting, config):
        asked.append((seed, setting["rate"], setting["own"]))
        far = (setting["rate"] - 2) ** 2 + (setting["own"] - 5) ** 2
        return {"validation": -far, "figure": far}

    module = importlib.import_module("examples.robust_regression")
    column = study.Column("figure", "figure")
    tuned = replace(
        module.STUDY,
        name="tuned",
        arms=("one",),
        trial=trial,
        settings=lambda arm: {"rate": (1.0, 2.0, 3.0), "own": (4.0, 5.0)},
        full=module.Config((), 0.2, 2),
        columns=(column,),
        contests=(),
        draw=lambda trials, path: None,
        higher=True,
    )
    trials = study.run(tuned, False, tmp_path)
    tries = [(study.TUNING, *pair) for pair in ((1, 4), (2, 4), (3, 4), (2, 5))]
    assert asked == [*tries, (0, 2, 5), (1, 2, 5)]
    assert trials.config["chosen"] == {"one": {"rate": 2.0, "own": 5.0}}


@pytest.mark.parametrize("name", _STUDIES)
def test_no_arm_is_tuned_more_than_another(name):
    made = importlib.import_module(f"examples.{name}").STUDY
    assert len({study._tries(made, arm) for arm in made.arms}) == 1


def test_help_teaches(capsys):
    module = importlib.import_module("examples.pruning")
    with pytest.raises(SystemExit):
        study.main(module.STUDY, module.__doc__, ["--help"])
    said = capsys.readouterr().out
    assert "magnitude, gradual" in said
    assert "--quick" in said


def test_another_configuration_is_not_mixed_in(tmp_path):
    module = importlib.import_module("examples.robust_regression")
    trials = Trials("other", {"shares": [0.5], "chosen": {}})
    trials.write(tmp_path / "robust_regression.json")
    with pytest.raises(SystemExit, match="was made with other values of shares"):
        study.main(module.STUDY, None, ["--quick", "--output", str(tmp_path)])


def test_sharded_classifier():
    """Alone; tests/distributed has it on two processes."""
    assert _load("sharded_classifier").main(classes=50, steps=40) > 0.5  # by chance: 0.1


_HELPERS = {"__init__", "images", "study", "words"}


@pytest.mark.parametrize(
    "name", sorted({path.stem for path in _FOLDER.glob("*.py")} - _HELPERS), ids=str
)
def test_every_example_is_tested(name):
    assert name in _STUDIES or f"test_{name}" in globals()

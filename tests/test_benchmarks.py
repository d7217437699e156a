"""What we are compared with has to be right as well."""

import dataclasses
import json
from importlib import import_module
from importlib.util import find_spec

import pytest
import torch

import softorder as so
from benchmarks import families_figures, losses, sharded, sharded_model
from benchmarks.cases import Case, Shape
from benchmarks.memory import Memory
from benchmarks.providers import (
    Provider,
    closed_form,
    khot_recursion,
    paper_sinkhorn,
    softorder_families,
    softorder_transport,
)
from benchmarks.timing import Record
from softorder.cli._timing import Timing


@pytest.mark.parametrize("temperature", [1.0, 0.1, 0.01])
@pytest.mark.parametrize("k", [1, 100, 500, 999])
def test_the_closed_form_agrees(k, temperature):
    case = Case(Shape(3, 1000), k, temperature)
    scores = case.scores().double().requires_grad_()
    theirs = closed_form.bind(case)(scores)
    ours = so.soft_topk(scores, k, temperature=temperature)
    torch.testing.assert_close(theirs, ours, rtol=0, atol=1e-9)

    upstream = torch.randn_like(theirs)
    gradients = (torch.autograd.grad(p, scores, upstream)[0] for p in (theirs, ours))
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-7 / temperature)


def test_the_iterations_of_the_paper_agree():
    case = Case(Shape(3, 30), 4, 0.6)
    scores = case.scores().double().requires_grad_()
    theirs = paper_sinkhorn.to_error(1e-13, 20_000).bind(case)(scores)
    ours = softorder_transport.provider.bind(case)(scores)
    torch.testing.assert_close(theirs, ours, rtol=0, atol=1e-11)

    upstream = torch.randn_like(theirs)
    gradients = (torch.autograd.grad(p, scores, upstream)[0] for p in (theirs, ours))
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", ["difftopk", "diffsort"])
def test_networks_of_the_packages_agree(name):
    """Their networks have other wires: when cold, all of them select the same."""
    if find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    case = Case(Shape(4, 37), 3, 1e-6)
    scores = case.scores()
    module = import_module(f"benchmarks.providers.{name}_network")
    theirs = [value for value in vars(module).values() if isinstance(value, Provider)]
    assert theirs
    expected = so.hard.permutation(scores, k=3, descending=True)
    for provider in [*theirs, softorder_families.network("splitter")]:
        p = provider.bind(case)(scores)
        torch.testing.assert_close(p, expected, rtol=0, atol=1e-4)


def test_the_families_suite_derives_its_figures():
    """On made-up times: what is too slow is said to be."""
    case, timing = Case(Shape(128, 1024), 5, 0.1), Timing(minimum=1.0, median=1.0, repetitions=1)
    quick = dataclasses.replace(timing, minimum=0.5)
    providers = [softorder_families.network("splitter"), softorder_families.network("bitonic")]
    records = [
        Record("networks", case, provider, time)
        for provider, time in zip(providers, (timing, quick), strict=True)
    ]
    memory = Memory(case, providers[0], None, saved=4 * 128 * 1024)
    late, kept = families_figures.derive(records, [memory])
    assert (late.value, late.reached) == (2.0, False)
    assert (kept.value, kept.reached) == (0.5, True)


def test_the_recursion_over_units_agrees():
    case = Case(Shape(2, 9), 4, 1.0)
    scores = case.scores().double().requires_grad_()
    theirs = khot_recursion.provider.bind(case)(scores)
    assert (theirs.detach().sum(-1).round() == 4).all()
    law = so.distributions.KHot(4, logits=scores)

    upstream = torch.randn_like(theirs)
    gradients = (torch.autograd.grad(p, scores, upstream)[0] for p in (theirs, law.mean))
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-12)


def test_the_losses_suite_runs_and_writes_what_it_found(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(losses, "SHAPES", (Shape(3, 20), Shape(2, 30)))
    monkeypatch.setattr(losses, "IMAGENET_21K", Shape(2, 30))
    report = losses.run(quick=True, only=[], seconds=1e-4, output=tmp_path)
    assert {record.section for record in report.records} == set(losses.SECTIONS)
    assert sum(figure.limit is not None for figure in report.figures()) == 5  # one per density
    written = json.loads((tmp_path / "losses.json").read_text())
    assert len(written["timings"]) == len(report.records)
    assert "png" not in (tmp_path / "losses.md").read_text()
    assert "of many calls" in capsys.readouterr().out


def test_topk_on_a_device(tmp_path, capsys):
    """By another clock than a GPU's, which is all that differs."""
    from benchmarks import on_device

    on_device.run("cpu", ["128x1000"], 0.02, tmp_path)
    printed = capsys.readouterr().out
    assert "128×1,000 with gradient" in printed
    assert "torch.softmax" in printed
    assert (tmp_path / "topk_cpu.json").exists()
    with pytest.raises(SystemExit, match="unknown 3x3; known: 4096x64"):
        on_device.run("cpu", ["3x3"], 0.02, tmp_path)


def test_the_model_of_many_ranks():
    seconds = [sharded_model.ours(ranks, 1e-9) for ranks in sharded_model.RANKS]
    assert seconds == sorted(seconds, reverse=True)
    assert sharded_model.gathered(8, 1e-9) == sharded_model.gathered(4096, 1e-9) > seconds[0]


@pytest.mark.slow
def test_a_row_that_two_processes_share():
    by_way = {one.way: one for one in sharded._measured("strong", 2, 20_000)}
    ours, gathered = by_way["softorder"], by_way["gather, soft top-k"]
    assert ours.sent < 2000 < gathered.sent == 40_000
    assert ours.exchanges >= 2

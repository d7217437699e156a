"""Time and memory against n: that the contenders compute the same, and where curves end."""

import sys
from dataclasses import replace

import pytest
import torch

import softorder as so
from benchmarks.cases import Shape
from benchmarks.providers import Provider
from experiments.runtime_memory import config, khot, measure, permutation, topk
from experiments.runtime_memory.experiment import PARTS, arms
from experiments.runtime_memory.measure import curve, foreseen
from experiments.runtime_memory.part import Part

N = 20


def _result(part, name):
    """What a provider gives, and the gradient of a random sum; warm, so that nothing saturates."""
    case = part.case(N)
    case = replace(case, shape=Shape(min(2, case.shape.rows), N), temperature=2.0)
    leaf = case.scores().double().requires_grad_()
    torch.manual_seed(0)
    result = part.providers[name].bind(case)(leaf)
    weights = torch.randn(result.shape, generator=torch.Generator().manual_seed(1))
    return result.detach(), *torch.autograd.grad((weights * result).sum(), leaf)


def test_every_method_and_design_is_measured():
    for operator, part in (("soft_topk", topk.HALF), ("soft_permutation", permutation.PART)):
        assert set(part.ours) == {row.name for row in so.methods() if row.operator == operator}
    assert {"pareto", "pivotal", "conditional_poisson"} <= khot.SAMPLING.ours.keys()
    assert tuple(PARTS) == config.PARTS
    names = arms(config.PRESETS["quick"])
    assert len(names) == len(set(names)) == sum(len(part.providers) for part in PARTS.values())


@pytest.mark.parametrize("preset", config.PRESETS)
def test_all_are_compared_at_one_of_the_sizes(preset):
    sizes = config.PRESETS[preset].sizes
    assert config.PRESETS[preset].common in sizes
    assert list(sizes) == sorted(set(sizes))


@pytest.mark.parametrize("name", PARTS)
def test_every_contender_has_a_result_and_a_gradient(name):
    for arm in PARTS[name].providers:
        result, gradient = _result(PARTS[name], arm)
        assert result.isfinite().all(), arm
        assert gradient.isfinite().all(), arm
        assert (gradient != 0).any(), arm


@pytest.mark.parametrize(
    ("part", "published", "ours"),
    [
        (topk.FIVE, "LapSum closed form", "laplace"),
        (topk.HALF, "LapSum closed form", "laplace"),
        (topk.HALF, "200 Sinkhorn iterations", "sinkhorn"),
        (khot.RELAXED, "200 Sinkhorn iterations", "logistic"),
        (permutation.PART, "NeuralSort formula", "neuralsort"),
        (permutation.PART, "SoftSort formula", "softsort"),
    ],
)
def test_what_is_published_computes_the_same(part, published, ours):
    theirs = _result(part, published)
    for one, other in zip(theirs, _result(part, ours), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-8, check_dtype=False)


def test_the_recursion_has_the_gradient_of_our_marginals():
    _, theirs = _result(khot.SAMPLING, "SIMPLE's recursion")
    _, ours = _result(khot.SAMPLING, "conditional_poisson")
    torch.testing.assert_close(theirs, ours, rtol=1e-6, atol=1e-8)


def test_errors_are_those_of_the_sums():
    case = topk.HALF.case(4)
    assert topk.HALF.error(torch.tensor([[1.0, 0.5, 0.25, 0.0]]), case) == 0.25
    batch = khot.RELAXED.case(4)
    assert khot.RELAXED.error(torch.tensor([[1.0, 1.0], [1.0, 0.5]]), batch) == 0.5
    case = permutation.PART.case(2)
    assert permutation.PART.error(torch.tensor([[[0.5, 0.5], [0.25, 0.75]]]), case) == 0.25
    assert permutation.PART.error(torch.tensor([[[0.5, 0.5]]]), case) == 0


# ---- where curves end ---------------------------------------------------------------------------


def test_growth_goes_on_but_is_never_less_than_linear():
    quadratic = [{"n": 10.0, "both": 1.0}, {"n": 20.0, "both": 4.0}]
    assert foreseen(quadratic, "both", 40) == pytest.approx(16)
    flat = [{"n": 10.0, "both": 1.0}, {"n": 20.0, "both": 1.0}]
    assert foreseen(flat, "both", 40) == pytest.approx(2)
    assert foreseen(flat[:1], "both", 40) == pytest.approx(4)
    nothing = [{"n": 10.0, "both": 0.0}, {"n": 20.0, "both": 1.0}]
    assert foreseen(nothing, "both", 40) == pytest.approx(2)


@pytest.mark.parametrize(("key", "last"), [("both", 300.0), ("memory", 100.0), (None, 1000.0)])
def test_a_curve_ends_before_it_is_too_slow_or_too_large(monkeypatch, key, last):
    def point(_part, _provider, n, _seconds):
        return {"n": float(n), "both": 1.0, "memory": 1.0, **({key: n**2 / 1e3} if key else {})}

    monkeypatch.setattr(measure, "_point", point)
    limits = config.Config(sizes=(30, 100, 300, 1000), seconds=0, limit=0.1, memory=50)
    points = curve(topk.FIVE, topk.FIVE.ours["laplace"], limits)
    assert points[-1]["n"] == last


@pytest.mark.skipif(sys.platform != "linux", reason="peaks are read from /proc")
def test_peaks_are_measured():
    """A forward pass that makes a million numbers of 8 bytes, and a little else."""

    def bind(_case):
        return lambda scores: (scores.expand(1_000_000, -1) * 1.0).sum(0, keepdim=True)

    part = Part("x", "", topk.FIVE.case, torch.float64, {"x": Provider("x", "x", bind)}, {})
    (point,) = curve(part, part.ours["x"], config.Config((1,), seconds=0, limit=1, memory=1e3))
    assert 7.5 < point["forward_memory"] < 12
    assert 7.5 < point["memory"] < 28
    assert "error" not in point

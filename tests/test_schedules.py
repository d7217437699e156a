"""so.schedules: temperatures by the step, and what sets them."""

import math
from itertools import pairwise

import pytest
import torch
from torch import nn

import softorder as so
from softorder.schedules import Cosine, Exponential, Linear, Scheduler

_KINDS = [Linear, Cosine, Exponential]


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize(("start", "end"), [(1.0, 0.01), (0.1, 2.0)])
def test_goes_from_start_to_end_and_stays(kind, start, end):
    schedule = kind(start, end, steps=7)
    values = [schedule(step) for step in range(12)]
    assert values[0] == pytest.approx(start)
    assert values[7:] == [end] * 5
    steps = [b - a for a, b in pairwise(values[:8])]
    assert all((step > 0) == (end > start) for step in steps)


def test_the_formulas():
    assert Linear(1.0, 3.0, 4)(1) == 1.5
    assert Cosine(1.0, 3.0, 4)(1) == pytest.approx(3 - 2 * (1 + math.cos(math.pi / 4)) / 2)
    assert Exponential(1.0, 16.0, 4)(3) == pytest.approx(8)


@pytest.mark.parametrize("kind", _KINDS)
def test_a_plain_callable_is_what_operators_take(kind):
    scores = torch.randn(3, 8)
    schedule, soft = kind(1.0, 0.1, 10), kind(0.5, 0.05, 10, softness=True)
    for step in (0, 5, 20):
        so.soft_topk(scores, 2, temperature=schedule(step))
        assert isinstance(soft(step), so.Auto)
        so.soft_topk(scores, 2, temperature=soft(step))


def _model():
    return nn.Sequential(nn.Linear(4, 8), so.nn.SoftTopK(2), nn.Sequential(so.nn.SoftRank()))


def test_sets_every_temperature_of_a_model():
    model, loss = _model(), so.losses.SmoothTopKLoss(temperature=3.0)
    scheduler = Scheduler([model, loss], Linear(1.0, 0.5, 5))
    for step in range(8):
        expected = Linear(1.0, 0.5, 5)(step)
        assert [model[1].temperature, model[2][0].temperature, loss.temperature] == [expected] * 3
        assert scheduler.get_last_temperature() == expected
        scheduler.step()


def test_goes_on_where_it_was():
    model = _model()
    scheduler = Scheduler(model, Cosine(1.0, 0.1, 10))
    for _ in range(4):
        scheduler.step()
    other = _model()
    again = Scheduler(other, Cosine(1.0, 0.1, 10))
    again.load_state_dict(scheduler.state_dict())
    assert other[1].temperature == model[1].temperature
    scheduler.step()
    again.step()
    assert other[1].temperature == model[1].temperature
    third = _model()
    third.load_state_dict(model.state_dict())  # the layers know theirs, too
    assert third[1].temperature == model[1].temperature


def test_a_tensor_is_filled_in_place():
    layer = so.nn.SoftTopK(2, temperature=torch.tensor([1.0, 2.0]))
    buffer = layer.fixed_temperature
    Scheduler(layer, Linear(0.5, 0.1, 5)).step()
    assert layer.fixed_temperature is buffer
    torch.testing.assert_close(buffer, torch.full((2,), 0.42))


def test_in_softness_layers_calibrate_after_every_step():
    scores = torch.randn(4, 20)
    layer = so.nn.SoftTopK(3)
    scheduler = Scheduler(layer, Linear(0.5, 0.1, 2, softness=True))
    for softness in (0.5, 0.3, 0.1, 0.1):
        layer(scores)
        expected = so.calibrate_temperature(scores, 3, softness=softness, shared=True)
        torch.testing.assert_close(layer.temperature.double(), expected, rtol=1e-3, atol=0)
        scheduler.step()


def test_any_function_of_the_step():
    layer = so.nn.SoftTopK(2)
    scheduler = Scheduler(layer, lambda step: 1 / (1 + step))
    scheduler.step()
    assert layer.temperature == 0.5


def test_an_automatic_temperature_may_be_scheduled():
    layer = so.nn.SoftTopK(2, temperature="auto")
    Scheduler(layer, Linear(1.0, 0.5, 5)).step()
    assert layer.temperature == 0.9
    assert layer.calibrated


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Linear(0.0, 1.0, 5), ValueError, "start must be finite and > 0, but got 0.0"),
        (lambda: Cosine(1.0, -1.0, 5), ValueError, "end must be finite and > 0, but got -1.0"),
        (lambda: Linear(1.0, 0.1, 5, softness=True), ValueError, "start must be between 0 and 1"),
        (lambda: Linear(1.0, 0.1, 0), ValueError, "steps must be at least 1, but got 0"),
        (lambda: Linear(1.0, 0.1, 5)(-1), ValueError, "step must be finite and >= 0, but got -1"),
        (lambda: Scheduler(3, Linear(1.0, 0.1, 5)), TypeError, "layers must be a module or a list"),
        (lambda: Scheduler(nn.Linear(1, 1), Linear(1.0, 0.1, 5)), ValueError, "but got none"),
        (lambda: Scheduler(so.nn.SoftRank(), 0.5), TypeError, "schedule must be a function"),
        (
            lambda: Scheduler(so.nn.SoftRank(learnable_temperature=True), Linear(1.0, 0.1, 5)),
            ValueError,
            "not learnable, but got SoftRank",
        ),
        (
            lambda: Scheduler(so.nn.SoftRank(), Linear(1.0, 0.1, 5)).load_state_dict({"epoch": 3}),
            ValueError,
            "state_dict must hold last_step only",
        ),
    ],
)
def test_wrong_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()

"""SoftKNN with its templates cut among ranks."""

import pytest
import torch
from torch import distributed

import softorder as so
from tests.distributed.parts import own

_CLASSES = 3


def _data():
    generator = torch.Generator().manual_seed(0)
    draw = lambda n: torch.randn(n, 4, generator=generator, dtype=torch.float64)  # noqa: E731
    queries, templates = draw(7), draw(23)
    labels = torch.arange(30) % _CLASSES
    return queries, labels[:7], templates, labels[7:]


def _model(loss):
    torch.manual_seed(1)
    return so.nn.SoftKNN(torch.nn.Linear(4, 3).double(), k=4, loss=loss, temperature=0.3)


def _run(loss, how=None):
    queries, labels, templates, own_labels = _data()
    group = None
    if how is not None:
        group = distributed.group.WORLD
        templates, own_labels = own(templates.T, how).T, own(own_labels, how)
    model = _model(loss)
    value = model(queries, labels, templates, own_labels, group=group)
    value.backward()
    if how is not None:
        so.distributed.sum_gradients(model)
    model.remember(templates, own_labels, group=group)
    nearest = model.kneighbors(queries)
    found = [value.detach(), *(parameter.grad for parameter in model.parameters())]
    return [*found, *nearest, model.predict_proba(queries)]


@pytest.mark.parametrize("loss", ["share", "log_share"])
@pytest.mark.parametrize("how", ["uneven", "first"])
def test_loss_and_predictions(team, loss, how):
    expected = _run(loss)
    for answer in team.run(_run, loss, how):
        for one, other in zip(answer, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


def test_a_group_needs_templates(pair):
    pair.run(_without_templates)


def _without_templates():
    queries, labels, *_ = _data()
    with pytest.raises(ValueError, match="templates must be given with a group"):
        _model("share")(queries, labels, group=distributed.group.WORLD)

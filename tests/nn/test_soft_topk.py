"""nn.SoftTopK: the operator as a module."""

import copy
import pickle

import pytest
import torch

import softorder as so
from tests.oracles.densities import BUILT_IN


def _scores():
    return torch.randn(4, 6, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("method", BUILT_IN)
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dim", [0, -1])
def test_computes_the_operator(method, largest, dim):
    options = {"method": method, "temperature": 0.3, "dim": dim, "largest": largest}
    mask = _scores() < 1
    module = so.nn.SoftTopK(2, **options)
    assert torch.equal(module(_scores()), so.soft_topk(_scores(), 2, **options))
    assert torch.equal(
        module(_scores(), mask=mask), so.soft_topk(_scores(), 2, mask=mask, **options)
    )


def test_a_fixed_temperature_is_not_a_parameter():
    assert list(so.nn.SoftTopK(2, temperature=0.5).parameters()) == []


def test_a_learnable_temperature_starts_where_it_was_told():
    fixed = so.nn.SoftTopK(2, temperature=0.5)
    learnable = so.nn.SoftTopK(2, temperature=0.5, learnable_temperature=True)
    assert len(list(learnable.parameters())) == 1
    torch.testing.assert_close(learnable(_scores()), fixed(_scores()))


def test_a_learnable_temperature_learns_and_stays_positive():
    module = so.nn.SoftTopK(2, temperature=0.5, learnable_temperature=True)
    optimizer = torch.optim.SGD(module.parameters(), lr=10.0)
    before = module(_scores()).detach()
    for _ in range(20):  # towards the hard mask, as far as such steps will carry
        optimizer.zero_grad()
        (module(_scores()) - so.hard.topk(_scores(), 2)).square().sum().backward()
        optimizer.step()
    after = module(_scores()).detach()
    target = so.hard.topk(_scores(), 2)
    assert after.isfinite().all()
    assert (after - target).square().sum() < (before - target).square().sum()


def test_state_dict_round_trip():
    source = so.nn.SoftTopK(2, temperature=0.25, learnable_temperature=True)
    target = so.nn.SoftTopK(2, temperature=4.0, learnable_temperature=True)
    assert not torch.allclose(source(_scores()), target(_scores()))
    target.load_state_dict(source.state_dict())
    assert torch.equal(source(_scores()), target(_scores()))


@pytest.mark.parametrize("learnable", [True, False])
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_and_pickles(learnable, duplicate):
    module = so.nn.SoftTopK(2, method="cauchy", temperature=0.4, learnable_temperature=learnable)
    assert torch.equal(duplicate(module)(_scores()), module(_scores()))


def test_repr_tells_how_it_was_made():
    text = repr(so.nn.SoftTopK(3, method="normal", temperature=0.4, dim=1, largest=False))
    for part in ("SoftTopK", "k=3", "normal", "temperature=0.4", "dim=1", "largest=False"):
        assert part in text


def test_gradients_reach_the_layer_before_it():
    model = torch.nn.Sequential(torch.nn.Linear(6, 5), so.nn.SoftTopK(2))
    (model(_scores()) * torch.arange(5.0)).sum().backward()
    assert model[0].weight.grad.abs().sum() > 0


@pytest.mark.parametrize(
    ("argument", "value"), [("temperature", 0.0), ("method", "lapsum"), ("k", -1)]
)
def test_wrong_arguments_are_refused_when_the_module_is_made(argument, value):
    with pytest.raises(ValueError, match=argument):
        so.nn.SoftTopK(**{"k": 2, argument: value})


def test_moves_and_casts_like_any_module():
    module = so.nn.SoftTopK(2, temperature=0.5, learnable_temperature=True).double()
    assert module(_scores().double()).dtype == torch.float64
    assert all(p.dtype == torch.float64 for p in module.parameters())

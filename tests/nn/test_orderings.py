"""nn.SoftTopK, SoftRank, SoftSort, SoftPermutation and SoftQuantile: the operators as modules."""

import copy
import pickle
from functools import partial

import pytest
import torch

import softorder as so

_MODULES = {
    "topk": (so.nn.SoftTopK, so.soft_topk, {"k": 2, "largest": False}),
    "log_topk": (partial(so.nn.SoftTopK, log=True), so.log_soft_topk, {"k": 2, "largest": False}),
    "rank": (so.nn.SoftRank, so.soft_rank, {"descending": True}),
    "sort": (so.nn.SoftSort, so.soft_sort, {"descending": True}),
    "permutation": (so.nn.SoftPermutation, so.soft_permutation, {"k": 2, "descending": True}),
    "quantile": (so.nn.SoftQuantile, so.soft_quantile, {"q": 0.3, "keepdim": True}),
    "sort within": (so.nn.SoftSort, so.soft_sort, {"within": True}),
    "torch's quantile": (
        so.nn.SoftQuantile,
        so.soft_quantile,
        {"q": 0.3, "interpolation": "linear", "within": True},
    ),
}
_every = pytest.mark.parametrize(("module", "operator", "options"), _MODULES.values(), ids=_MODULES)


def _scores():
    return torch.randn(4, 6, generator=torch.Generator().manual_seed(0))


@_every
@pytest.mark.parametrize("dim", [0, -1])
def test_computes_the_operator(module, operator, options, dim):
    options = {"method": "normal", "temperature": 0.3, "dim": dim, **options}
    layer, mask = module(**options), _scores() < 1
    assert list(layer.parameters()) == []
    assert torch.equal(layer(_scores()), operator(_scores(), **options))
    assert torch.equal(layer(_scores(), mask=mask), operator(_scores(), mask=mask, **options))
    for name, value in options.items():
        assert f"{name}={value!r}" in repr(layer)


@_every
def test_a_learnable_temperature_gets_a_gradient(module, operator, options):
    layer = module(temperature=0.5, learnable_temperature=True, **options)
    torch.testing.assert_close(layer(_scores()), operator(_scores(), temperature=0.5, **options))
    layer(_scores()).square().sum().backward()
    (parameter,) = layer.parameters()
    assert parameter.grad.abs() > 0
    assert "learnable_temperature=True" in repr(layer)


@_every
def test_a_learnable_temperature_is_state(module, operator, options):
    source, target = (
        module(temperature=temperature, learnable_temperature=True, **options)
        for temperature in (0.25, 4.0)
    )
    assert not torch.allclose(source(_scores()), target(_scores()))
    target.load_state_dict(source.state_dict())
    assert torch.equal(source(_scores()), target(_scores()))


@_every
@pytest.mark.parametrize("learnable", [True, False])
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_and_pickles(module, operator, options, duplicate, learnable):
    layer = module(method="cauchy", temperature=0.4, learnable_temperature=learnable, **options)
    assert torch.equal(duplicate(layer)(_scores()), layer(_scores()))


@_every
def test_moves_and_casts_like_any_module(module, operator, options):
    layer = module(temperature=0.5, learnable_temperature=True, **options).double()
    assert layer(_scores().double()).dtype == torch.float64
    assert all(p.dtype == torch.float64 for p in layer.parameters())


@_every
def test_gradients_reach_the_layer_before_it(module, operator, options):
    model = torch.nn.Sequential(torch.nn.Linear(6, 5), module(**options))
    model(_scores()).square().sum().backward()
    assert model[0].weight.grad.abs().sum() > 0


@_every
def test_wrong_arguments_are_refused_when_the_module_is_made(module, operator, options):
    with pytest.raises(ValueError, match="temperature"):
        module(**{**options, "temperature": 0.0})
    with pytest.raises(ValueError, match="method"):
        module(**{**options, "method": "lapsum"})


def test_k_and_q_are_refused_too():
    with pytest.raises(ValueError, match="k must be"):
        so.nn.SoftTopK(-1)
    with pytest.raises(ValueError, match="k must be between 0"):
        so.nn.SoftPermutation(k=-1)
    with pytest.raises(ValueError, match="q must be between 0 and 1"):
        so.nn.SoftQuantile(1.5)


def test_options_of_sorts_and_quantiles_are_those_of_the_operators():
    scores, q = _scores(), [0.0, 0.25, 1.0]
    options = {"interpolation": "midpoint", "temperature": 0.1}
    layer = so.nn.SoftQuantile(q, **options)
    assert torch.equal(layer(scores), so.soft_quantile(scores, q, **options))
    again = so.nn.SoftQuantile(0.1, **options)
    again.load_state_dict(layer.state_dict())
    assert torch.equal(again(scores), layer(scores))
    limit = so.nn.SoftQuantile(q, hard_inference=True, **options).eval()
    assert torch.equal(limit(scores), so.hard.quantile(scores, q, interpolation="midpoint"))
    weights, mask = scores.abs(), scores < 1
    layer = so.nn.SoftQuantile(0.4, hard_inference=True)
    expected = so.soft_quantile(scores, 0.4, mask=mask, weights=weights)
    assert torch.equal(layer(scores, mask, weights), expected)
    expected = so.hard.quantile(scores, 0.4, mask=mask, weights=weights)
    assert torch.equal(layer.eval()(scores, mask, weights), expected)
    sort = so.nn.SoftSort(within=True, hard_inference=True)
    assert torch.equal(sort.eval()(scores), scores.sort(-1).values)
    with pytest.raises(ValueError, match="interpolation must be one of"):
        so.nn.SoftQuantile(0.5, interpolation="cubic")
    with pytest.raises(ValueError, match="within"):
        so.nn.SoftQuantile(0.5, within=True)
    with pytest.raises(TypeError, match="within must be True or False"):
        so.nn.SoftSort(within=1)
    with pytest.raises(TypeError, match="q must be a number, a list of them or a tensor"):
        so.nn.SoftQuantile(["half"])


def test_a_method_without_a_logarithm_is_refused_when_it_is_asked_for():
    assert not so.nn.SoftTopK(2, method="network").log
    with pytest.raises(ValueError, match="method must be one of cauchy"):
        so.nn.SoftTopK(2, method="network", log=True)


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

"""nn.SoftRank, SoftSort, SoftPermutation and SoftQuantile: the operators as modules."""

import copy

import pytest
import torch

import softorder as so

_MODULES = {
    "rank": (so.nn.SoftRank, so.soft_rank, {"descending": True}),
    "sort": (so.nn.SoftSort, so.soft_sort, {"descending": True}),
    "permutation": (so.nn.SoftPermutation, so.soft_permutation, {"k": 2, "descending": True}),
    "quantile": (so.nn.SoftQuantile, so.soft_quantile, {"q": 0.3, "keepdim": True}),
}
_every = pytest.mark.parametrize(("module", "operator", "options"), _MODULES.values(), ids=_MODULES)


def _scores():
    return torch.randn(4, 6, generator=torch.Generator().manual_seed(0))


@_every
@pytest.mark.parametrize("dim", [0, -1])
def test_computes_the_operator(module, operator, options, dim):
    options = {"method": "normal", "temperature": 0.3, "dim": dim, **options}
    layer, mask = module(**options), _scores() < 1
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
    other = copy.deepcopy(layer)
    other.load_state_dict(layer.state_dict())
    assert torch.equal(other(_scores()), layer(_scores()))
    assert "learnable_temperature=True" in repr(layer)


@_every
def test_wrong_arguments_are_refused_when_the_module_is_made(module, operator, options):
    with pytest.raises(ValueError, match="temperature"):
        module(**{**options, "temperature": 0.0})
    with pytest.raises(ValueError, match="method"):
        module(**{**options, "method": "lapsum"})


def test_k_and_q_are_refused_too():
    with pytest.raises(ValueError, match="k must be between 0"):
        so.nn.SoftPermutation(k=-1)
    with pytest.raises(ValueError, match="q must be between 0 and 1"):
        so.nn.SoftQuantile(1.5)

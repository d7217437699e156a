"""Wrong arguments of rank, sort, permutation and quantile: named, with what is allowed."""

import math

import pytest
import torch

import softorder as so
from tests.oracles.densities import BUILT_IN

_SCORES = torch.zeros(2, 3)


def _median(scores, **options):
    return so.soft_median(scores, **options)


_SOFT = [so.soft_rank, so.soft_sort, so.soft_permutation, _median]
_HARD = [so.hard.rank, so.hard.sort, so.hard.permutation]
_soft = pytest.mark.parametrize("operator", _SOFT)
_every = pytest.mark.parametrize("operator", [*_SOFT, *_HARD])


@_soft
@pytest.mark.parametrize("temperature", [0, -1.5, math.nan, math.inf, torch.tensor([1.0, -1.0])])
def test_temperature_out_of_range(operator, temperature):
    with pytest.raises(ValueError, match="temperature must be finite and > 0, but got"):
        operator(_SCORES, temperature=temperature)


@_soft
def test_temperature_of_a_wrong_shape_or_type(operator):
    with pytest.raises(ValueError, match=r"temperature.*\(2,\).*\(7,\)"):
        operator(_SCORES, temperature=torch.ones(7))
    with pytest.raises(TypeError, match=r"temperature.*list"):
        operator(_SCORES, temperature=[1.0])
    with pytest.raises(ValueError, match=r"temperature.*'auto'.*got '1'"):
        operator(_SCORES, temperature="1")
    with pytest.raises(TypeError, match=r"scores.*list"):
        operator([1.0, 2.0], temperature="auto")


@_every
def test_scores_of_a_wrong_type(operator):
    with pytest.raises(TypeError, match=r"scores.*int64"):
        operator(torch.ones(3, dtype=torch.int64))
    with pytest.raises(TypeError, match=r"scores.*list"):
        operator([1.0, 2.0])
    with pytest.raises(ValueError, match="scores"):
        operator(torch.tensor(1.0))


@_every
def test_dim_and_mask(operator):
    with pytest.raises(ValueError, match="dim must be between -2 and 1"):
        operator(_SCORES, dim=2)
    with pytest.raises(TypeError, match=r"mask.*bool.*float32"):
        operator(_SCORES, mask=torch.ones(2, 3))
    with pytest.raises(ValueError, match=r"mask.*\(2, 3\).*\(4,\)"):
        operator(_SCORES, mask=torch.ones(4, dtype=torch.bool))


@pytest.mark.parametrize("operator", [*_SOFT[:3], *_HARD])
@pytest.mark.parametrize("descending", [1, "yes", None])
def test_descending_is_a_flag(operator, descending):
    with pytest.raises(TypeError, match=r"descending must be True or False"):
        operator(_SCORES, descending=descending)


@_soft
@pytest.mark.parametrize(("given", "meant"), [("laplce", "laplace"), ("lapsum", "laplace")])
def test_unknown_methods(operator, given, meant):
    with pytest.raises(ValueError, match=f"'{given}'; did you mean '{meant}'") as caught:
        operator(_SCORES, method=given)
    assert all(name in str(caught.value) for name in BUILT_IN)
    with pytest.raises(TypeError, match="cdf and pdf"):
        operator(_SCORES, method=3)


@pytest.mark.parametrize("operator", [so.soft_permutation, so.hard.permutation])
def test_rows_of_a_permutation(operator):
    with pytest.raises(ValueError, match=r"k must be between 0 and 3.*but got 4"):
        operator(_SCORES, k=4)
    with pytest.raises(TypeError, match=r"k must be an int or None.*float"):
        operator(_SCORES, k=1.0)
    assert operator(_SCORES, k=0).shape == (2, 0, 3)


@_every
def test_options_are_keywords_only(operator):
    with pytest.raises(TypeError, match="positional"):
        operator(_SCORES, 0.5)

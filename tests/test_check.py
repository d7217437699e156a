"""Wrong arguments are refused with their name, their value and what is allowed."""

import math
import re

import pytest
import torch

import softorder as so
from tests.oracles.densities import BUILT_IN

_SCORES = torch.zeros(2, 3)
_OPERATORS = [so.soft_topk, so.log_soft_topk]
_EVERY_OPERATOR = [*_OPERATORS, so.hard.topk]


def _names(operator):
    return f"{operator.__module__.split('.')[-1]}.{operator.__name__}"


def _message(error, operator, *args, **kwargs):
    with pytest.raises(error) as caught:
        operator(*args, **kwargs)
    return str(caught.value)


def _assert_mentions(message, *parts):
    for part in parts:
        assert re.search(rf"(?<![\w.]){re.escape(str(part))}(?![\w])", message), (part, message)


@pytest.mark.parametrize("operator", _EVERY_OPERATOR, ids=_names)
@pytest.mark.parametrize("k", [-1, 4, 3.5, math.nan, math.inf])
def test_k_outside_its_range(operator, k):
    _assert_mentions(_message(ValueError, operator, _SCORES, k), "k", k, 0, 3)


@pytest.mark.parametrize("operator", _EVERY_OPERATOR, ids=_names)
@pytest.mark.parametrize("bad", [-0.5, 3.25, math.nan])
def test_an_entry_of_k_outside_its_range(operator, bad):
    k = torch.tensor([1.0, bad])
    _assert_mentions(_message(ValueError, operator, _SCORES, k), "k", bad, 0, 3)


@pytest.mark.parametrize("operator", _EVERY_OPERATOR, ids=_names)
def test_k_that_does_not_fit_the_rows(operator):
    _assert_mentions(_message(ValueError, operator, _SCORES, torch.ones(5)), "k", "(5,)", "(2,)")


@pytest.mark.parametrize("operator", _EVERY_OPERATOR, ids=_names)
@pytest.mark.parametrize("k", ["2", None, [1, 2], 1j])
def test_k_of_a_wrong_type(operator, k):
    _assert_mentions(_message(TypeError, operator, _SCORES, k), "k", type(k).__name__)


@pytest.mark.parametrize("operator", _OPERATORS, ids=_names)
@pytest.mark.parametrize("temperature", [0, 0.0, -1.5, math.nan, math.inf])
def test_temperature_that_is_not_positive_and_finite(operator, temperature):
    message = _message(ValueError, operator, _SCORES, 1, temperature=temperature)
    _assert_mentions(message, "temperature", temperature)
    assert "> 0" in message or "positive" in message


@pytest.mark.parametrize("operator", _OPERATORS, ids=_names)
@pytest.mark.parametrize("bad", [0.0, -2.5, math.nan, math.inf])
def test_an_entry_of_temperature_that_is_not_positive_and_finite(operator, bad):
    temperature = torch.tensor([1.0, bad])
    message = _message(ValueError, operator, _SCORES, 1, temperature=temperature)
    _assert_mentions(message, "temperature", bad)


@pytest.mark.parametrize("operator", _OPERATORS, ids=_names)
def test_temperature_that_does_not_fit_the_rows(operator):
    message = _message(ValueError, operator, _SCORES, 1, temperature=torch.ones(7))
    _assert_mentions(message, "temperature", "(7,)", "(2,)")


@pytest.mark.parametrize("operator", _OPERATORS, ids=_names)
@pytest.mark.parametrize("temperature", [None, [1.0]])
def test_temperature_of_a_wrong_type(operator, temperature):
    message = _message(TypeError, operator, _SCORES, 1, temperature=temperature)
    _assert_mentions(message, "temperature", type(temperature).__name__)


@pytest.mark.parametrize("operator", _OPERATORS, ids=_names)
def test_a_temperature_that_is_another_word(operator):
    message = _message(ValueError, operator, _SCORES, 1, temperature="1")
    _assert_mentions(message, "temperature", "'auto'", "'1'")


@pytest.mark.parametrize("operator", _EVERY_OPERATOR, ids=_names)
@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64])
def test_scores_that_are_not_real(operator, dtype):
    message = _message(TypeError, operator, torch.ones(3, dtype=dtype), 1)
    _assert_mentions(message, "scores", str(dtype).split(".")[1])


@pytest.mark.parametrize("operator", _EVERY_OPERATOR, ids=_names)
@pytest.mark.parametrize("scores", [[1.0, 2.0], 3.0, None])
def test_scores_that_are_not_a_tensor(operator, scores):
    _assert_mentions(_message(TypeError, operator, scores, 1), "scores", type(scores).__name__)


@pytest.mark.parametrize("operator", _EVERY_OPERATOR, ids=_names)
def test_scores_without_an_axis(operator):
    _assert_mentions(_message(ValueError, operator, torch.tensor(1.0), 1), "scores")


@pytest.mark.parametrize("operator", _EVERY_OPERATOR, ids=_names)
@pytest.mark.parametrize("dim", [2, -3])
def test_dim_that_does_not_exist(operator, dim):
    _assert_mentions(_message(ValueError, operator, _SCORES, 1, dim=dim), "dim", dim, -2, 1)


@pytest.mark.parametrize("operator", _EVERY_OPERATOR, ids=_names)
@pytest.mark.parametrize("dim", [0.0, "0"])
def test_dim_of_a_wrong_type(operator, dim):
    _assert_mentions(_message(TypeError, operator, _SCORES, 1, dim=dim), "dim", type(dim).__name__)


@pytest.mark.parametrize("operator", _EVERY_OPERATOR, ids=_names)
def test_mask_that_is_not_boolean(operator):
    message = _message(TypeError, operator, _SCORES, 1, mask=torch.ones(2, 3))
    _assert_mentions(message, "mask", "float32", "bool")


@pytest.mark.parametrize("operator", _EVERY_OPERATOR, ids=_names)
def test_mask_that_does_not_fit_the_scores(operator):
    mask = torch.ones(4, dtype=torch.bool)
    _assert_mentions(
        _message(ValueError, operator, _SCORES, 1, mask=mask), "mask", "(4,)", "(2, 3)"
    )


@pytest.mark.parametrize("operator", _OPERATORS, ids=_names)
@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("laplce", "laplace"),
        ("Logistic", "logistic"),
        ("cauchi", "cauchy"),
        ("lapsum", "laplace"),
        ("sigmoid", "logistic"),
        ("gaussian", "normal"),
    ],
)
def test_an_unknown_method_is_told_the_nearest(operator, given, meant):
    message = _message(ValueError, operator, _SCORES, 1, method=given)
    _assert_mentions(message, "method", given)
    assert re.search(rf"did you mean\W+{meant}", message, re.IGNORECASE), message
    for known in BUILT_IN:
        assert known in message


@pytest.mark.parametrize("operator", _OPERATORS, ids=_names)
@pytest.mark.parametrize("method", [3, None, object()])
def test_a_method_that_is_neither_a_name_nor_a_density(operator, method):
    message = _message(TypeError, operator, _SCORES, 1, method=method)
    _assert_mentions(message, "method", type(method).__name__, "cdf", "pdf")


@pytest.mark.parametrize("operator", _EVERY_OPERATOR, ids=_names)
def test_options_are_keywords_only(operator):
    with pytest.raises(TypeError, match="positional"):
        operator(_SCORES, 1, 0.5)


def test_mask_on_another_device():
    mask = torch.ones(3, dtype=torch.bool, device="meta")
    message = _message(ValueError, so.soft_topk, _SCORES, 1, mask=mask)
    _assert_mentions(message, "mask", "meta", "cpu")

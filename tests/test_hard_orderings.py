"""hard.rank, sort, permutation and quantile: limits of temperature to zero."""

import math

import hypothesis
import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import strategies as st

import softorder as so
from tests.oracles import hard

_ROWS = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=8)
_INF, _NAN = math.inf, math.nan


@hypothesis.given(_ROWS)
def test_ranks_are_those_of_scipy(row):
    scores = torch.tensor(row, dtype=torch.float64)
    expected = torch.from_numpy(scipy.stats.rankdata(row, method="average"))
    assert torch.equal(so.hard.rank(scores), expected)
    assert torch.equal(so.hard.rank(scores, descending=True), so.hard.rank(-scores))


@hypothesis.given(_ROWS)
def test_soft_ranks_become_those_of_scipy(row):
    expected = torch.from_numpy(scipy.stats.rankdata(row, method="average"))
    for method in ("laplace", "uniform", "logistic"):
        ranks = so.soft_rank(torch.tensor(row).double(), method=method, temperature=1e-4)
        torch.testing.assert_close(ranks, expected, rtol=0, atol=1e-12)


@hypothesis.given(_ROWS)
def test_sorts_as_torch_does(row):
    scores = torch.tensor(row)
    for descending in (False, True):
        expected = scores.sort(descending=descending).values
        assert torch.equal(so.hard.sort(scores, descending=descending), expected)


@hypothesis.given(_ROWS)
def test_permutation_shares_between_equals(row):
    p = so.hard.permutation(torch.tensor(row, dtype=torch.float64))
    torch.testing.assert_close(p, torch.tensor(hard.permutation(row)).double())
    k = len(row) // 2
    assert torch.equal(so.hard.permutation(torch.tensor(row).double(), k=k), p[:k])


@hypothesis.given(_ROWS, st.integers(0, 16))
def test_quantile_is_that_of_numpy(row, sixteenths):
    q = sixteenths / 16
    found = so.hard.quantile(torch.tensor(row, dtype=torch.float64), q).item()
    assert found == np.quantile(row, q, method="averaged_inverted_cdf")
    assert found == hard.quantile(row, q)


@pytest.mark.parametrize(
    ("descending", "ranks", "ordered"),
    [
        (False, [1, 4.5, 2.5, 4.5, 2.5], [1, _INF, _INF, _INF, _INF]),
        (True, [3, 4.5, 1.5, 4.5, 1.5], [_INF, _INF, 1, -_INF, -_INF]),
    ],
)
def test_infinities(descending, ranks, ordered):
    scores = torch.tensor([1.0, -_INF, _INF, -_INF, _INF])
    assert so.hard.rank(scores, descending=descending).tolist() == ranks
    assert so.hard.sort(scores, descending=descending).tolist() == ordered
    p = so.hard.permutation(scores, descending=descending)
    assert torch.equal(p.sum(0), torch.ones(5))
    assert torch.equal(p.sum(1), torch.ones(5))
    assert (p[3, 1], p[4, 3]) == (1, 1)


def test_nan_stays_in_its_row():
    scores = torch.tensor([[1.0, _NAN], [1.0, 0.0]])
    for operator in (so.hard.rank, so.hard.sort, so.hard.permutation):
        result = operator(scores)
        assert result[0].isnan().all()
        assert result[1].isfinite().all()
    assert so.hard.quantile(scores, 0.5).isnan().tolist() == [True, False]


def test_masked_elements_go_last():
    scores = torch.tensor([9.0, 1.0, _NAN, 2.0])
    mask = torch.tensor([False, True, False, True])
    assert so.hard.rank(scores, mask=mask).tolist() == [3.5, 1, 3.5, 2]
    assert so.hard.rank(scores, mask=mask, descending=True).tolist() == [3.5, 2, 3.5, 1]
    assert so.hard.sort(scores, mask=mask, descending=True).tolist() == [2, 1, -_INF, -_INF]
    assert so.hard.quantile(scores, 0.5, mask=mask) == 1.5
    assert so.hard.quantile(scores, 0.5, mask=torch.zeros(4, dtype=torch.bool)).isnan()


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -2, -3])
@pytest.mark.parametrize("keepdim", [False, True])
def test_quantiles_are_shaped_as_those_of_torch(dim, keepdim):
    scores = torch.randn(2, 3, 4)
    for q in (0.3, torch.tensor(0.3), torch.tensor([0.1, 0.5])):
        shape = torch.quantile(scores, q, dim=dim, keepdim=keepdim).shape
        for operator in (so.hard.quantile, so.soft_quantile):
            assert operator(scores, q, dim=dim, keepdim=keepdim).shape == shape


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_keep_the_dtype(dtype):
    scores = torch.tensor([1.0, 3.0, 2.0], dtype=dtype)
    results = [so.hard.rank(scores), so.hard.sort(scores), so.hard.permutation(scores)]
    assert {result.dtype for result in [*results, so.hard.quantile(scores, 0.5)]} == {dtype}


def test_rows_without_scores():
    none = torch.empty(2, 0)
    assert so.hard.rank(none).shape == so.hard.sort(none).shape == (2, 0)
    assert so.hard.permutation(none).shape == (2, 0, 0)
    assert so.hard.quantile(none, 0.5).isnan().all()

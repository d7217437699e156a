"""hard.topk: the limit of temperature to zero."""

import math

import hypothesis
import pytest
import torch
from hypothesis import strategies as st

import softorder as so
from tests.oracles import hard


@st.composite
def _rows(draw):
    scores = draw(st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=8))
    return scores, draw(st.one_of(st.integers(0, len(scores)), st.floats(0, len(scores))))


@hypothesis.given(_rows())
def test_agrees_with_a_walk_down_the_distinct_scores(row):
    scores, k = row
    found = so.hard.topk(torch.tensor(scores, dtype=torch.float64), k)
    expected = torch.tensor(hard.topk(scores, k), dtype=torch.float64)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-14)


@hypothesis.given(_rows())
def test_smallest_is_largest_of_the_negative(row):
    scores, k = torch.tensor(row[0]), row[1]
    assert torch.equal(so.hard.topk(scores, k, largest=False), so.hard.topk(-scores, k))


@pytest.mark.parametrize(
    ("scores", "k", "expected"),
    [
        ([math.inf, 0.0, -math.inf], 2, [1, 1, 0]),
        ([math.inf, math.inf, math.inf, 5.0], 2, [2 / 3, 2 / 3, 2 / 3, 0]),
        ([-math.inf, 1.0, -math.inf], 2, [0, 1, 0]),
        ([1.0, math.nan, 2.0], 1, [math.nan] * 3),
        ([4.0], 0.25, [0.25]),
        ([1.0, 2.0, 3.0], 0, [0, 0, 0]),
        ([1.0, 2.0, 3.0], 3, [1, 1, 1]),
        ([1.0, 2.0, 3.0], 1.25, [0, 0.25, 1]),
    ],
)
def test_edges(scores, k, expected):
    found = so.hard.topk(torch.tensor(scores), k)
    torch.testing.assert_close(found, torch.tensor(expected).float(), equal_nan=True)


def test_masked_elements_get_nothing():
    scores = torch.tensor([9.0, 1.0, math.nan, 2.0, 0.0])
    mask = torch.tensor([False, True, False, True, True])
    assert so.hard.topk(scores, 2, mask=mask).tolist() == [0, 1, 0, 1, 0]
    assert so.hard.topk(scores, 5, mask=mask).tolist() == [0, 1, 0, 1, 1]


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -2, -3])
def test_any_axis_and_one_k_per_row(dim):
    scores = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(0))
    k = torch.arange(6).reshape(2, 3) / 2
    expected = [[so.hard.topk(scores[i, j], k[i, j].item()) for j in range(3)] for i in range(2)]
    expected = torch.stack([torch.stack(rows) for rows in expected])
    found = so.hard.topk(scores.movedim(-1, dim), k, dim=dim)
    assert torch.equal(found.movedim(dim, -1), expected)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_keeps_the_dtype(dtype):
    mask = so.hard.topk(torch.tensor([1.0, 3.0, 2.0], dtype=dtype), 2)
    assert mask.dtype == dtype
    assert mask.tolist() == [0, 1, 1]


def test_agrees_with_torch_topk_on_a_long_row():
    scores = torch.randn(3, 5000, generator=torch.Generator().manual_seed(0))
    expected = torch.zeros_like(scores).scatter_(-1, scores.topk(50).indices, 1.0)
    assert torch.equal(so.hard.topk(scores, 50), expected)

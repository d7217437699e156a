"""The forms of transport: how many anchors each has, and what it serves."""

import pytest
import torch

import softorder as so
from tests.oracles.transport import sinkhorn

_SERVED = {
    "sinkhorn": {"soft_topk", "log_soft_topk", "soft_rank", "soft_sort", "soft_permutation"},
    "sinkhorn_sort": {"soft_rank", "soft_sort", "soft_permutation"},
    "sorted_soft": {"soft_permutation"},
    "soft": {"soft_topk", "log_soft_topk"},
}


def _scores(*shape):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def _rows(method, scores, k=None):
    return so.soft_permutation(scores, k=k, method=method, temperature=0.7, descending=True)


@pytest.mark.parametrize("form", _SERVED)
def test_a_form_is_a_method_of_its_name(form):
    assert {row.operator for row in so.methods() if row.name == form} == _SERVED[form]
    assert set(so.Sinkhorn(form=form).operators) == _SERVED[form]
    assert so.Sinkhorn(form=form).name == form


def test_the_family_picks_by_operator():
    scores, same = _scores(3, 8), torch.equal
    for operator in (so.soft_rank, so.soft_sort, so.soft_permutation):
        assert same(operator(scores, method="sinkhorn"), operator(scores, method="sinkhorn_sort"))
    for operator in (so.soft_topk, so.log_soft_topk):
        assert same(operator(scores, 3, method="sinkhorn"), operator(scores, 3, method="soft"))
    assert same(_rows("sinkhorn", scores, 3), _rows("sorted_soft", scores, 3))


@pytest.mark.parametrize("k", [0, 1, 3, 7, 8])
def test_a_k_cuts_rows_of_sinkhorn_sort_only(k):
    scores = _scores(3, 8)
    whole = 8 * sinkhorn(-scores, 8, 0.7, 3000).mT
    torch.testing.assert_close(_rows("sinkhorn_sort", scores, k), whole[:, :k], rtol=0, atol=1e-11)
    if k:
        fewer = 8 * sinkhorn(-scores, k, 0.7, 3000).mT[:, :k]
        torch.testing.assert_close(_rows("sorted_soft", scores, k), fewer, rtol=0, atol=1e-11)
        assert torch.allclose(fewer, whole[:, :k], atol=1e-2) == (k >= 7)


def test_objects_take_all_options():
    scores, options = _scores(2, 6), {"solver": "sinkhorn", "tolerance": 1e-11}
    for form in ("sinkhorn_sort", "sorted_soft"):
        method = so.Sinkhorn(form=form, **options)
        torch.testing.assert_close(
            _rows(method, scores, 2), _rows(form, scores, 2), rtol=0, atol=1e-9
        )
        found = method.plan(scores, k=2, temperature=0.7, descending=True)
        assert torch.equal(found.permutation, _rows(method, scores, 2))
        assert (found.iterations > 10).all()


def test_wrong_forms_are_refused():
    with pytest.raises(ValueError, match=r"form must be one of .*did you mean 'sorted_soft'"):
        so.Sinkhorn(form="sortedsoft")
    with pytest.raises(ValueError, match="method must serve soft_permutation, but got 'soft'"):
        so.Sinkhorn(form="soft").plan(_scores(4))
    with pytest.raises(ValueError, match="method must serve soft_topk, but got 'sinkhorn_sort'"):
        so.soft_topk(_scores(4), 2, method=so.Sinkhorn(form="sinkhorn_sort"))
    with pytest.raises(ValueError, match="did you mean 'sinkhorn_sort'"):
        so.soft_sort(_scores(4), method="SinkhornSort")
    with pytest.raises(ValueError, match=r"anchors must be 8, .* but got 4"):
        _rows(so.Sinkhorn(form="sinkhorn_sort", anchors=torch.arange(4.0)), _scores(8), 3)

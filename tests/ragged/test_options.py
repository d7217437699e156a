"""Options and losses of rows of different lengths: the same as of every row by itself."""

import math
from functools import partial
from itertools import pairwise

import pytest
import torch

import softorder as so
from tests.ragged.rows import jagged, ragged

_LENGTHS = (3, 0, 1, 17, 40, 2, 9)
_SOFT = {
    "topk": (so.ragged.soft_topk, so.soft_topk, {"k": 2}),
    "rank": (so.ragged.soft_rank, so.soft_rank, {"descending": True}),
    "sort": (so.ragged.soft_sort, so.soft_sort, {}),
    "sort within": (so.ragged.soft_sort, so.soft_sort, {"within": True}),
    "quantile": (so.ragged.soft_quantile, so.soft_quantile, {"q": 0.3}),
    "median": (so.ragged.soft_median, so.soft_median, {}),
}
_every = pytest.mark.parametrize("name", _SOFT)


def _rows(values, offsets):
    return [values[a:b] for a, b in pairwise(offsets)]


def _options(options, row):
    """k of a row that has no more scores is their number."""
    return options | ({"k": min(options["k"], len(row))} if "k" in options else {})


def _agrees(found, expected, **tolerance):
    """Results of every row in one tensor, and one by one."""
    expected = torch.cat([row.reshape(-1) for row in expected])
    torch.testing.assert_close(found, expected, equal_nan=True, **tolerance)


@_every
@pytest.mark.parametrize("method", ["laplace", pytest.param("logistic", marks=pytest.mark.slow)])
def test_hard_ahead_and_soft_on_the_way_back(name, method):
    ours, theirs, options = _SOFT[name]
    values, offsets = ragged(_LENGTHS)
    values.requires_grad_()
    settings = {"method": method, "temperature": 0.5}
    found = ours(values, offsets, hard=True, **options, **settings)
    each = [
        theirs(x, hard=True, **_options(options, x), **settings) for x in _rows(values, offsets)
    ]
    _agrees(found, each)
    soft = ours(values, offsets, **options, **settings)
    generator = torch.Generator().manual_seed(0)
    upstream = torch.randn(found.shape, generator=generator, dtype=found.dtype)
    upstream = torch.where(soft.isfinite(), upstream, 0.0)
    (slope,) = torch.autograd.grad(found, values, upstream, retain_graph=True)
    torch.testing.assert_close(slope, torch.autograd.grad(soft, values, upstream)[0])
    rows = theirs(jagged(values, offsets), hard=True, **options, **settings)
    rows = rows.values() if rows.is_nested else rows
    torch.testing.assert_close(rows, found, equal_nan=True)


@_every
def test_a_temperature_that_every_row_finds(name):
    ours, theirs, options = _SOFT[name]
    values, offsets = ragged(_LENGTHS)
    values = values * 30
    found = ours(values, offsets, temperature="auto", **options)
    each = [theirs(x, temperature="auto", **_options(options, x)) for x in _rows(values, offsets)]
    _agrees(found, each, rtol=1e-4, atol=1e-4)
    rows = theirs(jagged(values, offsets), temperature=so.Auto(softness=0.1), **options)
    rows = rows.values() if rows.is_nested else rows
    torch.testing.assert_close(rows, found, equal_nan=True)


_again = partial(pytest.param, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("k", "method"),
    [(None, "laplace"), (2, "softsort"), _again(2, "normal"), _again(None, "normal")],
)
def test_calibration(k, method):
    values, offsets = ragged((3, 0, 1, 17, 30, 2, 5))
    values[4:6], values[12] = math.inf, -math.inf
    options = {"softness": 0.3, "method": method}
    found = so.ragged.calibrate_temperature(values, offsets, k, **options)
    each = []
    for x in _rows(values, offsets):
        own = None if k is None else min(k, len(x))
        each.append(so.calibrate_temperature(x, own, **options))
    _agrees(found, each)
    shared = so.calibrate_temperature(jagged(values, offsets), k, shared=True, **options)
    p = so.ragged.soft_rank(values, offsets, temperature=shared, method=method)
    assert shared.dim() == 0
    assert p.shape == values.shape
    spoiled = values.clone()
    spoiled[10] = math.nan
    again = so.ragged.calibrate_temperature(spoiled, offsets, k, **options)
    assert again.isnan().tolist() == [row == 3 for row in range(7)]


def test_a_calibrated_temperature_moves_with_the_scores():
    values, offsets = ragged((5, 0, 9))
    values.requires_grad_()
    call = partial(so.ragged.calibrate_temperature, offsets=offsets, k=2, differentiable=True)
    tau = call(values)
    (slope,) = torch.autograd.grad(tau.sum(), values)
    # a·x has a·τ: <x, ∂τ/∂x> = τ
    torch.testing.assert_close((slope * values).sum(), tau[[0, 2]].sum().detach())


@pytest.mark.parametrize("interpolation", ["inverse", "linear", "lower", "nearest", "midpoint"])
@pytest.mark.parametrize("kind", ["plain", "within", "weights"])
def test_quantiles(interpolation, kind):
    values, offsets = ragged(_LENGTHS)
    values.requires_grad_()
    weights = values.detach().abs() + 0.1 if kind == "weights" else None
    options = {"interpolation": interpolation, "temperature": 0.3, "within": kind == "within"}
    if (kind == "within") == (interpolation == "inverse") and kind != "plain":
        return  # what the dense operator refuses, too
    if kind == "weights" and interpolation != "inverse":
        return
    q = [0.1, 0.5, 0.9]
    found = so.ragged.soft_quantile(values, offsets, q, weights=weights, **options)
    own = [None] * len(_LENGTHS) if weights is None else _rows(weights, offsets)
    each = [
        so.soft_quantile(x, q, weights=w, **options)
        for x, w in zip(_rows(values, offsets), own, strict=True)
    ]
    _agrees(found.T.reshape(-1), each)
    there = found.isfinite()
    (slope,) = torch.autograd.grad(found[there].sum(), values)
    total = sum(row[row.isfinite()].sum() for row in each)
    torch.testing.assert_close(slope, torch.autograd.grad(total, values)[0])
    hard = so.ragged.hard.quantile(values, offsets, q, interpolation=interpolation, weights=weights)
    each = [
        so.hard.quantile(x, q, interpolation=interpolation, weights=w)
        for x, w in zip(_rows(values, offsets), own, strict=True)
    ]
    _agrees(hard.T.reshape(-1), each)
    if weights is not None:
        rows = so.soft_quantile(
            jagged(values, offsets), q, weights=jagged(weights, offsets), **options
        )
        torch.testing.assert_close(rows, found, equal_nan=True)


@pytest.mark.parametrize("m", [2, 7])
@pytest.mark.parametrize("method", ["laplace", "cauchy"])
def test_sums_and_their_inverses(m, method):
    values, offsets = ragged(_LENGTHS)
    values[5], values[8] = math.inf, -math.inf
    values.requires_grad_()
    points = torch.linspace(-2, 2, m, dtype=torch.float64)
    settings = {"method": method, "temperature": 0.4}
    found = so.ragged.fsum(values, offsets, points, **settings)
    each = [so.fsum(x, points, **settings) for x in _rows(values, offsets)]
    _agrees(found.reshape(-1), each)
    slopes = [torch.autograd.grad(v.square().sum(), values)[0] for v in (found, torch.cat(each))]
    torch.testing.assert_close(*slopes)
    torch.testing.assert_close(so.fsum(jagged(values, offsets), points, **settings), found)
    own = points + torch.arange(len(_LENGTHS)).unsqueeze(-1) / 10
    own[0, 0], own[3, 1], own[4, 0] = math.inf, -math.inf, math.nan
    found = so.ragged.fsum(values, offsets, own, **settings)
    _agrees(found.reshape(-1), [
        so.fsum(x, t, **settings) for x, t in zip(_rows(values, offsets), own, strict=True)
    ])  # fmt: skip
    levels = torch.linspace(0.2, 2.8, m, dtype=torch.float64)
    found = so.ragged.fsum_inverse(values, offsets, levels, **settings)
    each = [
        so.fsum_inverse(x, levels.clamp(max=len(x)), **settings) for x in _rows(values, offsets)
    ]
    _agrees(found.reshape(-1), each)
    there = found.isfinite()
    whole = torch.stack(each)
    slopes = [torch.autograd.grad(v[there].sum(), values)[0] for v in (found, whole)]
    torch.testing.assert_close(*slopes)
    again = so.fsum_inverse(jagged(values, offsets), levels, **settings)
    torch.testing.assert_close(again, found, equal_nan=True)


# ---- losses --------------------------------------------------------------------------------------


@pytest.mark.parametrize("top1", ["softmax", "mixed_softmax", "operator", "softmax_of_m"])
@pytest.mark.parametrize("p_k", [[1.0], [0.25, 0, 0.75], [0, 0, 1.0]], ids=str)
def test_top_k_losses(top1, p_k):
    values, offsets = ragged((3, 5, 17, 40, 2, 9))
    values.requires_grad_()
    target = torch.tensor([2, 0, 11, -100, 1, 4])
    options = {"top1": top1, "temperature": 0.3}
    found = so.losses.top_k_cross_entropy(jagged(values, offsets), target, p_k, **options)
    each = []
    for row, y in zip(_rows(values, offsets), target, strict=True):
        if y >= 0:
            few = torch.cat([row, row.new_full((max(3 - len(row), 0),), -math.inf)])
            each.append(so.losses.top_k_cross_entropy(few, y, p_k, **options))
    expected = sum(each) / 5
    torch.testing.assert_close(found, expected)
    slopes = [torch.autograd.grad(loss, values)[0] for loss in (found, expected)]
    torch.testing.assert_close(*slopes)
    none = so.losses.top_k_cross_entropy(
        jagged(values, offsets), target, p_k, reduction="none", **options
    )
    assert none[3] == 0
    torch.testing.assert_close(none.sum(), found * 5)


def test_top_k_losses_with_other_methods_and_weights_of_samples():
    values, offsets = ragged((4, 5, 6))
    target, scores = torch.tensor([3, 0, 2]), jagged(values, offsets)
    p_k = torch.tensor([[0.5, 0.5], [0.0, 1.0], [1.0, 0.0]], dtype=torch.float64)
    criterion = so.losses.TopKCrossEntropyLoss([0.5, 0.5], temperature=0.3, top1="operator")
    each = [
        criterion(row.unsqueeze(0), y.unsqueeze(0), p.unsqueeze(0))
        for row, y, p in zip(_rows(values, offsets), target, p_k, strict=True)
    ]
    torch.testing.assert_close(criterion(scores, target, p_k), sum(each) / 3)
    for method in ("cauchy", "renormalized_sigmoid", "neuralsort"):
        call = partial(so.losses.top_k_cross_entropy, p_k=[0, 1.0], method=method, temperature=0.3)
        each = [call(row, y) for row, y in zip(_rows(values, offsets), target, strict=True)]
        torch.testing.assert_close(call(scores, target), sum(each) / 3)
    found = so.losses.top_k_cross_entropy(scores, target, [0.0, 1.0], temperature="auto")
    assert found.isfinite()


@pytest.mark.parametrize("top1", ["softmax", "softmax_of_m", "mixed_softmax",
                                  "mixed_softmax_of_m", "operator"])  # fmt: skip
@pytest.mark.parametrize(("m", "label_smoothing"), [(3, 0.0), (None, 0.2), (3, 0.2)])
def test_top_k_loss_of_few_and_of_smoothed_candidates(top1, m, label_smoothing):
    """As every row has it alone; the right one is among the m also where it is not."""
    values, offsets = ragged((5, 9, 4, 17, 6))
    target = torch.tensor([0, 8, 2, 3, 5])
    options = {"temperature": 0.4, "top1": top1, "m": m, "label_smoothing": label_smoothing}
    call = partial(so.losses.top_k_cross_entropy, p_k=[0.3, 0.0, 0.7], reduction="none", **options)
    values.requires_grad_()
    found = call(jagged(values, offsets), target)
    rows = zip(_rows(values, offsets), target, strict=True)
    each = torch.stack([call(row.unsqueeze(0), y.unsqueeze(0))[0] for row, y in rows])
    torch.testing.assert_close(found, each)
    ours, theirs = (torch.autograd.grad(loss.sum(), values)[0] for loss in (found, each))
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("method", ["laplace", "logistic", "uniform"])
@pytest.mark.parametrize("k", [None, 2])
def test_fenchel_young(method, k):
    values, offsets = ragged((3, 0, 5, 17, 2, 9))
    values[4] = -math.inf
    values.requires_grad_()
    hot = so.ragged.hard.topk(torch.randn(values.shape, dtype=torch.float64).masked_fill(
        values == -math.inf, -math.inf), offsets, 2)  # fmt: skip
    options = {"method": method, "temperature": 0.7, "k": k, "reduction": "none"}
    found = so.losses.fenchel_young(jagged(values, offsets), jagged(hot, offsets), **options)
    each = [
        so.losses.fenchel_young(x, y, **_options(options, x) if k else options)
        for x, y in zip(_rows(values, offsets), _rows(hot, offsets), strict=True)
    ]
    _agrees(found, each)
    (slope,) = torch.autograd.grad(found.sum(), values)
    p = so.ragged.soft_topk(values.detach(), offsets, 2, method=method, temperature=0.7)
    torch.testing.assert_close(slope, p - hot)
    mean = so.losses.fenchel_young(
        jagged(values, offsets), jagged(hot, offsets), **options | {"reduction": "mean"}
    )
    torch.testing.assert_close(mean, found.sum() / 5)
    auto = {**options, "temperature": "auto"}
    assert (
        so.losses.fenchel_young(jagged(values, offsets), jagged(hot, offsets), **auto)
        .isfinite()
        .all()
    )


@pytest.mark.parametrize("make", [so.losses.NDCGLoss, partial(so.losses.PrecisionAtK, 4)])
def test_losses_of_lists_find_a_temperature(make):
    values, offsets = ragged(_LENGTHS)
    relevance = (values.cos() > 0).long()
    criterion = make(temperature="auto")
    loss = criterion(jagged(values, offsets), jagged(relevance, offsets))
    assert criterion.calibrated
    fixed = make(temperature=float(criterion.temperature))
    torch.testing.assert_close(loss, fixed(jagged(values, offsets), jagged(relevance, offsets)))


def test_what_rows_of_different_lengths_cannot_have():
    values, offsets = ragged((3, 2))
    scores, target = jagged(values, offsets), torch.tensor([0, 1])
    loss = partial(so.losses.top_k_cross_entropy, scores, target)
    with pytest.raises(TypeError, match="matrices of different sizes"):
        so.soft_permutation(scores)
    with pytest.raises(ValueError, match=r"m must be .* 2, but got 1"):
        loss([0.0, 1.0], m=1)
    with pytest.raises(ValueError, match="weight must be None for jagged scores, whose rows have"):
        loss([1.0], weight=torch.ones(3))
    with pytest.raises(ValueError, match="label_smoothing must be between 0 and 1, but got 2"):
        loss([1.0], label_smoothing=2)
    with pytest.raises(ValueError, match=r"p_k must have the shape \('K',\) for jagged scores"):
        loss(torch.ones(3, 1))
    with pytest.raises(ValueError, match=r"target must be a place in its row, .* but got 2"):
        so.losses.top_k_cross_entropy(scores, torch.tensor([0, 2]), [1.0])
    with pytest.raises(ValueError, match=r"target must have the shape \(2,\)"):
        so.losses.top_k_cross_entropy(scores, torch.tensor([0]), [1.0])
    with pytest.raises(ValueError, match="levels must be >= 0, but got -1"):
        so.fsum_inverse(scores, torch.tensor([-1.0]))
    with pytest.raises(ValueError, match="method must be one of"):
        loss([0, 1.0], method="lapsum")

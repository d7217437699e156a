"""Jagged nested tensors: operators and losses take them as they are."""

import pytest
import torch

import softorder as so
from tests.ragged.rows import jagged, padded, ragged

_PER_SCORE = {
    "soft_topk": (so.soft_topk, so.ragged.soft_topk, {"k": 2}),
    "log_soft_topk": (so.log_soft_topk, so.ragged.log_soft_topk, {"k": 2}),
    "soft_rank": (so.soft_rank, so.ragged.soft_rank, {"descending": True}),
    "soft_sort": (so.soft_sort, so.ragged.soft_sort, {"method": "uniform"}),
    "hard.topk": (so.hard.topk, so.ragged.hard.topk, {"k": 2}),
    "hard.rank": (so.hard.rank, so.ragged.hard.rank, {}),
    "hard.sort": (so.hard.sort, so.ragged.hard.sort, {}),
}
_PER_ROW = {
    "soft_quantile": (so.soft_quantile, so.ragged.soft_quantile, {"q": 0.3}),
    "soft_median": (so.soft_median, so.ragged.soft_median, {}),
    "hard.quantile": (so.hard.quantile, so.ragged.hard.quantile, {"q": 0.3}),
}


@pytest.mark.parametrize("operator", _PER_SCORE)
def test_results_have_the_shape_of_the_scores(operator):
    ours, theirs, settings = _PER_SCORE[operator]
    values, offsets = ragged()
    scores, mask = jagged(values, offsets), values > -1
    result = ours(scores, mask=jagged(mask, offsets), **settings)
    expected = theirs(values, offsets, mask=mask, **settings)
    assert result.shape == scores.shape
    assert (result * scores).values().equal(expected * values)
    assert result.values().equal(expected)


@pytest.mark.parametrize("operator", _PER_ROW)
def test_results_of_rows(operator):
    ours, theirs, settings = _PER_ROW[operator]
    values, offsets = ragged()
    result, expected = (
        ours(jagged(values, offsets), **settings),
        theirs(values, offsets, **settings),
    )
    torch.testing.assert_close(result, expected, equal_nan=True, rtol=0, atol=0)
    kept = ours(jagged(values, offsets), keepdim=True, **settings)
    assert kept.shape == (*result.shape, 1)


def test_gradients_and_a_graph():
    values, offsets = ragged((3, 0, 2, 7))
    k = torch.tensor([1.0, 2.0, 1.5, 3.0])

    def loss(values):
        return (so.soft_topk(jagged(values, offsets), k) ** 2).values().sum()

    given = values.clone().requires_grad_()
    expected = so.ragged.soft_topk(given, offsets, k).square().sum()
    (expected,) = torch.autograd.grad(expected, given)
    torch.testing.assert_close(torch.autograd.grad(loss(given), given)[0], expected)
    compiled = torch.compile(so.soft_topk, fullgraph=True, backend="aot_eager")
    leaf = jagged(values, offsets).requires_grad_()
    (compiled(leaf, k).values() ** 2).sum().backward()
    torch.testing.assert_close(leaf.grad.values(), expected)


def test_holes_between_rows():
    """What `torch.nested.narrow` makes has lengths beside its offsets."""
    matrix = torch.randn(3, 6, generator=torch.Generator().manual_seed(0))
    start, length = torch.tensor([0, 1, 2]), torch.tensor([2, 0, 3])
    scores = torch.nested.narrow(matrix, 1, start, length, layout=torch.jagged)
    rows = so.soft_rank(scores).unbind()
    for row, (one, begin, size) in enumerate(zip(rows, start, length, strict=True)):
        x = matrix[row, begin : begin + size]
        torch.testing.assert_close(one, so.soft_rank(x))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("method", ["laplace", "uniform", "logistic"])
def test_permutation_cross_entropy(method, reduction):
    values, offsets = ragged((3, 0, 1, 17, 40))
    generator = torch.Generator().manual_seed(0)
    lengths = offsets.diff().tolist()
    target = torch.cat([torch.randperm(n, generator=generator) for n in lengths])
    target[4] = -100
    places, mask = padded(target, offsets)
    settings = {"method": method, "temperature": 30.0, "reduction": reduction}
    found = []
    for wanted, own in ((jagged(target, offsets), None), (places, mask)):
        given = values.clone().requires_grad_()
        scores = jagged(given, offsets) if own is None else padded(given, offsets)[0]
        loss = so.losses.permutation_cross_entropy(scores, wanted, mask=own, **settings)
        if reduction == "none":
            loss = loss.values() if own is None else loss[mask]
        found.append((loss, *torch.autograd.grad(loss.square().sum(), given)))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize(
    "criterion",
    [
        so.losses.NDCGLoss(3),
        so.losses.MRRLoss(),
        so.losses.PrecisionAtK(4),
        so.losses.RecallAtK(2, reduction="sum"),
        so.losses.SpearmanLoss(reduction="none"),
        so.losses.ListwiseCE(temperature=2.0),
    ],
    ids=lambda criterion: type(criterion).__name__,
)
def test_losses_of_lists(criterion):
    values, offsets = ragged((3, 0, 1, 17, 40, 2))
    relevance = torch.randint(3, values.shape, generator=torch.Generator().manual_seed(0))
    found = []
    for turn in (0, 1):
        given = values.clone().requires_grad_()
        if turn == 0:
            loss = criterion(jagged(given, offsets), jagged(relevance, offsets))
        else:
            matrix, mask = padded(given, offsets)
            loss = criterion(matrix, padded(relevance, offsets)[0], mask)
        found.append((loss, *torch.autograd.grad(loss.sum(), given)))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_wrong_ones():
    values, offsets = ragged((3, 2))
    scores = jagged(values, offsets)
    with pytest.raises(ValueError, match="dim must be 1 or -1, the ragged axis"):
        so.soft_rank(scores, dim=0)
    with pytest.raises(TypeError, match="dim of a jagged tensor must be an int"):
        so.soft_rank(scores, dim=None)
    with pytest.raises(ValueError, match=r"shape \(rows, \*\)"):
        so.soft_rank(jagged(values.unsqueeze(-1), offsets), dim=1)
    with pytest.raises(TypeError, match="mask must be a jagged tensor, as the scores are"):
        so.soft_rank(scores, mask=torch.ones(2, 3, dtype=torch.bool))
    other = jagged(values > 0, torch.tensor([0, 1, 5]))
    with pytest.raises(ValueError, match=r"rows of the lengths of the scores, \[3, 2\], but got"):
        so.soft_rank(scores, mask=other)
    with pytest.raises(TypeError, match="dense tensor, but got one of layout jagged"):
        so.soft_permutation(scores)

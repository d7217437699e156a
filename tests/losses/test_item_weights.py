"""Weights of elements in losses of lists: oracles, copies of elements, axes and ragged lists."""

import math
from functools import partial

import pytest
import torch

import softorder as so
from tests.oracles import weighted_lists as oracle
from tests.ragged.rows import jagged

_L = so.losses
_COLD = 1e-8

#: Losses, and the same of one list by an oracle.
_ORACLES = {
    "pairs": (_L.PairwiseLoss, oracle.pairwise),
    "hinge": (partial(_L.PairwiseLoss, "hinge"), partial(oracle.pairwise, kind="hinge")),
    "net": (_L.ListNetLoss, partial(oracle.list_net, proportional=False)),
    "softmax": (
        partial(_L.ListNetLoss, target="proportional"),
        partial(oracle.list_net, proportional=True),
    ),
    "breslow": (
        partial(_L.ListMLELoss, ties="breslow"),
        partial(oracle.partial_likelihood, ties="breslow"),
    ),
    "efron": (_L.ListMLELoss, partial(oracle.partial_likelihood, ties="efron")),
    "ap": (partial(_L.SmoothAPLoss, temperature=1.0), lambda *a: 1 - oracle.smooth_ap(*a)),
    "smooth recall": (
        partial(_L.SmoothRecallLoss, 3, temperature=1.0),
        lambda *a: 1 - oracle.smooth_recall(*a, 3),
    ),
    "approximate ndcg": (_L.ApproxNDCGLoss, lambda *a: 1 - oracle.approx_ndcg(*a)),
    "lambda": (partial(_L.LambdaLoss, "lambdarank"), oracle.lambda_rank),
    "ndcg": (partial(_L.NDCGLoss, temperature=_COLD), lambda *a: 1 - oracle.ndcg(*a)),
    "ndcg@3": (partial(_L.NDCGLoss, 3, temperature=_COLD), lambda *a: 1 - oracle.ndcg(*a, 3)),
    "neural ndcg": (
        partial(_L.NeuralNDCGLoss, 3, gain="linear", temperature=_COLD),
        lambda *a: 1 - oracle.ndcg(*a, 3),
    ),
    "mrr": (partial(_L.MRRLoss, temperature=_COLD), lambda *a: 1 - oracle.mrr(*a)),
    "precision": (
        partial(_L.PrecisionAtK, 3, temperature=_COLD),
        lambda *a: 1 - oracle.precision(*a, 3),
    ),
    "short": (
        partial(_L.PrecisionAtK, 12, temperature=_COLD),
        lambda *a: 1 - oracle.precision(*a, 12),
    ),
    "recall": (partial(_L.RecallAtK, 3, temperature=_COLD), lambda *a: 1 - oracle.recall(*a, 3)),
    "spearman": (partial(_L.SpearmanLoss, temperature=_COLD), lambda *a: 1 - oracle.spearman(*a)),
}
_MAKERS = {name: make for name, (make, _) in _ORACLES.items()} | {
    "listwise": _L.ListwiseCE,
    "mle@3": partial(_L.ListMLELoss, 3),
}
_every = pytest.mark.parametrize("name", _MAKERS)
_SOFT = [name for name in _MAKERS if name not in ("ndcg", "mrr", "recall")]  # cold, and no more
#: An element of weight 2 is two elements, one of weight 0 is none.
_COPIES = ("pairs", "hinge", "net", "softmax", "breslow", "ap", "smooth recall")


def _lists(rows=5, n=8, seed=0):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(rows, n, dtype=torch.float64, generator=generator)
    relevance = torch.randint(4, (rows, n), generator=generator)
    relevance[:, 0], relevance[:, 1] = 3, 0
    weights = torch.rand(rows, n, dtype=torch.float64, generator=generator) * 3
    weights[0, 2] = 0
    return scores, relevance, weights


@pytest.mark.parametrize("name", _ORACLES)
def test_against_sums_written_out(name):
    make, expected = _ORACLES[name]
    scores, relevance, weights = _lists()
    found = make(reduction="none")(scores, relevance, weights=weights)
    for row in range(len(scores)):
        one = expected(*(v[row].tolist() for v in (scores, relevance, weights)))
        assert found[row].item() == pytest.approx(one, rel=1e-9, abs=1e-7)


def test_listwise_is_a_mean_by_weights():
    scores, relevance, weights = _lists()
    p = so.soft_permutation(scores, descending=True)
    found = _L.ListwiseCE(reduction="none")(scores, relevance, weights=weights)
    for row in range(len(scores)):
        order = relevance[row].sort(descending=True).values
        mass = torch.stack([p[row, order == relevance[row, i], i].sum() for i in range(8)])
        expected = -(weights[row] * mass.log()).sum() / weights[row].sum()
        torch.testing.assert_close(found[row], expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", _COPIES)
def test_as_if_the_element_were_there_so_many_times(name):
    scores, relevance, _ = _lists(1)
    times = torch.tensor([2, 1, 0, 3, 1, 2, 0, 1])
    criterion = _MAKERS[name]()
    found = criterion(scores, relevance, weights=times)
    copies = (v.repeat_interleave(times, -1) for v in (scores, relevance))
    torch.testing.assert_close(found, criterion(*copies))


@_every
def test_weights_of_one_change_nothing(name):
    scores, relevance, _ = _lists()
    criterion = _MAKERS[name](reduction="none")
    found = criterion(scores, relevance, weights=torch.ones(8))
    torch.testing.assert_close(found, criterion(scores, relevance))


@_every
def test_padding_axes_and_ragged_lists(name):
    scores, relevance, weights = _lists(4)
    criterion = _MAKERS[name]()
    expected = criterion(scores, relevance, weights=weights)
    nothing = torch.full((4, 3), math.nan, dtype=torch.float64)
    padded = [torch.cat([v[:, :4], nothing, v[:, 4:]], -1) for v in (scores, relevance, weights)]
    mask = ~padded[0].isnan()
    found = criterion(padded[0], padded[1], mask, None, padded[2])
    torch.testing.assert_close(found, expected)
    moved = _MAKERS[name](dim=(0, 2))
    turned = [v.reshape(4, 2, 4).transpose(0, 1) for v in (scores, relevance, weights)]
    torch.testing.assert_close(moved(*turned[:2], weights=turned[2]), expected)
    offsets = torch.tensor([0, 8, 14, 24, 32])
    lists = [jagged(v.flatten(), offsets) for v in (scores, relevance, weights)]
    each = [v.flatten().tensor_split(offsets[1:-1]) for v in (scores, relevance, weights)]
    total = sum(criterion(x, y, weights=w) for x, y, w in zip(*each, strict=True)) / 4
    torch.testing.assert_close(criterion(*lists[:2], weights=lists[2]), total)


@pytest.mark.parametrize("name", _SOFT)
def test_gradients(name):
    scores, relevance, weights = _lists(2, 5)
    criterion = _MAKERS[name](temperature=0.7)
    call = partial(criterion, relevance=relevance, weights=weights)
    torch.autograd.gradcheck(call, (scores.requires_grad_(),))


@_every
def test_lists_without_weight_do_not_count(name):
    scores, relevance, weights = _lists()
    weights[1] = 0
    criterion, kept = _MAKERS[name](), [0, 2, 3, 4]
    scores.requires_grad_()
    loss = criterion(scores, relevance, weights=weights)
    if name != "short":  # empty places count as misses
        torch.testing.assert_close(
            loss, criterion(scores[kept], relevance[kept], weights=weights[kept])
        )
    (gradient,) = torch.autograd.grad(loss, scores)
    assert gradient.isfinite().all()
    assert (gradient[1] == 0).all()


def test_certain_and_absent_scores_have_weighted_ranks():
    scores = torch.tensor([math.inf, 1.0, -math.inf, math.inf, 0.0], dtype=torch.float64)
    weights = torch.tensor([2.0, 1.0, 5.0, 1.0, 0.5], dtype=torch.float64)
    relevance = torch.tensor([1, 1, 1, 0, 0])
    found = _L.SmoothAPLoss(temperature=_COLD)(scores, relevance, weights=weights)
    first = (0.5 + 2 / 2) / (0.5 + 3 / 2)  # shares its places with the other certain one
    second = (0.5 + 2 + 0.5) / (0.5 + 3 + 0.5)
    assert found.item() == pytest.approx(1 - (2 * first + second) / 3)


def test_items_of_retrieval():
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(9, 4, dtype=torch.float64, generator=generator)
    labels, weights = torch.arange(9) % 3, torch.arange(9.0)
    criterion = _L.SmoothAPLoss(temperature=0.5, reduction="sum")
    rest = points[:7], labels[:7]
    whole = _L.retrieval_loss(criterion, points, labels, *rest, weights=weights[:7])
    parts = _L.retrieval_loss(criterion, points, labels, *rest, weights=weights[:7], chunk=2)
    wanted = labels.unsqueeze(-1) == labels[:7]
    direct = criterion(points @ points[:7].mT, wanted, weights=weights[:7]) / 9
    torch.testing.assert_close(whole, direct)
    torch.testing.assert_close(parts, direct)
    one = labels == 0
    only = _L.retrieval_loss(criterion, points, labels, points, labels, weights=one.double())
    mine = points[one] @ points.mT, one.expand(3, 9)  # other queries have nothing of weight to find
    torch.testing.assert_close(only * 3, criterion(*mine, weights=one.double()))


def test_wrong_weights():
    scores, relevance, weights = _lists()
    criterion = _L.PairwiseLoss()
    with pytest.raises(ValueError, match=r"weights must be finite and >= 0, but got -1"):
        criterion(scores, relevance, weights=-torch.ones(8))
    with pytest.raises(ValueError, match=r"weights must broadcast to the shape of scores, \(5, 8"):
        criterion(scores, relevance, weights=weights[:, :7])
    with pytest.raises(TypeError, match=r"weights must be a tensor or None, but got float"):
        criterion(scores, relevance, weights=1.0)
    with pytest.raises(ValueError, match=r"method must be one of"):
        _L.SmoothAPLoss(method="permutahedron")(scores, relevance, weights=weights)
    rows = jagged(scores.flatten(), torch.tensor([0, 10, 40]))
    labels = jagged(relevance.flatten(), torch.tensor([0, 10, 40]))
    with pytest.raises(TypeError, match=r"weights must be a jagged tensor, as the scores are"):
        criterion(rows, labels, weights=weights)

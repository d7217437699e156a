"""Ranking losses: the metrics of sklearn and scipy as τ → 0, and lists with padding."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn import metrics

import softorder as so

_L = so.losses
_COLD = 1e-7


def _problem(rows=6, n=8, seed=0, levels=4):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(rows, n, dtype=torch.float64, generator=generator)
    return scores, torch.randint(levels, (rows, n), generator=generator)


_MAKERS = {
    "ndcg": lambda **o: _L.NDCGLoss(**o),
    "ndcg@3": lambda **o: _L.NDCGLoss(3, gain="exponential", **o),
    "mrr": lambda **o: _L.MRRLoss(**o),
    "mrr@3": lambda **o: _L.MRRLoss(3, **o),
    "precision@3": lambda **o: _L.PrecisionAtK(3, **o),
    "recall@3": lambda **o: _L.RecallAtK(3, **o),
    "spearman": lambda **o: _L.SpearmanLoss(**o),
    "listwise": lambda **o: _L.ListwiseCE(**o),
}
_those_here = pytest.mark.parametrize("make", list(_MAKERS.values()), ids=list(_MAKERS))
_MAKERS |= {  # test_list_losses.py has more on these
    "neural ndcg": lambda **o: _L.NeuralNDCGLoss(**o),
    "neural ndcg@3": lambda **o: _L.NeuralNDCGLoss(3, gain="linear", **o),
    "approximate ndcg": lambda **o: _L.ApproxNDCGLoss(**o),
    "smooth ap": lambda **o: _L.SmoothAPLoss(**o),
    "neural sort": lambda method=None, **o: _L.NeuralNDCGLoss(method="neuralsort", **o),
    "smooth recall": lambda **o: _L.SmoothRecallLoss((1, 3), **o),
    "mle": lambda method=None, **o: _L.ListMLELoss(**o),
    "mle@3": lambda method=None, **o: _L.ListMLELoss(3, ties="breslow", **o),
    "list net": lambda method=None, **o: _L.ListNetLoss(**o),
    "softmax": lambda method=None, **o: _L.ListNetLoss(target="proportional", **o),
    "pairs": lambda method=None, **o: _L.PairwiseLoss(**o),
    "hinge": lambda method=None, **o: _L.PairwiseLoss("hinge", **o),
    "lambda": lambda method=None, **o: _L.LambdaLoss(**o),
    "lambda@3": lambda method=None, **o: _L.LambdaLoss("lambdarank", 3, **o),
}
_every = pytest.mark.parametrize("make", _MAKERS.values(), ids=_MAKERS.keys())


@pytest.mark.parametrize("k", [None, 1, 3, 8, 20])
@pytest.mark.parametrize("gain", ["linear", "exponential"])
def test_ndcg_becomes_sklearns(k, gain):
    scores, relevance = _problem(20)
    found = _L.NDCGLoss(k, gain=gain, temperature=_COLD, reduction="none")(scores, relevance)
    gains = relevance if gain == "linear" else 2**relevance - 1
    for row in range(20):
        truth = metrics.ndcg_score(gains[row : row + 1], scores[row : row + 1], k=k)
        assert found[row].item() == pytest.approx(1 - truth, abs=1e-9)


@pytest.mark.parametrize("k", [None, 1, 3])
def test_mrr_becomes_the_mean_reciprocal_rank(k):
    scores, relevance = _problem(20, levels=2)
    relevance[:, 0] = 1
    found = _L.MRRLoss(k, temperature=_COLD, reduction="none")(scores, relevance)
    for row in range(20):
        ranks = stats.rankdata(-scores[row])[relevance[row] > 0]
        truth = 0 if k and ranks.min() > k else 1 / ranks.min()
        assert found[row].item() == pytest.approx(1 - truth, abs=1e-9)
    one = torch.nn.functional.one_hot(relevance.argmax(-1), 8)
    truth = metrics.label_ranking_average_precision_score(one, scores)
    found = _L.MRRLoss(temperature=_COLD)(scores, one)
    assert found.item() == pytest.approx(1 - truth, abs=1e-9)


@pytest.mark.parametrize("k", [1, 3, 8])
def test_precision_and_recall_become_sklearns(k):
    scores, relevance = _problem(20, levels=3)
    relevance[:, 0] = 1
    options = {"temperature": _COLD, "reduction": "none"}
    precision = _L.PrecisionAtK(k, **options)(scores, relevance)
    recall = _L.RecallAtK(k, **options)(scores, relevance)
    chosen = so.hard.topk(scores, k)
    for row in range(20):
        pair = (relevance[row] > 0).int(), chosen[row]
        assert 1 - precision[row].item() == pytest.approx(metrics.precision_score(*pair), abs=1e-9)
        assert 1 - recall[row].item() == pytest.approx(metrics.recall_score(*pair), abs=1e-9)


@pytest.mark.parametrize("ties", [False, True])
def test_spearman_becomes_scipys(ties):
    scores, relevance = _problem(20)
    if ties:
        scores = scores.round()
    found = _L.SpearmanLoss(temperature=_COLD, reduction="none")(scores, relevance)
    for row in range(20):
        truth = stats.spearmanr(scores[row], relevance[row]).statistic
        assert found[row].item() == pytest.approx(1 - truth, abs=1e-9)


@pytest.mark.parametrize("method", ["laplace", "logistic", "uniform"])
def test_listwise_adds_up_the_rows_of_its_grade(kernel, method):
    scores, relevance = _problem(5, 7, levels=3)
    options = {"method": method, "temperature": 8.0}
    found = _L.ListwiseCE(reduction="none", **options)(scores, relevance)
    p = so.soft_permutation(scores, descending=True, **options)
    for row in range(5):
        order = relevance[row].sort(descending=True).values
        mass = torch.stack([p[row, order == relevance[row, i], i].sum() for i in range(7)])
        torch.testing.assert_close(found[row], -mass.log().mean(), rtol=1e-9, atol=1e-12)


def test_listwise_is_the_permutation_loss_without_ties():
    scores, _ = _problem()
    relevance = torch.rand(6, 8, generator=torch.Generator().manual_seed(1))
    place = relevance.argsort(descending=True).argsort()
    expected = _L.permutation_cross_entropy(scores, place, temperature=0.3, descending=True)
    torch.testing.assert_close(_L.ListwiseCE(temperature=0.3)(scores, relevance), expected)


def test_listwise_knows_the_right_order_and_certain_scores():
    relevance = torch.tensor([2, 0, 1, 1, 0])
    criterion = _L.ListwiseCE(temperature=1e-3)
    assert criterion(torch.tensor([4.0, 1.0, 2.0, 3.0, 0.0]), relevance) < 1e-6
    assert criterion(torch.tensor([4.0, 2.5, 2.0, 3.0, 0.0]), relevance) > 10
    assert criterion(torch.tensor([math.inf, 1.0, 2.0, 3.0, 0.0]), relevance) < 1e-6
    certain = torch.tensor([math.inf, 1.0, math.inf, math.inf, 0.0])
    losses = criterion(certain, relevance)
    assert losses.item() == pytest.approx((math.log(3) + 2 * math.log(1.5)) / 5, abs=1e-6)
    assert criterion(torch.zeros(5), torch.zeros(5)) == 0  # any order will do


@_every
def test_gradcheck(make):
    scores, relevance = _problem(2, 5)
    relevance[:, :2] = torch.tensor([1, 0])
    tau = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)

    def call(scores, tau):
        criterion = make(method="logistic")
        criterion.temperature = tau
        return criterion(scores, relevance)

    torch.autograd.gradcheck(call, (scores.requires_grad_(), tau))


@_every
def test_padding_changes_nothing(make):
    scores, relevance = _problem()
    criterion = make(temperature=0.5, reduction="none")
    expected = criterion(scores, relevance)
    nothing = torch.full((6, 3), math.nan, dtype=torch.float64)
    padded = torch.cat([scores[:, :4], nothing, scores[:, 4:]], -1).requires_grad_()
    mask = ~padded.isnan()
    labels = torch.cat([relevance[:, :4], nothing.nan_to_num(9), relevance[:, 4:]], -1)
    found = criterion(padded, labels, mask)
    torch.testing.assert_close(found, expected)
    labels[~mask] = math.nan
    torch.testing.assert_close(criterion(padded, labels, mask), expected)
    (gradient,) = torch.autograd.grad(found.sum(), padded)
    assert gradient.isfinite().all()
    assert (gradient[~mask] == 0).all()
    assert (gradient != 0).any()


@_every
def test_lists_without_documents_do_not_count(make):
    scores, relevance = _problem()
    relevance[:, 0], relevance[:, 1] = 2, 0
    mask = torch.ones(6, 8, dtype=torch.bool)
    mask[1] = False
    scores.requires_grad_()
    loss = make(temperature=0.5)(scores, relevance, mask)
    keep = [0, 2, 3, 4, 5]
    torch.testing.assert_close(loss, make(temperature=0.5)(scores[keep], relevance[keep]))
    (gradient,) = torch.autograd.grad(loss, scores)
    assert gradient.isfinite().all()
    assert (gradient[1] == 0).all()
    none = torch.zeros_like(mask)
    assert make(reduction="sum")(scores, relevance, none) == 0
    assert make()(scores, relevance, none).isnan()  # the mean of nothing
    empty = torch.zeros(3, 0)
    assert make(reduction="none")(empty, empty).tolist() == [0, 0, 0]


@pytest.mark.parametrize("name", ["ndcg", "ndcg@3", "mrr", "mrr@3", "recall@3", "spearman"])
def test_lists_without_anything_relevant_do_not_count(name):
    scores, relevance = _problem()
    relevance[:, 0], relevance[:, 1], relevance[2] = 2, 0, 0
    keep = [0, 1, 3, 4, 5]
    criterion = _MAKERS[name](temperature=0.5)
    scores.requires_grad_()
    loss = criterion(scores, relevance)
    torch.testing.assert_close(loss, criterion(scores[keep], relevance[keep]))
    assert torch.autograd.grad(loss, scores)[0].isfinite().all()


def test_precision_counts_them_as_misses_and_empty_places_too():
    scores, relevance = _problem()
    relevance[:] = 0
    assert _L.PrecisionAtK(3)(scores, relevance) == 1
    short = _L.PrecisionAtK(3)(torch.zeros(2), torch.ones(2))
    assert short.item() == pytest.approx(1 / 3)


@_every
def test_any_axis_and_dtype(make):
    scores, relevance = _problem()
    expected = make(temperature=0.5, reduction="none")(scores, relevance)
    moved = make(temperature=0.5, reduction="none", dim=0)(scores.T, relevance.T)
    torch.testing.assert_close(moved, expected)
    half = make(temperature=0.5, reduction="none")(scores.bfloat16(), relevance)
    assert half.dtype == torch.bfloat16
    with torch.autocast("cpu", dtype=torch.bfloat16):
        auto = make(temperature=0.5, reduction="none")(scores.float(), relevance)
    torch.testing.assert_close(auto, expected.float(), rtol=1e-4, atol=1e-5)


@_those_here
def test_learns_an_order(make):
    relevance = torch.tensor([0, 0, 3, 0, 2, 0, 1, 0])
    scores = torch.linspace(0.1, -0.1, 8).requires_grad_()
    criterion, judge = make(temperature=0.3), make(temperature=_COLD)
    optimizer = torch.optim.Adam([scores], lr=0.05)
    before = judge(scores, relevance).item()
    for _ in range(150):
        optimizer.zero_grad()
        criterion(scores, relevance).backward()
        optimizer.step()
    assert judge(scores, relevance).item() < min(before, 0.35)


def test_spearman_learns_from_equal_scores():
    scores = torch.zeros(5, requires_grad=True)
    loss = _L.SpearmanLoss()(scores, torch.arange(5))
    (gradient,) = torch.autograd.grad(loss, scores)
    assert loss == 1
    assert (gradient.diff() < 0).all()


def test_a_temperature_may_learn():
    criterion = _L.NDCGLoss(learnable_temperature=True)
    scores, relevance = _problem()
    criterion(scores, relevance).backward()
    assert criterion.log_temperature.grad.isfinite()


def test_modules_say_what_they_are():
    assert repr(_L.NDCGLoss(5, temperature=0.2)).startswith(
        "NDCGLoss(k=5, method='laplace', temper"
    )
    assert repr(_L.RecallAtK(5)).startswith("RecallAtK(k=5, method='laplace', temperature=1.0")
    assert repr(_L.SpearmanLoss()).startswith("SpearmanLoss(method='laplace'")
    assert repr(_L.MRRLoss(2)).startswith("MRRLoss(k=2, ")


def test_other_methods_serve():
    scores, relevance = _problem()
    for method in ("permutahedron", "softsort", "sinkhorn"):
        assert _L.SpearmanLoss(method=method)(scores, relevance).isfinite()
    assert np.isfinite(_L.NDCGLoss(3, method="neuralsort")(scores, relevance).item())


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: _L.NDCGLoss(0), ValueError, r"k must be at least 1, but got 0"),
        (lambda: _L.PrecisionAtK(1.5), TypeError, r"k must be an int, but got float"),
        (lambda: _L.PrecisionAtK(None), TypeError, r"k must be an int"),
        (lambda: _L.NDCGLoss(gain="linaer"), ValueError, r"gain.*did you mean 'linear'"),
        (lambda: _L.NDCGLoss(3, method="permutahedron"), ValueError, r"method must be one of"),
        (lambda: _L.MRRLoss(method="lapsum"), ValueError, r"did you mean 'laplace'"),
        (lambda: _L.SpearmanLoss(reduction="max"), ValueError, r"reduction must be"),
        (lambda: _L.ListwiseCE(temperature=-1), ValueError, r"temperature must be"),
    ],
)
def test_wrong_options(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_wrong_relevances():
    scores = torch.zeros(3)
    with pytest.raises(ValueError, match=r"relevance must be finite and >= 0, but got -1"):
        _L.NDCGLoss()(scores, torch.tensor([1, -1, 0]))
    with pytest.raises(ValueError, match=r"relevance must have the shape of scores, \(3,\)"):
        _L.MRRLoss()(scores, torch.tensor([1, 0]))
    with pytest.raises(TypeError, match=r"relevance must be a tensor, but got list"):
        _L.MRRLoss()(scores, [1, 0, 0])

"""Losses of lists from the literature, against their papers' formulas, pair by pair."""

import itertools
import math

import pytest
import torch
from sklearn.metrics import average_precision_score, ndcg_score

import softorder as so
from softorder.kernels import _native
from softorder.losses import _gains, _pairs
from softorder.losses._log_sums import log_sums_behind
from softorder.relaxations import find
from tests.oracles import ranking

_L = so.losses


_MAKERS = {
    "neural": lambda **o: _L.NeuralNDCGLoss(3, **o),
    "mle": lambda **o: _L.ListMLELoss(3, **o),
    "net": lambda **o: _L.ListNetLoss(**o),
    "pairs": lambda **o: _L.PairwiseLoss(**o),
    "lambda": lambda **o: _L.LambdaLoss(**o),
    "ap": lambda **o: _L.SmoothAPLoss(**o),
    "recall": lambda **o: _L.SmoothRecallLoss(2, **o),
}
_every = pytest.mark.parametrize("make", _MAKERS.values(), ids=_MAKERS.keys())


def _lists(rows=4, n=7, seed=0, levels=4):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(rows, n, dtype=torch.float64, generator=generator)
    relevance = torch.randint(levels, (rows, n), generator=generator)
    relevance[:, 0], relevance[:, 1] = levels - 1, 0
    return scores, relevance


def _agrees(criterion, oracle, **problem):
    """With a function of one list."""
    scores, relevance = _lists(**problem)
    criterion.reduction = "none"
    found = criterion(scores, relevance)
    for row in range(len(scores)):
        expected = oracle(scores[row].tolist(), relevance[row].tolist())
        assert found[row].item() == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("k", [None, 3])
def test_neural_ndcg_is_the_papers(k):
    criterion = _L.NeuralNDCGLoss(k, method="neuralsort", temperature=2.0)
    _agrees(criterion, lambda x, y: 1 - ranking.neural_ndcg(x, y, 2.0, k))


@pytest.mark.parametrize("method", ["laplace", "logistic", "uniform", "normal", "cauchy"])
@pytest.mark.parametrize("k", [1, 3, 8])
def test_neural_ndcg_without_the_matrix(kernel, method, k):
    """Ties, infinite and absent scores, both directions."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(5, 8, dtype=torch.float64, generator=generator)
    x[1, 3:5], x[2, 1:3], x[3] = -math.inf, math.inf, x[3].round()
    x[4, 1:] = -math.inf
    values = torch.rand(5, 2, 8, generator=generator).double()
    values = torch.where((x > -math.inf).unsqueeze(-2), values, 0.0)
    known, tau = find("soft_permutation", method), torch.tensor([0.4]).double()
    for descending in (True, False):
        p = known.soft_permutation(x, tau, descending, k)
        found = known.permuted(x, values, tau, descending, k)
        torch.testing.assert_close(found, values @ p.mT, rtol=0, atol=1e-10)


def test_neural_ndcg_of_a_long_list_forms_no_matrix():
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(100_000, generator=generator).requires_grad_()
    relevance = torch.randint(3, (100_000,), generator=generator)
    loss = _L.NeuralNDCGLoss(temperature=1e-3)(scores, relevance)
    loss.backward()  # the matrix would have 80 GB
    hard = _L.NDCGLoss(temperature=1e-9, gain="exponential")(scores.detach(), relevance)
    assert loss.item() == pytest.approx(hard.item(), abs=1e-3)
    assert scores.grad.isfinite().all()


def test_approximate_ndcg_is_the_papers():
    criterion = _L.ApproxNDCGLoss(temperature=0.5)
    _agrees(criterion, lambda x, y: 1 - ranking.approx_ndcg(x, y, 0.5))


@pytest.mark.parametrize("ties", ["efron", "breslow"])
@pytest.mark.parametrize("k", [None, 1, 3, 20])
def test_list_mle_is_the_partial_likelihood(ties, k):
    criterion = _L.ListMLELoss(k, ties=ties)
    _agrees(criterion, lambda x, y: ranking.partial_likelihood(x, y, ties, k))


def test_list_mle_is_the_probability_of_an_order():
    scores, _ = _lists(1, 5)
    order = [3, 0, 4, 1, 2]
    relevance = torch.tensor([[order[::-1].index(i) for i in range(5)]])
    p = ranking.order_probability((scores[0] / 0.7).tolist(), order)
    loss = _L.ListMLELoss(temperature=0.7)(scores, relevance)
    assert loss.item() == pytest.approx(-math.log(p))


def test_list_mle_is_exact_for_equal_scores_of_a_grade():
    relevance = [2, 0, 1, 1, 1, 0]
    scores = torch.tensor([0.3, -0.5, 0.9, 0.9, 0.9, -0.5], dtype=torch.float64)
    p = ranking.consistent_probability(scores.tolist(), relevance)
    loss = _L.ListMLELoss()(scores, torch.tensor(relevance))
    assert math.factorial(3) * math.exp(-loss) == pytest.approx(p)


@_every
@pytest.mark.parametrize("kernels", ["native", "torch"])
def test_a_list_with_a_nan_is_nan_and_passes_no_gradient(make, kernels):
    scores, relevance = _lists()
    scores[1, 3] = math.nan
    scores.requires_grad_()
    with _native.use(kernels):
        losses = make(reduction="none")(scores, relevance)
        losses.sum().backward()
    assert losses.isnan().tolist() == [False, True, False, False]
    assert not scores.grad[1].any()
    assert scores.grad[[0, 2, 3]].isfinite().all()
    assert scores.grad[[0, 2, 3]].any(-1).all()


def test_list_mle_far_away_is_fine():
    scores = torch.tensor([0.0, 900.0, -900.0], requires_grad=True)
    loss = _L.ListMLELoss()(scores, torch.tensor([2, 1, 0]))
    assert loss.item() == pytest.approx(900)
    assert torch.autograd.grad(loss, scores)[0].tolist() == pytest.approx([-1, 1, 0])


@pytest.mark.parametrize("n", [1, 16, 17, 300])
def test_log_sums(n):
    s = 20 * torch.randn(2, n, dtype=torch.float64, generator=torch.Generator().manual_seed(n))
    expected = torch.stack([s[:, p:].logsumexp(-1) for p in range(n)], -1)
    torch.testing.assert_close(log_sums_behind(s), expected)


@_every
def test_second_derivatives(make):
    scores, relevance = _lists(2, 5)
    scores.requires_grad_()
    criterion = make(temperature=0.7)
    torch.autograd.gradgradcheck(lambda x: criterion(x, relevance), (scores,))


@pytest.mark.parametrize("target", ["softmax", "proportional"])
def test_list_net_is_the_papers(target):
    criterion = _L.ListNetLoss(target=target)
    _agrees(criterion, lambda x, y: ranking.list_net(x, y, target == "proportional"))


@pytest.mark.parametrize("kind", ["logistic", "hinge"])
def test_pairs_one_by_one(kind):
    criterion = _L.PairwiseLoss(kind, temperature=0.7)
    _agrees(criterion, lambda x, y: ranking.pairwise(x, y, 0.7, kind))


@pytest.mark.parametrize("weights", ["ndcg1", "ndcg2", "ndcg2++", "lambdarank"])
@pytest.mark.parametrize("k", [None, 3])
def test_lambda_loss_is_the_papers(weights, k):
    criterion = _L.LambdaLoss(weights, k, temperature=0.7, mu=3.0)
    _agrees(criterion, lambda x, y: ranking.lambda_loss(x, y, 0.7, weights, k, 3.0))


def test_smooth_ap_and_recall_are_the_papers():
    ap = _L.SmoothAPLoss(temperature=0.3)
    _agrees(ap, lambda x, y: 1 - ranking.smooth_ap(x, y, 0.3), levels=2)
    recall = _L.SmoothRecallLoss((1, 3), edge=0.5, temperature=0.3)
    _agrees(recall, lambda x, y: 1 - ranking.smooth_recall(x, y, 0.3, (1, 3), 0.5), levels=2)


@_every
def test_the_order_of_the_list_does_not_matter(make):
    scores, relevance = _lists()
    criterion, order = make(temperature=0.5), torch.tensor([4, 2, 6, 0, 1, 5, 3])
    expected = criterion(scores, relevance)
    torch.testing.assert_close(criterion(scores[:, order], relevance[:, order]), expected)


@_every
def test_weights_of_lists(make):
    """A list of weight 2 counts as two lists, one of weight 0 not at all."""
    scores, relevance = _lists()
    weight = torch.tensor([1.0, 2.0, 0.0, 1.0])
    several = [0, 1, 1, 3]
    for reduction in ("mean", "sum"):
        criterion = make(temperature=0.5, reduction=reduction)
        found = criterion(scores, relevance, None, weight)
        torch.testing.assert_close(found, criterion(scores[several], relevance[several]))
    each = make(temperature=0.5, reduction="none")
    expected = each(scores, relevance) * weight
    torch.testing.assert_close(each(scores, relevance, weight=weight), expected)


@pytest.mark.parametrize("name", ["mle", "pairs", "lambda"])
def test_equal_labels_cost_nothing(name):
    scores, relevance = _lists()
    relevance[1] = 2
    scores.requires_grad_()
    criterion = _MAKERS[name](reduction="none")
    losses = criterion(scores, relevance)
    assert losses[1] == 0
    assert (torch.autograd.grad(losses.sum(), scores)[0][1] == 0).all()
    mean = _MAKERS[name]()(scores, relevance)
    torch.testing.assert_close(mean, losses.sum() / 3)
    same = _MAKERS[name](reduction="sum")(scores, torch.ones_like(relevance))
    assert (torch.autograd.grad(same, scores)[0] == 0).all()


@pytest.mark.parametrize("k", [None, 1, 7, 100])
def test_many_gains_have_the_same_best_order(k):
    gain = torch.randint(5, (700, 30), generator=torch.Generator().manual_seed(0)).double()
    assert gain.numel() > _gains._MANY
    found = _gains.best_sum(gain, k)
    torch.testing.assert_close(found[:9], _gains.best_sum(gain[:9], k))
    falling = gain.sort(-1, descending=True).values[:, :k]
    weights = [1 / math.log2(2 + place) for place in range(falling.shape[-1])]
    torch.testing.assert_close(found, falling @ torch.tensor(weights, dtype=torch.float64))


@pytest.mark.parametrize("name", ["pairs", "lambda"])
def test_blocks_of_pairs_are_all_pairs(name, monkeypatch):
    scores, relevance = _lists()
    scores.requires_grad_()
    criterion = _MAKERS[name](temperature=0.5, learnable_temperature=True).double()
    inputs = scores, criterion.log_temperature
    expected = criterion(scores, relevance)
    slopes = torch.autograd.grad(expected, inputs)
    monkeypatch.setattr(_pairs, "_PAIRS", 2 * scores.numel())
    with _native.use("torch"):
        found = criterion(scores, relevance)
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(torch.autograd.grad(found, inputs), slopes)


@_every
def test_learns_from_equal_scores(make):
    relevance = torch.tensor([0, 0, 3, 0, 2, 0, 1, 0])
    scores = torch.zeros(8, requires_grad=True)
    optimizer = torch.optim.Adam([scores], lr=0.1)
    criterion = make(temperature=0.3)
    for _ in range(20):
        optimizer.zero_grad()
        criterion(scores, relevance).backward()
        optimizer.step()
    assert so.metrics.recall(scores, relevance, 3) == 1


# ---- retrieval ---------------------------------------------------------------------------------


@pytest.mark.parametrize("others", [False, True])
def test_retrieval_in_parts(others):
    generator = torch.Generator().manual_seed(0)
    unit = torch.nn.functional.normalize(
        torch.randn(11, 5, dtype=torch.float64, generator=generator), dim=-1
    ).requires_grad_()
    labels = torch.tensor([0, 0, 1, 1, 1, 2, 2, 0, 3, 2, 1])  # 3 is alone
    items = (unit[:7] * 1, labels[:7]) if others else ()
    criterion = _L.SmoothAPLoss(temperature=0.1, reduction="sum")
    whole = _L.retrieval_loss(criterion, unit, labels, *items)
    parts = _L.retrieval_loss(criterion, unit, labels, *items, chunk=3)
    torch.testing.assert_close(parts, whole)
    slopes = [torch.autograd.grad(loss, unit, retain_graph=True)[0] for loss in (whole, parts)]
    torch.testing.assert_close(*slopes)
    ranked = items[0] if others else unit
    total = 0.0
    for q in range(11):
        kept = [i for i in range(len(ranked)) if others or i != q]
        relevance = (labels[: len(ranked)][kept] == labels[q]).tolist()
        if any(relevance):
            total += 1 - ranking.smooth_ap((ranked[kept] @ unit[q]).tolist(), relevance, 0.1)
    assert whole.item() == pytest.approx(total / 10)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: _L.NeuralNDCGLoss(method="permutahedron"), ValueError, r"method must be one of"),
        (lambda: _L.ListMLELoss(ties="random"), ValueError, r"ties must be one of efron, breslow"),
        (lambda: _L.ListMLELoss(0), ValueError, r"k must be at least 1, but got 0"),
        (lambda: _L.ListNetLoss(target="soft"), ValueError, r"target must be one of"),
        (lambda: _L.PairwiseLoss("hinges"), ValueError, r"did you mean 'hinge'"),
        (lambda: _L.LambdaLoss("ndcg3"), ValueError, r"weights must be one of"),
        (lambda: _L.LambdaLoss(mu=-1), ValueError, r"mu must be finite and >= 0, but got -1"),
        (lambda: _L.SmoothRecallLoss(()), ValueError, r"k must hold at least one number"),
        (lambda: _L.SmoothRecallLoss(edge=0), ValueError, r"edge must be finite and > 0"),
        (lambda: _L.PairwiseLoss(method="laplace"), TypeError, r"method"),
    ],
)
def test_wrong_options(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_wrong_weights_and_embeddings():
    scores, relevance = _lists()
    with pytest.raises(ValueError, match=r"weight must broadcast over the rows of scores"):
        _L.PairwiseLoss()(scores, relevance, None, torch.ones(3))
    with pytest.raises(ValueError, match=r"weight must be finite and >= 0, but got -1"):
        _L.PairwiseLoss()(scores, relevance, None, -torch.ones(4))
    with pytest.raises(TypeError, match=r"weight must be a tensor or None, but got float"):
        _L.PairwiseLoss()(scores, relevance, None, 1.0)
    sum_of = _L.SmoothAPLoss(reduction="sum")
    labels = torch.arange(4)
    with pytest.raises(ValueError, match=r"criterion must have the reduction 'sum' or 'none'"):
        _L.retrieval_loss(_L.SmoothAPLoss(), scores, labels)
    with pytest.raises(ValueError, match=r"labels must have the shape \(4,\)"):
        _L.retrieval_loss(sum_of, scores, labels[:3])
    with pytest.raises(ValueError, match=r"items and item_labels must be given together"):
        _L.retrieval_loss(sum_of, scores, labels, scores)
    with pytest.raises(ValueError, match=r"items must be as wide as queries, 7"):
        _L.retrieval_loss(sum_of, scores, labels, scores[:, :5], labels)
    with pytest.raises(ValueError, match=r"chunk must be at least 1, but got 0"):
        _L.retrieval_loss(sum_of, scores, labels, chunk=0)


# ---- laws that the definitions have --------------------------------------------------------------


@pytest.mark.parametrize("k", [None, 2])
def test_the_likelihoods_of_all_orders_sum_to_one(k):
    """Of Plackett and Luce; for k places, that of all beginnings."""
    scores, n = _lists(1, 5)[0], 5
    orders = list(itertools.permutations(range(n)))
    relevance = torch.tensor([[n - order.index(i) for i in range(n)] for order in orders])
    losses = _L.ListMLELoss(k, temperature=0.7, reduction="none")(
        scores.expand(len(orders), n), relevance
    )
    times = 1 if k is None else math.factorial(n - k)  # orders with the same beginning
    assert (-losses).exp().sum().item() == pytest.approx(times)


def test_list_net_is_who_comes_first_in_all_orders():
    scores, _ = _lists(1, 5)
    first = [0.0] * 5
    for order in itertools.permutations(range(5)):
        first[order[0]] += ranking.order_probability(scores[0].tolist(), order)
    one = torch.eye(5, dtype=torch.float64)
    criterion = _L.ListNetLoss(target="proportional", reduction="none")
    losses = criterion(scores.expand(5, 5), one)
    torch.testing.assert_close((-losses).exp(), torch.tensor(first, dtype=torch.float64))


def test_cold_smooth_ap_and_recall_are_sklearns():
    scores, relevance = _lists(12, 9, levels=2)
    found = _L.SmoothAPLoss(temperature=1e-9, reduction="none")(scores, relevance)
    each = [average_precision_score(y, x) for x, y in zip(scores, relevance, strict=True)]
    torch.testing.assert_close(1 - found, torch.tensor(each, dtype=torch.float64))
    edge = {"edge": 1e-9, "temperature": 1e-9, "reduction": "none"}
    place = scores.argsort(descending=True).argsort() + 1
    inside = (place < 3).double() + 0.5 * (place == 3)  # place k itself counts half
    expected = (inside * relevance).sum(-1) / relevance.sum(-1)
    torch.testing.assert_close(1 - _L.SmoothRecallLoss(3, **edge)(scores, relevance), expected)


@pytest.mark.parametrize("make", [_L.NDCGLoss, _L.NeuralNDCGLoss, _L.ApproxNDCGLoss])
@pytest.mark.parametrize("k", [None, 3])
def test_cold_ndcg_of_weighted_gains_is_sklearns(make, k):
    """sklearn takes any gains: those of exponential relevances, times the weights of elements."""
    scores, relevance = _lists(8, 9)
    weights = torch.rand(8, 9, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    options = {"gain": "exponential", "temperature": 1e-9}
    for given, gains in ((None, 2.0**relevance - 1), (weights, weights * (2.0**relevance - 1))):
        found = make(k, **options)(scores, relevance, weights=given)
        assert found.item() == pytest.approx(1 - ndcg_score(gains, scores, k=k), abs=1e-8)

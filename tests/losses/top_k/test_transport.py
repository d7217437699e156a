"""Which transport a top-k loss is made of: n anchors, k + 1, or two; each against its formula."""

import math

import pytest
import torch

import softorder as so
from tests.losses.top_k.problem import EVEN, FIVE, problem
from tests.oracles import transport

_loss = so.losses.top_k_cross_entropy
_PURE = {"top1": "operator", "reduction": "none"}


def _masses(scores, places, epsilon, anchors=None):
    """log S_k for k = 1, ..., places: Sinkhorn's iterations in the log domain, as published."""
    plan = transport.sinkhorn(-scores, places, epsilon, 3000, anchors=anchors)
    return (scores.shape[-1] * plan).cumsum(-1)[..., :5].log()


def _printed(scores, target, p_k, masses):
    own = masses.gather(1, target[:, None, None].expand(-1, 1, 5)).squeeze(1)
    return -(torch.tensor(p_k, dtype=torch.float64) * own.exp()).sum(-1).log()


@pytest.mark.parametrize("p_k", [EVEN, FIVE], ids=["1 to 5", "5"])
@pytest.mark.parametrize("epsilon", [2.0, 0.7])
@pytest.mark.parametrize(
    ("method", "places"),
    [("sinkhorn", 8), ("sinkhorn_sort", 8), (so.Sinkhorn(), 8), ("sorted_soft", 5)],
    ids=["sinkhorn", "sinkhorn_sort", "Sinkhorn()", "sorted_soft"],
)
@pytest.mark.slow
def test_is_the_loss_of_unrolled_sinkhorn(method, places, epsilon, p_k):
    """The paper's SinkhornSort has n anchors; sorted SOFT has one for each place, and the rest."""
    scores, target = problem(4, 8)
    tau = torch.tensor(epsilon, dtype=torch.float64, requires_grad=True)
    inputs = scores.requires_grad_(), tau
    found = _loss(scores, target, p_k, method=method, temperature=tau, **_PURE)
    expected = _printed(scores, target, p_k, _masses(scores, places, tau))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-11)
    gradients = (torch.autograd.grad(losses.sum(), inputs) for losses in (found, expected))
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-9)


def test_two_anchors_are_logistic_at_half_the_temperature():
    scores, target = problem(8, 12)
    for method in ("soft", so.Sinkhorn(form="soft")):
        soft = _loss(scores, target, EVEN, method=method, temperature=0.6, **_PURE)
        logistic = _loss(scores, target, EVEN, method="logistic", temperature=0.3, **_PURE)
        assert torch.equal(soft, logistic)


@pytest.mark.parametrize("label_smoothing", [0.0, 0.2])
def test_the_three_forms_are_three_losses(label_smoothing):
    scores, target = problem(8, 16)
    options = {"temperature": 1.0, "label_smoothing": label_smoothing, **_PURE}
    methods = ("sinkhorn_sort", "sorted_soft", "soft")
    n_anchors, some, two = (_loss(scores, target, FIVE, method=m, **options) for m in methods)
    assert ((n_anchors - two).abs() > 0.01).all()
    assert ((n_anchors - some).abs() > 0.01).all()
    assert ((some - two).abs() > 0.01).all()
    family = _loss(scores, target, FIVE, method="sinkhorn", **options)
    assert torch.equal(family, n_anchors)


def test_sorted_soft_has_as_many_places_as_the_largest_k_with_weight():
    scores, target = problem(4, 9)
    few = _loss(scores, target, [0, 1.0], method="sorted_soft", **_PURE)
    many = _loss(scores, target, [0, 1.0, 0, 0], method="sorted_soft", **_PURE)
    assert torch.equal(few, many)
    learned = torch.tensor([0, 1.0, 0, 0], requires_grad=True)
    more = _loss(scores, target, learned, method="sorted_soft", **_PURE)
    assert ((more - few).abs() > 1e-3).any()


def test_anchors_from_zero_to_one_are_a_smaller_temperature():
    """Cuturi et al. put the anchors at i/(n - 1): their ε is ours over n - 1."""
    scores, target = problem(4, 8)
    anchors = torch.linspace(0, 1, 8, dtype=torch.float64)
    unit = so.Sinkhorn(form="sinkhorn_sort", anchors=anchors)
    found = _loss(scores, target, EVEN, method=unit, temperature=0.2, **_PURE)
    ours = _loss(scores, target, EVEN, method="sinkhorn_sort", temperature=1.4, **_PURE)
    torch.testing.assert_close(found, ours, rtol=0, atol=1e-11)
    printed = _printed(scores, target, EVEN, _masses(scores, 8, 0.2, anchors))
    torch.testing.assert_close(found, printed, rtol=0, atol=1e-11)


# ---- where masses underflow ----------------------------------------------------------------------


@pytest.mark.parametrize("method", ["sinkhorn_sort", "sorted_soft"])
@pytest.mark.parametrize("below", [40.0, 400.0, 4000.0])
def test_gradients_of_a_hopeless_target(method, below):
    """By differences: S_k itself is exp(-80) and less."""
    scores, target = problem(2, 6)
    scores[0, target[0]] -= below
    tau = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)

    def call(scores, tau):
        return _loss(scores, target, [0.4, 0.6], method=method, temperature=tau, **_PURE)

    inputs = scores.requires_grad_(), tau
    assert call(*inputs)[0] > 2 * below
    assert torch.autograd.gradcheck(call, inputs, eps=1e-5, atol=1e-9 * below, rtol=1e-6)


def test_equal_scores_share_a_threshold_that_is_too_cold_to_be_seen():
    scores = torch.tensor([[0.0, 0.0, 5.0, -1e4]], dtype=torch.float64, requires_grad=True)
    target = torch.tensor([3])
    loss = _loss(scores, target, [1.0], method="sinkhorn_sort", top1="operator")
    (gradient,) = torch.autograd.grad(loss, scores)
    # d_1 + d_2 + d_3 of the target, with t_3 midway between it and the pair
    assert gradient[0, 0] == pytest.approx(gradient[0, 1].item(), rel=1e-9)
    assert gradient[0, 3] == pytest.approx(-6 + 1, rel=1e-9)
    assert gradient.sum().item() == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("method", ["sinkhorn_sort", "sorted_soft"])
def test_torch_func_gives_the_same(method):
    scores, target = problem(3, 7)
    scores[0, target[0]] -= 10

    def call(x, y):
        return _loss(x, y, EVEN, method=method, temperature=0.5, **_PURE)

    each = torch.func.vmap(call)(scores, target)
    torch.testing.assert_close(each, call(scores, target), rtol=1e-10, atol=0)
    found = torch.func.vmap(torch.func.grad(call))(scores, target)
    (expected,) = torch.autograd.grad(call(scores.requires_grad_(), target).sum(), scores)
    torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("method", ["sinkhorn_sort", "sorted_soft", "soft"])
def test_second_derivatives(method):
    scores, target = problem(2, 5)
    tau = torch.tensor(0.8, dtype=torch.float64, requires_grad=True)

    def call(scores, tau):
        return _loss(scores, target, [0.2, 0.3, 0.5], method=method, temperature=tau)

    assert torch.autograd.gradgradcheck(call, (scores.requires_grad_(), tau))


# ---- infinite scores -----------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["sinkhorn_sort", "sorted_soft", "soft"])
def test_a_class_at_minus_infinity_is_not_there(method):
    scores, target = problem(4, 8)
    gap = torch.full((4, 3), -math.inf, dtype=torch.float64)
    padded = torch.cat([scores, gap], -1).requires_grad_()
    losses = _loss(padded, target, EVEN, method=method, **_PURE)
    expected = _loss(scores, target, EVEN, method=method, **_PURE)
    torch.testing.assert_close(losses, expected, rtol=0, atol=1e-12)
    (gradient,) = torch.autograd.grad(losses.sum(), padded)
    assert (gradient[:, 8:] == 0).all()
    assert (gradient[:, :8] != 0).all()


def test_infinite_scores_take_the_first_places():
    """As the rows of the permutation say; NaN stays in its row."""
    scores, _ = problem(4, 6)
    scores[:2, 0], scores[2, 1] = math.inf, math.nan
    scores[1, 3] = math.inf
    shares = so.soft_permutation(scores, method="sinkhorn_sort", descending=True).cumsum(-2)
    for wanted in range(6):
        target = torch.full((4,), wanted)
        losses = _loss(scores, target, EVEN, method="sinkhorn_sort", **_PURE)
        expected = -shares[:, :5, wanted].mean(-1).log()
        assert losses[2].isnan()
        torch.testing.assert_close(losses[[0, 1, 3]], expected[[0, 1, 3]], rtol=0, atol=1e-10)
    hopeless = _loss(scores[1], torch.tensor(2), [0, 1.0], method="sinkhorn_sort", top1="operator")
    assert hopeless.isfinite()  # both places are taken
    assert hopeless > 700

"""SOFT top-k, sorted SOFT top-k and Sinkhorn sort, against other ways to the same numbers."""

import math

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

import softorder as so
from tests.oracles.transport import bias_bound, hard_top_plan, problem, sinkhorn


def _scores(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def _plan(scores, k, epsilon, **options):
    return so.soft_permutation(scores, k=k, method="sinkhorn", temperature=epsilon, **options)


# ---- two anchors --------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1e1, 1e-1, 1e-3, 1e-5])
@pytest.mark.parametrize("k", [1, 5, 9.5])
def test_soft_topk_is_logistic_at_half_the_temperature(k, epsilon):
    scores = _scores(4, 10)
    p = so.soft_topk(scores, k, method="sinkhorn", temperature=epsilon)
    logistic = so.soft_topk(scores, k, method="logistic", temperature=epsilon / 2)
    torch.testing.assert_close(p, logistic, rtol=0, atol=1e-10)


@pytest.mark.parametrize("epsilon", [2.0, 0.3])
def test_soft_topk_is_the_plan_of_two_anchors(epsilon):
    """The misprint of the paper: the k smallest scores go to anchor 0, not 1."""
    scores, k = _scores(3, 10), 4
    cost = torch.stack([scores**2, (scores - 1) ** 2], -1)
    zeta = torch.zeros(3, 1, 2, dtype=torch.float64)
    nu = torch.tensor([k / 10, 1 - k / 10], dtype=torch.float64)
    for _ in range(3000):
        plan = ((zeta - cost) / epsilon).softmax(-1) / 10
        zeta = zeta + epsilon * (nu.log() - plan.sum(1, keepdim=True).log())
    p = so.soft_topk(scores, k, method="sinkhorn", temperature=epsilon, largest=False)
    torch.testing.assert_close(p, 10 * plan[..., 0], rtol=0, atol=1e-10)


@pytest.mark.parametrize("k", [1, 5, 19])
def test_theorem_2_bounds_the_bias(k):
    scores = _scores(16, 20, seed=k)
    exponents = torch.linspace(2, -5, 15, dtype=torch.float64)
    share = []
    for epsilon in (10**exponents).tolist():
        p = so.soft_topk(scores, k, method="sinkhorn", temperature=epsilon, largest=False)
        plan = torch.stack([p, 1 - p], -1) / 20
        bias = (plan - hard_top_plan(scores, k)).norm(dim=(-1, -2))
        share.append(bias / bias_bound(scores, k, epsilon))
    share = torch.stack(share)
    assert (share <= 1).all()
    # The bound falls like ε. The bias does no worse, and in the end much better.
    assert (share[-1] < 1e-12).all()


# ---- more anchors -------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 3, 8])
def test_matches_the_iterations_of_the_paper(k):
    scores, epsilon = _scores(3, 8), 0.7
    expected = 8 * sinkhorn(scores, k, epsilon, 3000).mT[:, :k]
    torch.testing.assert_close(_plan(scores, k, epsilon), expected, rtol=0, atol=1e-11)
    mirrored = 8 * sinkhorn(-scores, k, epsilon, 3000).mT[:, :k]
    descending = _plan(scores, k, epsilon, descending=True)
    torch.testing.assert_close(descending, mirrored, rtol=0, atol=1e-11)


@pytest.mark.parametrize("k", [2, 12])
def test_matches_pot(k):
    ot = pytest.importorskip("ot")
    scores, epsilon = _scores(12), 0.5
    cost, mu, nu = (v.squeeze(0).numpy() for v in problem(scores.unsqueeze(0), k))
    options = {"method": "sinkhorn_log", "numItermax": 20_000, "stopThr": 1e-14}
    plan = 12 * torch.from_numpy(ot.sinkhorn(mu, nu, cost, epsilon, **options))
    torch.testing.assert_close(_plan(scores, k, epsilon), plan.T[:k], rtol=0, atol=1e-10)


@pytest.mark.parametrize("k", [1, 5, 20])
def test_the_cold_limit_is_the_plan_without_entropy(k):
    ot = pytest.importorskip("ot")
    scores = _scores(20)
    _, mu, nu = (v.squeeze(0).numpy() for v in problem(scores.unsqueeze(0), k))
    anchors = torch.arange(len(nu), dtype=torch.float64)
    plan = 20 * torch.from_numpy(ot.emd_1d(scores.numpy(), anchors.numpy(), mu, nu))
    torch.testing.assert_close(_plan(scores, k, 1e-6), plan.T[:k], rtol=0, atol=1e-9)


def test_rank_and_sort_come_from_the_permutation():
    scores, options = _scores(3, 7), {"method": "sinkhorn", "temperature": 0.4}
    for descending in (False, True):
        p = so.soft_permutation(scores, descending=descending, **options)
        ranks = so.soft_rank(scores, descending=descending, **options)
        places = torch.arange(1, 8, dtype=torch.float64)
        torch.testing.assert_close(ranks, places @ p, rtol=0, atol=1e-12)
        values = so.soft_sort(scores, descending=descending, **options)
        moved = (p @ scores.unsqueeze(-1)).squeeze(-1)
        torch.testing.assert_close(values, moved, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("epsilon", [1e-1, 1e-3])
def test_scores_that_are_left_out_would_have_got_nothing(epsilon, dtype):
    """Long rows are cut to what does not underflow; under torch.func they are not."""
    scores = _scores(2, 500).to(dtype)
    whole = torch.func.vmap(lambda x: _plan(x, 4, epsilon, descending=True))(scores)
    tiny = 4 * torch.finfo(dtype).tiny
    cut = _plan(scores, 4, epsilon, descending=True)
    torch.testing.assert_close(cut, whole, rtol=1e-5 if dtype == torch.float32 else 1e-9, atol=tiny)


# ---- derivatives --------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 6])
@pytest.mark.parametrize("epsilon", [1.0, 1e-1, 1e-2, 1e-3])
def test_gradients_match_differences(epsilon, k):
    scores = (epsilon * _scores(2, 6)).requires_grad_()  # neighbours within ε, or nothing happens
    temperature = torch.tensor([1.0, 1.5], dtype=torch.float64) * epsilon
    step = 1e-6 * epsilon

    def function(scores, temperature):
        return _plan(scores, k, temperature)

    leaves = scores, temperature.requires_grad_()
    assert gradcheck(function, leaves, eps=step, atol=1e-5 / epsilon, rtol=1e-5)
    if epsilon == 1:
        assert gradgradcheck(function, leaves)


@pytest.mark.parametrize("k", [3, 7])
def test_gradients_match_unrolled_sinkhorn(k):
    scores = _scores(2, 7).requires_grad_()
    epsilon = torch.tensor(0.8, dtype=torch.float64, requires_grad=True)
    weights = _scores(2, k, 7, seed=1)
    implicit = torch.autograd.grad((_plan(scores, k, epsilon) * weights).sum(), (scores, epsilon))
    unrolled = 7 * sinkhorn(scores, k, epsilon, 800).mT[:, :k]
    expected = torch.autograd.grad((unrolled * weights).sum(), (scores, epsilon))
    for one, other in zip(implicit, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


def test_the_two_ways_to_a_gradient_agree():
    """By the formula, and by the plain path that has derivatives of its own."""
    scores = _scores(3, 40).requires_grad_()
    weights = _scores(3, 5, 40, seed=1)
    for epsilon in (1e-1, 1e-2, 1e-3):
        loss = (_plan(scores, 5, epsilon, descending=True) * weights).sum()
        (formula,) = torch.autograd.grad(loss, scores, retain_graph=True)
        (plain,) = torch.autograd.grad(loss, scores, create_graph=True)
        torch.testing.assert_close(formula, plain, rtol=1e-9, atol=1e-12 / epsilon)


# ---- options ------------------------------------------------------------------------------------


def test_any_cost_will_do():
    scores, epsilon = _scores(3, 8), 0.7
    squared = so.Sinkhorn(cost=lambda x, y: (x - y) ** 2)
    for k in (2, 8):
        p = so.soft_permutation(scores, k=k, method=squared, temperature=epsilon)
        torch.testing.assert_close(p, _plan(scores, k, epsilon), rtol=0, atol=1e-11)
    p = so.soft_topk(scores, 3, method=squared, temperature=epsilon)
    expected = so.soft_topk(scores, 3, method="sinkhorn", temperature=epsilon)
    torch.testing.assert_close(p, expected, rtol=0, atol=1e-12)


def test_another_cost_gives_another_plan():
    method = so.Sinkhorn(cost=lambda x, y: (x - y).abs() ** 1.5)
    scores = _scores(2, 5).requires_grad_()
    p = so.soft_permutation(scores, k=2, method=method, temperature=0.5)
    ones = torch.ones(2, 2, dtype=p.dtype)
    torch.testing.assert_close(p.sum(-1), ones, rtol=0, atol=1e-11)
    assert not torch.allclose(p, _plan(scores, 2, 0.5), atol=1e-3)
    assert gradcheck(
        lambda x: so.soft_permutation(x, k=2, method=method, temperature=0.5), (scores,)
    )


def test_anchors_further_apart_are_a_lower_temperature():
    scores = _scores(3, 6)
    wide = so.Sinkhorn(anchors=torch.arange(4, dtype=torch.float64) * 2 + 5)
    p = so.soft_permutation(scores, k=3, method=wide, temperature=0.8)
    torch.testing.assert_close(p, _plan(scores, 3, 0.4), rtol=0, atol=1e-11)


def test_the_plan_tells_how_it_was_found():
    scores = _scores(4, 30)
    found = so.Sinkhorn().plan(scores, k=3, temperature=0.1, descending=True)
    assert torch.equal(found.permutation, _plan(scores, 3, 0.1, descending=True))
    assert found.iterations.shape == found.error.shape == (4,)
    assert ((found.iterations >= 1) & (found.iterations < 10)).all()
    assert (found.error <= 1e-12).all()


def test_one_that_did_not_converge_warns_once():
    method = so.Sinkhorn(solver="sinkhorn", max_iterations=5)
    with pytest.warns(
        UserWarning, match=r"sinkhorn stopped after 5 iterations .* off by \d\.\de-\d+"
    ):
        so.soft_permutation(_scores(30), k=3, method=method, temperature=0.01)
    so.soft_permutation(_scores(30), k=3, method=method, temperature=0.01)  # silent: warnings raise


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"solver": "bfgs"}, ValueError, "solver must be one of newton, sinkhorn, but got 'bfgs'"),
        ({"tolerance": 0.0}, ValueError, "tolerance must be finite and > 0, but got 0.0"),
        ({"max_iterations": 0}, ValueError, "max_iterations must be at least 1, but got 0"),
        ({"max_iterations": 2.0}, TypeError, "max_iterations must be an int, but got float"),
        ({"cost": "cubic"}, TypeError, "cost must be 'squared' or a callable, but got 'cubic'"),
        ({"anchors": [0, 1]}, TypeError, "anchors must be a tensor or None, but got list"),
        ({"anchors": torch.tensor([1.0, 0.0])}, ValueError, "anchors must ascend"),
        ({"anchors": torch.zeros(2, 2)}, ValueError, "anchors must be a 1-D tensor"),
    ],
)
def test_wrong_options_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        so.Sinkhorn(**options)


def test_wrong_use_is_refused():
    three = so.Sinkhorn(anchors=torch.arange(3.0))
    with pytest.raises(ValueError, match=r"anchors must be 5, .* but got 3"):
        so.soft_permutation(_scores(9), k=4, method=three)
    with pytest.raises(ValueError, match="method must serve soft_quantile, but got 'sinkhorn'"):
        so.soft_quantile(_scores(9), 0.5, method=so.Sinkhorn())


# ---- what takes no part -------------------------------------------------------------------------


@pytest.mark.parametrize("descending", [False, True])
def test_padding_is_exact(descending):
    """Not a large finite score, as in the paper's code: exactly the plan without it."""
    scores, gap = _scores(2, 9), torch.full((2, 3), -math.inf, dtype=torch.float64)
    padded = torch.cat([scores, gap], -1)
    for k in (3, 9):
        p = _plan(padded, k, 0.3, descending=descending)
        expected = _plan(scores, k, 0.3, descending=descending)
        torch.testing.assert_close(p[..., :9], expected, rtol=0, atol=1e-13)
        assert (p[..., 9:] == 0).all()

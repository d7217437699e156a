"""fenchel_young: p - y is its gradient, it is convex, and 0 only where p = y."""

import math

import numpy as np
import pytest
import torch
from scipy import integrate, optimize
from torch.nn import functional

import softorder as so
from softorder.losses import fenchel
from tests.oracles.densities import BUILT_IN as ORACLES
from tests.oracles.densities import DENSITIES

_loss = so.losses.fenchel_young
_DENSITIES = list(so.densities.BUILT_IN)
_FINITE = [name for name in _DENSITIES if name != "cauchy"]  # with k-hot targets


def _problem(rows=4, n=7, k=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(rows, n, dtype=torch.float64, generator=generator)
    hot = torch.rand(rows, n, generator=generator).argsort(-1) < k
    return scores, hot.double()


def _soft(rows=4, n=7, k=3, seed=1):
    scores, _ = _problem(rows, n, k, seed)
    return so.soft_topk(scores, k, method="logistic")


@pytest.mark.parametrize("name", _DENSITIES)
def test_conjugate_is_the_integral_of_the_cdf(name):
    density = so.densities.BUILT_IN[name]
    u = torch.linspace(-30, 30, 121, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(density.conjugate(u).sum(), u, create_graph=True)
    torch.testing.assert_close(slope, density.cdf(u), rtol=1e-11, atol=1e-13)
    (second,) = torch.autograd.grad(slope.sum(), u)
    torch.testing.assert_close(second, density.pdf(u), rtol=1e-7, atol=1e-9)
    u = u.detach()[40:81]
    p = density.cdf(u)
    legendre = u * p - density.psi(p)
    torch.testing.assert_close(density.conjugate(u), legendre, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", [n for n in ORACLES if n != "cauchy"])
def test_conjugate_against_quadrature(name):
    law = DENSITIES[name]
    for u in (-6.0, -0.3, 0.0, 0.2, 3.0):
        tail, _ = integrate.quad(lambda t: law.tail(np.float64(t)), abs(u), np.inf, epsabs=1e-14)
        expected = max(u, 0) + tail
        found = so.densities.BUILT_IN[name].conjugate(torch.tensor(u, dtype=torch.float64))
        assert found.item() == pytest.approx(expected, rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("name", _DENSITIES)
@pytest.mark.parametrize("temperature", [0.05, 0.7])
def test_is_the_gap_of_the_maximum(name, temperature):
    """The definition, with the maximum found by soft_topk itself."""
    scores, target = _problem()[0], _soft()
    density = so.densities.BUILT_IN[name]

    def objective(p):
        return (scores * p).sum(-1) - temperature * density.psi(p).sum(-1)

    p = so.soft_topk(scores, 3, method=name, temperature=temperature)
    expected = objective(p) - objective(target)
    found = _loss(scores, target, 3, name, temperature=temperature, reduction="none")
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-11)


def test_the_maximum_is_a_maximum():
    """By a convex solver, for the logistic potential."""
    scores, target = _problem(1, 5, 2)
    x, y = scores[0].numpy(), target[0].numpy()

    def minus(p):
        return -(x @ p) + 0.7 * (p * np.log(p) + (1 - p) * np.log(1 - p)).sum()

    simplex = {"type": "eq", "fun": lambda p: p.sum() - 2}
    found = optimize.minimize(
        minus, np.full(5, 0.4), bounds=[(1e-9, 1 - 1e-9)] * 5, constraints=[simplex], tol=1e-12
    )
    loss = _loss(scores, target, 2, "logistic", temperature=0.7)
    assert loss.item() == pytest.approx(-found.fun - x @ y, abs=1e-7)


@pytest.mark.parametrize("name", _DENSITIES)
@pytest.mark.parametrize("temperature", [1e-4, 0.3, 20.0])
@pytest.mark.parametrize("soft", [False, True])
def test_gradient_is_p_minus_y(kernel, name, temperature, soft):
    scores, target = _problem()
    target = _soft() if soft else target
    scores[0] *= 1e4  # f underflows here
    scores.requires_grad_()
    loss = _loss(scores, target, 3, name, temperature=temperature, reduction="sum")
    (gradient,) = torch.autograd.grad(loss, scores)
    p = so.soft_topk(scores.detach(), 3, method=name, temperature=temperature)
    torch.testing.assert_close(gradient, p - target, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("name", _DENSITIES)
def test_gradcheck(name):
    scores, target = _problem(2, 5, 2)[0], _soft(2, 5, 2)
    tau = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)

    def call(scores, tau):
        return _loss(scores, target, 2, name, temperature=tau)

    torch.autograd.gradcheck(call, (scores.requires_grad_(), tau))
    torch.autograd.gradgradcheck(call, (scores, tau))
    torch.autograd.gradcheck(call, (scores, tau), check_forward_ad=True, check_backward_ad=False)


@pytest.mark.parametrize("name", _DENSITIES)
def test_is_0_where_p_is_y_and_more_elsewhere(name):
    scores, _ = _problem(20)
    other = _problem(20, seed=3)[0]
    p = so.soft_topk(scores, 3, method=name, temperature=2.0)
    same = _loss(scores, p, 3, name, temperature=2.0, reduction="none")
    assert same.abs().max() < 1e-14
    differ = _loss(other, p, 3, name, temperature=2.0, reduction="none")
    assert (differ > 1e-3).all()
    shifted = _loss(scores + 7, p, 3, name, temperature=2.0, reduction="none")
    assert shifted.abs().max() < 1e-13


@pytest.mark.parametrize("name", _FINITE)
def test_is_convex(name):
    scores, target = _problem(200)
    other = 3 * _problem(200, seed=5)[0]

    def losses(x):
        return _loss(x, target, 3, name, temperature=0.5, reduction="none")

    for share in (0.2, 0.5, 0.9):
        between = losses(share * scores + (1 - share) * other)
        assert (between <= share * losses(scores) + (1 - share) * losses(other) + 1e-12).all()


def test_logistic_terms_are_binary_cross_entropies():
    scores, target = _problem()
    p = so.soft_topk(scores, 3, method="logistic", temperature=0.5)
    expected = 0.5 * functional.binary_cross_entropy(p, target, reduction="none").sum(-1)
    found = _loss(scores, target, 3, "logistic", temperature=0.5, reduction="none")
    torch.testing.assert_close(found, expected)


def test_cauchy_is_infinitely_far_from_a_certainty_but_knows_the_way():
    scores, target = _problem()
    scores.requires_grad_()
    loss = _loss(scores, target, 3, "cauchy")
    assert loss == math.inf
    (gradient,) = torch.autograd.grad(loss, scores)
    p = so.soft_topk(scores.detach(), 3, method="cauchy")
    torch.testing.assert_close(gradient, (p - target) / 4)


@pytest.mark.parametrize("name", _FINITE)
def test_cold_limit_counts_what_was_missed(name):
    """As τ → 0: the sum of the k largest minus that of the wanted."""
    scores, target = _problem(30)
    found = _loss(scores, target, 3, name, temperature=1e-7, reduction="none")
    hard = scores.topk(3).values.sum(-1) - (scores * target).sum(-1)
    torch.testing.assert_close(found, hard, rtol=0, atol=1e-5)


def test_k_may_differ_by_row_or_come_from_the_targets():
    scores, _ = _problem(3, 6)
    target = torch.tensor([[1.0, 0, 0, 0, 0, 0], [1, 1, 1, 0, 0, 1], [0, 0, 0, 0, 0, 0]]).double()
    found = _loss(scores, target, reduction="none")
    assert torch.equal(found, _loss(scores, target, target.sum(-1), reduction="none"))
    for row, k in enumerate((1, 4, 0)):
        torch.testing.assert_close(found[row], _loss(scores[row], target[row], k))
    assert found[2] == 0
    everything = torch.ones_like(target)
    assert _loss(scores, everything, 6) == 0


def test_what_is_masked_out_changes_nothing():
    scores, target = _problem(3, 5, 2)
    padded = torch.cat([scores, torch.full((3, 2), math.nan)], -1)
    mask = ~padded.isnan()
    wanted = torch.cat([target, torch.ones(3, 2)], -1)
    loss = _loss(padded.requires_grad_(), wanted, 2, mask=mask)
    torch.testing.assert_close(loss, _loss(scores, target, 2))
    (gradient,) = torch.autograd.grad(loss, padded)
    assert (gradient[~mask] == 0).all()
    assert gradient.isfinite().all()
    empty = mask & torch.tensor([[True], [False], [True]])
    expected = _loss(scores[[0, 2]], target[[0, 2]], 2)
    torch.testing.assert_close(_loss(padded, wanted, mask=empty), expected)
    assert _loss(padded, wanted, mask=torch.zeros_like(mask), reduction="sum") == 0


def test_certain_scores():
    scores = torch.tensor([math.inf, 0.0, 1.0], dtype=torch.float64)
    right = torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64)
    expected = _loss(scores[1:], right[1:], 1)
    torch.testing.assert_close(_loss(scores, right, 2), expected)
    assert _loss(scores, 1 - right, 1) == math.inf


@pytest.mark.parametrize("dim", [0, 1, -2])
def test_any_axis(dim):
    scores, target = _problem(4, 6)
    expected = _loss(scores, target, 3, reduction="none")
    moved = scores.movedim(-1, dim), target.movedim(-1, dim)
    torch.testing.assert_close(_loss(*moved, 3, dim=dim, reduction="none"), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_lower_precision(dtype):
    scores, target = _problem(5, 9)
    scores = scores.to(dtype)
    found = _loss(scores, target, 3)
    assert found.dtype == dtype
    torch.testing.assert_close(found.double(), _loss(scores.double(), target, 3), rtol=1e-2, atol=0)


def test_a_density_of_ones_own():
    class Steep:
        """A logistic density of another width."""

        def cdf(self, u):
            return torch.sigmoid(2 * u)

        def pdf(self, u):
            p = torch.sigmoid(-2 * u.abs())
            return 2 * p * (1 - p)

        def psi(self, p):
            return 0.5 * (torch.xlogy(p, p) + torch.xlogy(1 - p, 1 - p))

    scores, target = _problem()
    scores.requires_grad_()
    found = _loss(scores, target, 3, Steep(), temperature=2.0)
    expected = _loss(scores, target, 3, "logistic", temperature=1.0)
    torch.testing.assert_close(found, expected)
    gradients = (torch.autograd.grad(loss, scores)[0] for loss in (found, expected))
    torch.testing.assert_close(*gradients)


def test_learns_a_set():
    target = torch.tensor([0.0, 1, 0, 1, 1, 0])
    scores = torch.tensor([1.0, 0, 1, 0, 0, 1], requires_grad=True)
    criterion = so.losses.FenchelYoungLoss(3, temperature=0.5)
    optimizer = torch.optim.SGD([scores], lr=1.0)
    for _ in range(20):
        optimizer.zero_grad()
        criterion(scores, target).backward()
        optimizer.step()
    assert torch.equal(so.hard.topk(scores.detach(), 3), target)


def test_module_computes_the_function():
    scores, target = _problem()
    options = {"temperature": 0.3, "reduction": "sum"}
    module = so.losses.FenchelYoungLoss(3, "normal", **options)
    assert torch.equal(module(scores, target), _loss(scores, target, 3, "normal", **options))
    for part in ("k=3", "method='normal'", "temperature=0.3", "reduction='sum'"):
        assert part in repr(module)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((torch.tensor([1.0, 1, 0]), 1), {}, ValueError, r"target must sum to k = 1.*sum of 2"),
        ((torch.tensor([2.0, 0, 0]), 2), {}, ValueError, r"target must be between 0 and 1.*2"),
        ((torch.tensor([1.0, 0]), 1), {}, ValueError, r"target.*shape of scores, \(3,\).*\(2,\)"),
        (([1.0, 0, 0], 1), {}, TypeError, r"target must be a tensor, but got list"),
        ((torch.tensor([1.0, 0, 0]), 4), {}, ValueError, r"k must be between 0 and 3.*4"),
        ((torch.tensor([1.0, 0, 0]), 1, "lapsum"), {}, ValueError, r"did you mean 'laplace'"),
        ((torch.tensor([1.0, 0, 0]), 1, "sinkhorn"), {}, ValueError, r"method must be laplace"),
        ((torch.tensor([1.0, 0, 0]), 1), {"reduction": "max"}, ValueError, r"reduction must be"),
    ],
)
def test_wrong_arguments(arguments, options, error, message):
    with pytest.raises(error, match=message):
        _loss(torch.zeros(3), *arguments, **options)


@pytest.mark.parametrize("name", ORACLES)
def test_one_node_is_the_plain_path(name, monkeypatch):
    """Value and gradients, of τ too; beside what is absent, certain and spoiled."""
    draw = torch.Generator().manual_seed(0)
    x, y = (torch.randn(6, 9, generator=draw).double() for _ in range(2))
    x[4:] *= 40
    y = 3 * y.softmax(-1)
    y = torch.where(y > 1, 0.9, y)
    x[1, 2], y[1, 2], x[2, 4], x[3, 5] = -math.inf, 0, math.inf, math.nan
    found = []
    for plain in (False, True):
        if plain:
            monkeypatch.setattr(fenchel, "rows_loss", lambda x, tau, *others: others[-1](x, tau))
        inputs = x.clone().requires_grad_(), torch.full((6,), 0.7).double().requires_grad_()
        options = {"method": name, "temperature": inputs[1], "reduction": "none"}
        loss = so.losses.fenchel_young(inputs[0], y, **options)
        known = torch.where(loss.isfinite(), loss, 0.0).sum()
        found.append((loss.detach(), *torch.autograd.grad(known, inputs)))
    for own, other in zip(*found, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-9, atol=1e-9, equal_nan=True)

"""Perturbed top-k and permutations: against quadrature, and draw by draw against a walk."""

import math

import pytest
import torch

import softorder as so
from softorder._noise import NOISES
from softorder.ops import _crossings
from tests.oracles import perturbed as oracle

_X = torch.tensor([0.9, -0.3, 0.2, 0.5], dtype=torch.float64)
_V = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(5))

#: operator, its exact mean, upstream, what it changes in one draw
_CASES = {
    "topk": (
        lambda x, k, **o: so.perturbed_topk(x, k, **o),
        oracle.topk,
        lambda k: _V[0],
        _crossings.of_set,
    ),
    "places": (
        lambda x, k, **o: so.perturbed_permutation(x, k=k, descending=True, **o),
        oracle.places,
        lambda k: _V[:k],
        _crossings.of_places,
    ),
    "positions": (
        lambda x, k, **o: so.perturbed_permutation(x, k=k, descending=True, order="position", **o),
        oracle.positions,
        lambda k: _V[:k],
        _crossings.of_positions,
    ),
}


def _generator(seed=0):
    return torch.Generator().manual_seed(seed)


def _assert_mean(found, wanted, within=5):
    """Of many estimates: one false alarm in 1.7 million for each number, at 5 standard errors."""
    error = found.std(0) / math.sqrt(len(found))
    assert (error > 0).any()
    assert ((found.mean(0) - wanted).abs() <= within * error + 1e-12).all()


# ---- means ---------------------------------------------------------------------------------------


def test_the_oracle_is_softmax_for_one_gumbel_choice():
    found = oracle.topk(_X, 1, 0.7, "gumbel")
    torch.testing.assert_close(found, torch.softmax(_X / 0.7, -1), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", _CASES)
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_mean_is_the_integral(name, noise, k):
    run, exact, _, _ = _CASES[name]
    options = {"temperature": 0.6, "noise": noise, "samples": 10, "generator": _generator(k)}
    found = run(_X.expand(2000, 4), k, **options)
    _assert_mean(found, exact(_X, k, 0.6, noise))


@pytest.mark.parametrize("noise", NOISES)
def test_the_mean_of_ranks_is_a_soft_rank(noise):
    """So there is no perturbed rank: x_j + z_j > x_i + z_i is a matter of z_j - z_i alone."""
    p = so.perturbed_permutation(
        _X.expand(2000, 4), samples=10, noise=noise, generator=_generator()
    )
    ranks = (p * torch.arange(1.0, 5).unsqueeze(-1)).sum(-2)
    method, scale = ("normal", math.sqrt(2)) if noise == "normal" else ("logistic", 1.0)
    _assert_mean(ranks, so.soft_rank(_X, method=method, temperature=scale))


def test_few_draws_at_once_and_the_same_for_the_gradient(monkeypatch):
    """By hand, from the noise that was drawn: means, and Berthet's covariance with the noise."""
    drawn = []

    def draw(like, generator):
        drawn.append(NOISES["normal"].draw(like, generator))
        return drawn[-1]

    watched = {"normal": NOISES["normal"]._replace(draw=draw)}
    monkeypatch.setattr(so.ops._perturbed, "NOISES", watched)
    monkeypatch.setattr(so.ops._perturbed, "_AT_ONCE", 4 * 15)
    x = torch.randn(3, 5, dtype=torch.float64, generator=_generator(1)).requires_grad_()
    p = so.perturbed_topk(x, 2, temperature=0.7, samples=11, gradient="score")
    assert [len(z) for z in drawn] == [4, 4, 3]
    z = torch.cat(drawn)
    y = so.hard.topk(x + 0.7 * z, 2)
    torch.testing.assert_close(p, y.mean(0))
    v = torch.randn(3, 5, dtype=torch.float64, generator=_generator(2))
    (found,) = torch.autograd.grad((p * v).sum(), x)
    assert torch.equal(torch.cat(drawn[3:]), z)
    products = (y * v).sum(-1)
    for row in range(3):
        for i in range(5):
            pair = torch.stack([products[:, row], z[:, row, i]])
            torch.testing.assert_close(found[row, i], torch.cov(pair)[0, 1] / 0.7)


# ---- gradients -----------------------------------------------------------------------------------


def _chosen(name, keys, k):
    """The matrix, or the row, of one draw, by a walk."""
    best = sorted(range(len(keys)), key=lambda i: -keys[i])[:k]
    order = sorted(best) if name == "positions" else best
    y = torch.zeros(k, len(keys), dtype=torch.float64)
    for row, i in enumerate(order):
        y[row, i] = 1.0
    return y.sum(0) if name == "topk" else y


@pytest.mark.parametrize("name", _CASES)
@pytest.mark.parametrize("noise", NOISES)
def test_a_draw_changes_where_a_key_is_crossed(name, noise):
    """All keys that a score could cross, one after the other: before it, and behind it."""
    n, k, sigma = 7, 3, 0.8
    x, z = torch.randn(2, n, dtype=torch.float64, generator=_generator(3))
    keys = x + sigma * z
    V = torch.randn(k, n, dtype=torch.float64, generator=_generator(4))
    V = V[0] if name == "topk" else V
    wanted = torch.zeros(n, dtype=torch.float64)
    for i in range(n):
        for j in range(n):
            if i == j:
                continue
            ends = []
            for side in (1e-9, -1e-9):
                moved = keys.clone()
                moved[i] = keys[j] + side
                ends.append((V * _chosen(name, moved.tolist(), k)).sum())
            wanted[i] += NOISES[noise].pdf((keys[j] - x[i]) / sigma) * (ends[0] - ends[1])
    row = torch.full((1,), sigma, dtype=torch.float64)
    crossing = _CASES[name][3]
    found = crossing(keys.unsqueeze(0), k, x, row, V, NOISES[noise].pdf)
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("name", _CASES)
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("gradient", ["conditional", "score"])
def test_gradients_are_those_of_the_mean(name, noise, gradient):
    run, exact, upstream, _ = _CASES[name]
    k, V = 2, upstream(2)
    x, tau = _X.clone().requires_grad_(), torch.tensor(0.6, dtype=torch.float64, requires_grad=True)
    wanted = torch.autograd.grad((exact(x, k, tau, noise) * V).sum(), (x, tau))
    many = _X.expand(4000, 4).clone().requires_grad_()
    taus = torch.full((4000,), 0.6, dtype=torch.float64, requires_grad=True)
    options = {"noise": noise, "gradient": gradient, "samples": 8, "generator": _generator(6)}
    p = run(many, k, temperature=taus, **options)
    for found, right in zip(torch.autograd.grad((p * V).sum(), (many, taus)), wanted, strict=True):
        _assert_mean(found, right)


def test_one_draw_has_a_gradient():
    x = _X.clone().requires_grad_()
    wanted = torch.autograd.grad(oracle.topk(x, 2, 1.0, "normal") @ _V[0], x)[0]
    for gradient in ("conditional", "score"):
        many = _X.expand(30_000, 4).clone().requires_grad_()
        p = so.perturbed_topk(many, 2, samples=1, gradient=gradient, generator=_generator(8))
        _assert_mean(torch.autograd.grad((p @ _V[0]).sum(), many)[0], wanted)


def test_the_conditional_gradient_varies_less():
    """How much less, docs/sampling.md says."""

    def gradients(gradient, n, k):
        row = torch.randn(n, dtype=torch.float64, generator=_generator(9))
        x = row.expand(1000, n).clone().requires_grad_()
        options = {"temperature": 0.5, "samples": 20, "generator": _generator(10)}
        p = so.perturbed_topk(x, k, gradient=gradient, **options)
        v = torch.randn(n, dtype=torch.float64, generator=_generator(11))
        return torch.autograd.grad((p @ v).sum(), x)[0]

    for n, k, factor in ((4, 2, 18), (20, 5, 46), (200, 20, 410)):
        fine = gradients("conditional", n, k)
        ratio = gradients("score", n, k).var(0).sum() / fine.var(0).sum()
        assert ratio.item() == pytest.approx(factor, rel=0.05)
        assert fine.var(0).sum().sqrt() < 0.25 * fine.mean(0).norm()


def test_a_column_of_its_own_is_not_the_gradient():
    """E[Y_ji Z_i]/σ, the code in circulation for patches, misses what a score does to others."""
    V, k, sigma = _V[:2], 2, 0.6
    x = _X.clone().requires_grad_()
    p = oracle.positions(x, k, sigma, "normal")
    wanted = torch.autograd.grad((p * V).sum(), x, retain_graph=True)[0]
    own = torch.zeros_like(wanted)
    for i in range(4):
        own += (
            V[:, i]
            @ torch.stack([torch.autograd.grad(p[j, i], x, retain_graph=True)[0] for j in range(k)])
            * torch.nn.functional.one_hot(torch.tensor(i), 4)
        )
    assert (own - wanted).norm() > 0.3 * wanted.norm()


def test_second_derivatives_are_refused():
    x = _X.clone().requires_grad_()
    (slope,) = torch.autograd.grad(so.perturbed_topk(x, 2)[0], x, create_graph=True)
    with pytest.raises(RuntimeError, match="no second derivatives"):
        slope.sum().backward()


# ---- arguments -----------------------------------------------------------------------------------


@pytest.mark.parametrize("gradient", ["conditional", "score"])
def test_what_takes_no_part(gradient):
    x = torch.tensor([0.3, math.nan, -math.inf, math.inf, 0.1, -0.2], requires_grad=True)
    mask = torch.tensor([True, False, True, True, True, True])
    options = {"gradient": gradient, "generator": _generator()}
    p = so.perturbed_topk(x, 2, mask=mask, **options)
    assert p[[1, 2, 3]].tolist() == [0.0, 0.0, 1.0]
    (found,) = torch.autograd.grad(p[0], x)
    assert found[[1, 2, 3]].tolist() == [0.0] * 3
    assert (found[[0, 4, 5]] != 0).all()
    alone = torch.tensor([0.3, math.inf, 0.1, -0.2])
    few = so.perturbed_topk(torch.tensor([0.3, -math.inf, -math.inf]), 2, **options)
    assert few.tolist() == [1.0, 0.0, 0.0]
    many = {**options, "samples": 20_000}
    padded = so.perturbed_topk(x, 2, mask=mask, **many)[[0, 3, 4, 5]]
    torch.testing.assert_close(padded, so.perturbed_topk(alone, 2, **many), rtol=0, atol=0.03)


@pytest.mark.parametrize("order", ["score", "position"])
@pytest.mark.parametrize("descending", [True, False])
def test_places_of_what_takes_no_part(order, descending):
    x = torch.tensor([math.inf, 0.0, -math.inf, 100.0], requires_grad=True)
    p = so.perturbed_permutation(x, order=order, descending=descending, generator=_generator())
    wanted = so.hard.permutation(x, descending=descending)
    if order == "position":
        wanted = torch.eye(4)[[0, 1, 3]]
        wanted = torch.cat([wanted, torch.zeros(1, 4)])
    assert torch.equal(p, wanted)
    assert torch.autograd.grad(p[0].sum() + p[1, 1], x)[0].isfinite().all()


@pytest.mark.parametrize("run", [so.perturbed_topk, so.perturbed_permutation])
def test_nan_stays_in_its_row(run):
    x = torch.zeros(2, 3)
    x[1, 0] = math.nan
    x.requires_grad_()
    p = run(x, k=2)
    assert p[0].isfinite().all()
    assert p[1].isnan().all()
    (found,) = torch.autograd.grad(p[0].sum(), x)
    assert found[0].isfinite().all()


def test_axes_and_dtypes():
    x = torch.randn(2, 3, 4, generator=_generator())
    wanted = so.perturbed_topk(x, 2, generator=_generator(1))
    moved = so.perturbed_topk(x.movedim(-1, 0), 2, dim=0, generator=_generator(1))
    assert torch.equal(moved.movedim(0, -1), wanted)
    flat = so.perturbed_topk(x, 5, dim=(1, 2), generator=_generator(1))
    assert torch.equal(flat.flatten(1), so.perturbed_topk(x.flatten(1), 5, generator=_generator(1)))
    smallest = so.perturbed_topk(-x, 2, largest=False, generator=_generator(1))
    assert torch.equal(smallest, wanted)
    rows = so.perturbed_permutation(x.movedim(-1, 0), k=3, dim=0, generator=_generator(1))
    assert rows.shape == (2, 3, 3, 4)
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        assert so.perturbed_topk(x.to(dtype), 2).dtype == dtype
    torch.testing.assert_close(wanted.sum(-1), torch.full((2, 3), 2.0))


def test_one_k_per_row():
    x = torch.randn(5, 4, dtype=torch.float64, generator=_generator()).requires_grad_()
    k = torch.arange(5)
    p = so.perturbed_topk(x, k, generator=_generator(1))
    torch.testing.assert_close(p.sum(-1), k.double())
    (found,) = torch.autograd.grad((p * x.detach()).sum(), x)
    assert torch.equal(found[[0, 4]], torch.zeros(2, 4, dtype=torch.float64))
    for size in (1, 2, 3):
        row = x.detach().clone().requires_grad_()
        p = so.perturbed_topk(row, size, generator=_generator(1))
        (alone,) = torch.autograd.grad((p * row.detach()).sum(), row)
        torch.testing.assert_close(found[size], alone[size])


def test_few_scores():
    assert so.perturbed_topk(torch.zeros(2, 0), 0).shape == (2, 0)
    assert so.perturbed_topk(torch.zeros(0, 3), 1).shape == (0, 3)
    assert so.perturbed_topk(torch.zeros(1), 1).tolist() == [1.0]
    assert so.perturbed_permutation(torch.zeros(2, 0)).shape == (2, 0, 0)
    assert so.perturbed_permutation(torch.zeros(2, 3), k=0).shape == (2, 0, 3)
    x = torch.zeros(3, requires_grad=True)
    so.perturbed_topk(x, 3).sum().backward()
    assert x.grad.tolist() == [0.0] * 3


def test_wrong_arguments():
    x = torch.zeros(4)
    with pytest.raises(ValueError, match="k must be whole for a perturbed top-k"):
        so.perturbed_topk(x, 1.5)
    with pytest.raises(ValueError, match="k must be between 0 and 4"):
        so.perturbed_topk(x, 5)
    with pytest.raises(ValueError, match="noise must be one of normal, gumbel"):
        so.perturbed_topk(x, 1, noise="uniform")
    with pytest.raises(ValueError, match="gradient must be one of conditional, score"):
        so.perturbed_topk(x, 1, gradient="pathwise")
    with pytest.raises(ValueError, match="samples must be at least 1, but got 0"):
        so.perturbed_topk(x, 1, samples=0)
    with pytest.raises(ValueError, match="temperature must be finite and > 0"):
        so.perturbed_topk(x, 1, temperature=-1.0)
    with pytest.raises(ValueError, match="order must be one of score, position"):
        so.perturbed_permutation(x, order="index")
    with pytest.raises(TypeError, match="k must be an int or None"):
        so.perturbed_permutation(x, k=1.0)

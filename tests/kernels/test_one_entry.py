"""One entry a row: the compiled kernels against plain torch in float64, every density and level."""

import math
from functools import lru_cache
from itertools import product

import pytest
import torch

from softorder.densities import BUILT_IN
from softorder.kernels import _native
from softorder.kernels._density_numbers import number_of
from softorder.kernels.one_entry import cpu, reference

KS = (0, 1, 2, 5)  # 0 is a softmax


def _problem(n, dtype, temperature, seed=0):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(12, n, dtype=torch.float64, generator=generator).to(dtype)
    index = torch.randint(n, (12,), generator=generator)
    scores[0, index[0]] -= 1e4  # hopeless
    scores[1, :3] += 100  # a gap that underflows
    scores[2, 0] = -math.inf
    scores[3, index[3]] = -math.inf
    index[4] = -1
    scores[4, 0] = math.nan  # ignored
    tau = torch.full((12,), temperature, dtype=torch.float64)
    tau[5] *= 3
    shares = torch.rand(12, len(KS), dtype=torch.float64, generator=generator)
    shares[6, 1:] = 0
    shares[7, 0] = 0
    return scores, index, tau, shares / shares.sum(-1, keepdim=True)


CASES = tuple(product((torch.float32, torch.float64), ((6, 1e-3), (70, 0.3), (33, 30.0))))


@lru_cache
def _right(density, dtype, n, tau, apart):
    """Losses, log p, pulls and gradients in float64, by plain torch; the same for every level."""
    scores, index, taus, shares = _problem(n, dtype, tau)
    number = number_of(BUILT_IN[density])
    with _native.use("torch"):
        found = reference.loss(scores.double(), index, taus, shares, KS, number, apart)
        rest = scores.double(), index, taus, found[3], KS, number, True
        return *found[:3], *reference.vjp(UPSTREAM, found[2], *rest)


UPSTREAM = torch.linspace(-1, 2, 12, dtype=torch.float64)


@pytest.mark.parametrize("density", list(BUILT_IN))
@pytest.mark.parametrize("apart", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_losses_and_gradients_are_those_of_plain_torch(level, density, apart):
    number = number_of(BUILT_IN[density])
    for dtype, (n, tau) in CASES:
        scores, index, taus, shares = _problem(n, dtype, tau)
        losses, log_p, pull, by_scores, by_tau = _right(density, dtype, n, tau, apart)
        with _native.use("native"), _native.use_level(level):
            found = cpu.loss(scores, index, taus, shares, KS, number, apart)
            rest = scores, index, taus, found[3], KS, number, True
            back = cpu.vjp(UPSTREAM, pull, *rest)
        narrow = dtype == torch.float32
        limits = {"rtol": 3e-5, "atol": 3e-5 / min(tau, 1)} if narrow else RIGHT
        torch.testing.assert_close(found[:2], (losses, log_p), **limits)
        if not narrow:
            torch.testing.assert_close(found[2], pull, rtol=1e-9, atol=1e-9)
        _close(back[0], by_scores, by_scores.abs().amax(-1, keepdim=True), narrow)
        _close(back[1], by_tau, by_tau.abs().clamp(min=1 / tau), narrow)
        assert all((value[4] == 0).all() for value in (*found[:3], *back))


RIGHT = {"rtol": 1e-11, "atol": 1e-11}


def _close(found, expected, scale, narrow):
    scale = scale.clamp(min=1e-30)
    limit = 2e-4 if narrow else 1e-11
    torch.testing.assert_close(found.double() / scale, expected / scale, rtol=0, atol=limit)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_losses_are_reduced_to_one_number_and_back(level, dtype):
    scores, index, _, shares = _problem(70, dtype, 1.0)
    number, shares = number_of(BUILT_IN["logistic"]), shares[:1].contiguous()
    tau = torch.full((), 0.3, dtype=torch.float64)
    with _native.use("native"), _native.use_level(level):
        losses, _, pull, b = cpu.loss(scores, index, tau, shares, KS, number, True)
        rest = shares, KS, number, True
        total, _ = cpu.reduced(scores, index, 0.3, *rest, False)
        mean, kept = cpu.reduced(scores, index, 0.3, *rest, True)
        back = cpu.vjp(UPSTREAM[-1:], pull, scores, index, tau, b, KS, number, False)[0]
        again = cpu.reduced_vjp(UPSTREAM[-1].item(), kept, scores, index, 0.3, KS, number)
    torch.testing.assert_close(total, losses.sum().to(dtype))
    torch.testing.assert_close(mean, (losses.sum() / (index >= 0).sum()).to(dtype))
    assert torch.equal(again, back)


def test_nan_stays_in_its_row():
    scores, index, tau, shares = _problem(9, torch.float32, 1.0)
    scores[8, 3] = math.nan
    number = number_of(BUILT_IN["laplace"])
    with _native.use("native"):
        losses, _, pull, b = cpu.loss(scores, index, tau, shares, KS, number, True)
        gradient, by_tau = cpu.vjp(UPSTREAM, pull, scores, index, tau, b, KS, number, True)
    spoiled = losses.isnan()
    assert spoiled.nonzero().flatten().tolist() == [8]
    assert (gradient[8] == 0).all()  # nothing passes a NaN
    assert by_tau[8] == 0
    assert gradient.isfinite().all()


def test_where_only_the_target_is_near_its_threshold_the_small_rest_is_exact():
    """1 - q_y is a sum over the others: in float32 a difference would be 0 here."""
    scores = torch.tensor([[0.0, -30.0, -40.0]])
    index, tau = torch.tensor([0]), torch.ones((), dtype=torch.float64)
    number = number_of(BUILT_IN["logistic"])
    b = torch.zeros(1, 2, 1)
    one = torch.ones(1, 1, dtype=torch.float64)
    with _native.use("native"):
        found = cpu.vjp(one[0], one, scores, index, tau, b, (1,), number, False)[0]
    f = torch.sigmoid(scores.double()) * torch.sigmoid(-scores.double())
    q = f / f.sum()
    expected = 0.5 * torch.stack([q[0, 1] + q[0, 2], -q[0, 1], -q[0, 2]])
    torch.testing.assert_close(found[0].double(), expected, rtol=1e-5, atol=0)

"""Projections: against enumeration and a convex solver, with derivatives, masks and wrong calls."""

import math

import numpy as np
import pytest
import torch
from scipy import optimize

import softorder as so
from tests.oracles import projection

_GENERATOR = np.random.default_rng(0)


def _scores(*shape):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def _nearest(x, low, high, w, total):
    """By scipy's bounded scalar minimisation of the dual, which is concave in λ."""

    def minus_dual(multiplier):
        p = np.clip(x - multiplier * w, low, high)
        return -(0.5 * np.sum((p - x) ** 2) + multiplier * (w @ p - total))

    found = optimize.minimize_scalar(
        minus_dual, bounds=(-60, 60), method="bounded", options={"xatol": 1e-13}
    )
    return np.clip(x - found.x * w, low, high)


@pytest.mark.parametrize("total", [0.3, 1.0, 4.0])
def test_simplex(total):
    for x in _scores(5, 6):
        found = so.projections.simplex(x, total)
        expected = total * projection.soft_topk(x.numpy() / total, 1, 1.0)
        np.testing.assert_allclose(found.numpy(), expected, rtol=0, atol=1e-12)
        torch.testing.assert_close(found.sum().item(), total)


@pytest.mark.parametrize(("budget", "cap"), [(0.0, 1.0), (2.0, 1.0), (2.7, 1.0), (3.0, 0.6)])
def test_capped_simplex(budget, cap):
    for x in _scores(5, 6):
        found = so.projections.capped_simplex(x, budget, cap)
        expected = cap * projection.soft_topk(x.numpy() / cap, budget / cap, 1.0)
        np.testing.assert_allclose(found.numpy(), expected, rtol=0, atol=1e-12)


def test_box_section():
    for n in (1, 2, 7):
        for _ in range(10):
            x, w = _GENERATOR.normal(size=n), _GENERATOR.uniform(0.2, 2, size=n)
            low = _GENERATOR.normal(size=n) - 1
            high = low + _GENERATOR.exponential(size=n)
            share = _GENERATOR.uniform(0.01, 0.99)
            total = (1 - share) * (w @ low) + share * (w @ high)
            arguments = [torch.from_numpy(v) for v in (x, low, high)]
            found = so.projections.box_section(*arguments, total, torch.from_numpy(w)).numpy()
            np.testing.assert_allclose(w @ found, total, rtol=0, atol=1e-12)
            np.testing.assert_allclose(found, _nearest(x, low, high, w, total), rtol=0, atol=1e-6)


def test_box_section_without_bounds_and_at_its_corners():
    x = torch.tensor([1.0, 2.0, 6.0], dtype=torch.float64)
    plane = so.projections.box_section(x, -math.inf, math.inf, 0.0)
    torch.testing.assert_close(plane, x - 3)
    half = so.projections.box_section(x, 0.0, math.inf, 1.0)
    torch.testing.assert_close(half, so.projections.simplex(x))
    for total, corner in ((0.0, 0.0), (3.0, 1.0)):
        found = so.projections.box_section(x, 0.0, 1.0, total)
        torch.testing.assert_close(found, torch.full_like(x, corner))


def test_derivatives():
    x = _scores(2, 5).requires_grad_()
    budget = torch.tensor([1.3, 2.0], dtype=torch.float64, requires_grad=True)
    capped = so.projections.capped_simplex
    assert torch.autograd.gradcheck(so.projections.simplex, x)
    assert torch.autograd.gradcheck(capped, (x, budget))
    low = torch.full((5,), -0.7, dtype=torch.float64, requires_grad=True)
    high = torch.tensor([0.5, 1.0, 0.4, 2.0, 1.5], dtype=torch.float64, requires_grad=True)
    w = torch.linspace(0.5, 2, 5, dtype=torch.float64).requires_grad_()
    inputs = (x, low, high, budget, w)
    function = so.projections.box_section
    assert torch.autograd.gradcheck(function, inputs, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(function, inputs)


def test_any_axis_dtype_and_mask():
    x = _scores(3, 4, 5)
    mask = torch.rand(3, 4, 5, generator=torch.Generator().manual_seed(1)) < 0.7
    mask[..., 0] = True
    for operator in (
        so.projections.simplex,
        lambda x, **o: so.projections.capped_simplex(x, 1, **o),
        lambda x, **o: so.projections.box_section(x, 0.0, 2.0, 1.0, **o),
    ):
        whole = operator(x, dim=1)
        torch.testing.assert_close(whole, operator(x.movedim(1, -1)).movedim(-1, 1))
        masked = operator(torch.where(mask, x, math.nan), mask=mask)
        assert (masked[~mask] == 0).all()
        torch.testing.assert_close(masked[1, 2][mask[1, 2]], operator(x[1, 2][mask[1, 2]]))
        half = operator(x.half())
        assert half.dtype == torch.float16
        torch.testing.assert_close(half.double(), operator(x), rtol=0, atol=3e-3)
    batched = torch.func.vmap(lambda x: so.projections.box_section(x, 0.0, 1.0, 2.0))(x)
    torch.testing.assert_close(batched, so.projections.box_section(x, 0.0, 1.0, 2.0))


def test_birkhoff_is_the_entropic_projection():
    """Optimality: log P - scores/τ is a sum of a number per row and one per column."""
    scores = _scores(4, 4)
    P = so.projections.birkhoff(scores, temperature=0.7)
    assert torch.equal(P, so.sinkhorn(scores, temperature=0.7))
    ones = torch.ones(4, dtype=torch.float64)
    torch.testing.assert_close(P.sum(0), ones)
    torch.testing.assert_close(P.sum(1), ones)
    dual = P.log() - scores / 0.7
    dual = dual - dual.mean(0, keepdim=True)
    torch.testing.assert_close(dual, dual.mean(1, keepdim=True).expand(4, 4))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: so.projections.simplex(x, 0.0), r"total must be finite and > 0, but got 0"),
        (lambda x: so.projections.capped_simplex(x, 4), r"budget must be between 0 and 3.*got 4"),
        (lambda x: so.projections.capped_simplex(x, 1, -1.0), r"cap must be finite and > 0"),
        (lambda x: so.projections.box_section(x, 1.0, 0.0, 1.0), r"lower must be <= upper"),
        (lambda x: so.projections.box_section(x, 0.0, 1.0, 4.0), r"total must be between 0 and 3"),
        (
            lambda x: so.projections.box_section(x, torch.zeros(2), 1.0, 1.0),
            r"lower must broadcast to the shape of scores, \(3,\), but got shape \(2,\)",
        ),
        (
            lambda x: so.projections.box_section(x, 0.0, 1.0, 1.0, torch.zeros(3)),
            r"weights must be finite and > 0, but got 0",
        ),
    ],
)
def test_wrong_calls(call, message):
    with pytest.raises(ValueError, match=message):
        call(torch.randn(3))

"""How surely scores have their places: the compiled kernel, its reference, and plain autograd."""

import math

import pytest
import torch

import softorder as so
from softorder.densities import BUILT_IN
from softorder.kernels import _native
from softorder.kernels._density_numbers import number_of
from softorder.kernels.placement import placement
from tests.runtime.processes import run

_NUMBER = {name: number_of(law) for name, law in BUILT_IN.items()}
_DENSITIES = pytest.mark.parametrize("density", _NUMBER)
_DTYPES = pytest.mark.parametrize(
    "dtype", [torch.float64, pytest.param(torch.float32, marks=pytest.mark.slow)], ids=str
)


def _scores(n, dtype):
    """Ordinary rows, ties, and one row of each special kind."""
    generator = torch.Generator().manual_seed(n)
    scores = torch.randn(9, n, generator=generator, dtype=torch.float64)
    scores[1, 0], scores[2, -1] = math.inf, -math.inf
    scores[3, : n // 2], scores[3, -1] = -math.inf, math.inf
    scores[4, n // 2] = math.nan
    scores[5] = -math.inf
    scores[6, : max(n - 1, 1)] = math.inf
    scores[7] = (3 * scores[7]).round() / 2
    return scores.to(dtype)


def _places(scores, wrong):
    """Right places, or those of somebody else; a few ranges, and a few that nobody asks for."""
    n = scores.shape[-1]
    first = scores.argsort(-1).argsort(-1)
    if wrong:
        first = first.flip(-1).contiguous()
    last = first.clone()
    last[..., : n // 3] = (last[..., : n // 3] + 2).clamp(max=n - 1)
    first[..., n // 2] = -1
    return first, last


@_DTYPES
@_DENSITIES
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("n", [1, 6, 40])
def test_both_agree(density, n, descending, dtype):
    scores = _scores(n, dtype)
    temperature = torch.linspace(0.2, 2, len(scores), dtype=torch.float64)
    for wrong in (False, True):
        first, last = _places(scores, wrong)
        options = scores, temperature, first, last, descending, _NUMBER[density]
        before, found = _native.calls["placement_forward"], {}
        for kind in _native.KINDS:
            with _native.use(kind):
                found[kind] = placement.forward(*options)
        assert _native.calls["placement_forward"] == before + 1
        close = {"rtol": 1e-11, "atol": 1e-11, "equal_nan": True}
        torch.testing.assert_close(found["torch"][:3], found["native"][:3], **close)
        upstream = torch.linspace(-1, 2, scores.numel()).sin().double().view(scores.shape)
        gradients = []
        for kept_by, kind in (("native", "torch"), ("native", "native"), ("torch", "native")):
            kept = list(placement.keep(scores, found[kept_by], first, last, _NUMBER[density]))
            with _native.use(kind):
                settings = temperature, descending, True, _NUMBER[density]
                gradients.append(placement.vjp(upstream, kept, *settings))
        close = {"rtol": 1e-10, "atol": 1e-10 if dtype is torch.float64 else 1e-5}
        torch.testing.assert_close(gradients[0], gradients[1], **close)
        torch.testing.assert_close(gradients[1], gradients[2], rtol=0, atol=0)


@_DENSITIES
def test_derivatives_are_those_of_the_losses(density):
    """The vector-Jacobian product against differences, off the corners of uniform."""
    x = torch.tensor([0.3, -1.2, 2.0, 0.9, 1.05], dtype=torch.float64)
    first = torch.tensor([2, 0, 4, 1, 3] if density == "uniform" else [4, 0, 1, 3, 2])
    tau = torch.tensor([2.3 if density == "uniform" else 0.4], dtype=torch.float64)

    def total(scores, temperature):
        pair = first.unsqueeze(0), first.unsqueeze(0)
        with _native.use("native"):
            found = placement.forward(scores[None], temperature, *pair, False, _NUMBER[density])
        return found[0].sum(), found

    _, found = total(x, tau)
    kept = [x[None], *found[1:], first[None], first[None]]
    with _native.use("native"):
        by, heat = placement.vjp(
            torch.ones_like(found[0]), kept, tau, False, True, _NUMBER[density]
        )
    step = 1e-6
    for i in range(5):
        moved = step * torch.eye(5, dtype=torch.float64)[i]
        slope = (total(x + moved, tau)[0] - total(x - moved, tau)[0]) / (2 * step)
        assert by[0, i] == pytest.approx(slope.item(), abs=1e-7)
    slope = (total(x, tau + step)[0] - total(x, tau - step)[0]) / (2 * step)
    assert heat.item() == pytest.approx(slope.item(), abs=1e-7)


@pytest.mark.parametrize("method", ["laplace", "normal"])
def test_thresholds_follow_their_neighbours_across_wide_gaps(kernel, method):
    """Midway between two scores that are thousands of τ apart a threshold has no slope left."""
    x = torch.tensor([0.0, 5.0, 11.0], dtype=torch.float64, requires_grad=True)
    tau = 1e-3
    loss = so.losses.permutation_cross_entropy(
        x, torch.tensor([1, 0, 2]), temperature=tau, method=method, reduction="sum"
    )
    (gradient,) = torch.autograd.grad(loss, x)
    if method == "laplace":  # (t - x_0)/τ + (x_1 - t)/τ with t = (x_0 + x_1)/2, but for constants
        assert loss.item() == pytest.approx(5 / tau + 2 * math.log(2))
        expected = [-1 / tau, 1 / tau, 0.0]
        torch.testing.assert_close(gradient.tolist(), expected, rtol=1e-12, atol=1e-9)
    assert gradient.sum().abs() <= 1e-9 * gradient.abs().max()  # a shift changes nothing


_LONG = """
import torch
import softorder as so
from softorder.kernels import _native
torch.set_num_threads(3)
loss = so.losses.permutation_cross_entropy
linear = ("laplace", 30_000, 1e-4), ("laplace", 30_000, 0.3), ("uniform", 30_000, 0.2)
smooth = [(name, 500, tau) for name in ("logistic", "normal", "cauchy") for tau in (3e-3, 0.3)]
for method, n, temperature in (*linear, *smooth):
    torch.manual_seed(0)
    x = torch.randn(2, n, dtype=torch.float64, requires_grad=True)
    target = x.argsort(-1).argsort(-1)
    if method != "uniform":
        target = (target + 7) % n
    tau = torch.tensor([1.0, 2.0], dtype=torch.float64) * temperature
    tau.requires_grad_()
    answers = []
    for kind in _native.KINDS:
        with _native.use(kind):
            y = loss(x, target, temperature=tau, method=method, reduction="none")
            y = torch.where(y.isfinite(), y, 0)
            answers.append((y.detach(), *torch.autograd.grad(y.sin().sum(), (x, tau))))
    for one, other in zip(*answers):
        assert (one - other).abs().max() <= 1e-8 * other.abs().max()
"""


def test_long_rows_at_every_simd_level(level):
    run(_LONG, SOFTORDER_SIMD=level)


@_DENSITIES
def test_the_operators_agree_with_their_fakes(density):
    x, tau = torch.randn(3, 20), torch.tensor(0.5).double()
    first = x.argsort(-1).argsort(-1)
    arguments = x, tau, first, first, False, _NUMBER[density]
    operator = torch.ops.softorder.placement
    torch.library.opcheck(operator, arguments, test_utils="test_faketensor")
    kept = [x, *placement.forward(*arguments)[1:], first, first]
    backward = torch.ones_like(x, dtype=torch.float64), kept, tau, False, True, _NUMBER[density]
    torch.library.opcheck(torch.ops.softorder.placement_vjp, backward, test_utils="test_faketensor")

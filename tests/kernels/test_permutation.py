"""Compiled rows of soft permutations, and their gradients, against direct sums."""

import itertools
import math

import numpy as np
import pytest
import torch

import softorder as so
from softorder.densities import BUILT_IN
from softorder.kernels import _native, permutation
from softorder.kernels._density_numbers import number_of
from tests import bank
from tests.kernels.fused import vjp
from tests.oracles.densities import DENSITIES

_TOLERANCE = {torch.float64: 1e-11, torch.float32: 1e-5}
_N = 90


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize(("descending", "k"), [(False, _N), (True, _N), (True, 4), (False, 7)])
@pytest.mark.parametrize("density", BUILT_IN)
def test_permutations(density, descending, k, dtype):
    options = number_of(BUILT_IN[density]), k
    for family, temperature in itertools.product(("normal", "ties", "cauchy"), (1e-3, 0.3, 1e3)):
        x = torch.from_numpy(bank.row(family, _N)).to(dtype)
        tau = torch.tensor(temperature, dtype=torch.float64)
        found = permutation.permutation.forward(x, tau, descending, *options)
        p, t, rest = found[0], found[1].numpy(), found[2].numpy()
        u = ((t[:, None] - x.double().numpy()) + rest[:, None]) / temperature
        tails = DENSITIES[density].tail(np.abs(u))
        expected = np.diff(np.where(u < 0, tails, 1 - tails), axis=0)
        expected = expected[::-1] if descending else expected
        tolerance = 1e-12 if dtype == torch.float64 else 1e-7
        np.testing.assert_allclose(p.double(), expected, rtol=1e-6, atol=tolerance)
        assert (p >= 0).all()
        np.testing.assert_allclose(p.double().sum(-1), 1, atol=10 * tolerance)
        v = torch.randn(k, _N, generator=torch.manual_seed(0), dtype=torch.float64)
        pdf = np.where(np.isfinite(u), DENSITIES[density].pdf(np.abs(u)), 0.0) / temperature
        rows = v.flip(0).numpy() if descending else v.numpy()
        weight = np.zeros_like(u)
        weight[1:] += rows
        weight[:-1] -= rows
        slope = pdf.sum(1, keepdims=True)
        mean = (weight * pdf).sum(1, keepdims=True) / np.where(slope > 0, slope, 1)
        terms = pdf * (mean - weight)
        upstream = v.to(dtype)
        gradient, _ = vjp(permutation.permutation, upstream, x, found, tau, descending, *options)
        scale = np.abs(terms).sum(0)
        allowed = _TOLERANCE[dtype] * scale + torch.finfo(dtype).eps * scale.max()
        allowed += torch.finfo(dtype).tiny
        assert (np.abs(gradient.double().numpy() - terms.sum(0)) <= allowed).all()


@pytest.mark.parametrize("density", BUILT_IN)
@pytest.mark.parametrize("descending", [False, True])
def test_infinities_and_nan(density, descending):
    inf, nan = math.inf, math.nan
    rows = [
        [1, inf, -inf, 2, inf, -inf, 0.5],
        [1, 2, nan, 3, 4, inf, -inf],
        [-inf] * 7,
        [inf] * 7,
        [3, 1, 2, 5, 4, 7, 6],
    ]
    answers = []
    for kind in _native.KINDS:
        x = torch.tensor(rows, dtype=torch.float64, requires_grad=True)
        before = _native.calls["permutation_backward"]
        with _native.use(kind):
            p = so.soft_permutation(x, method=density, temperature=0.3, descending=descending)
            upstream = torch.linspace(1, 2, p.numel(), dtype=p.dtype).cos().view_as(p)
            (gradient,) = torch.autograd.grad(p, x, upstream)
        assert _native.calls["permutation_backward"] == before + (kind == "native")
        answers.append((p.detach(), gradient[[0, 2, 3, 4]]))
    torch.testing.assert_close(*answers, equal_nan=True)

"""The fused projections against the plain path, whatever the rows hold."""

import itertools
import math

import pytest
import torch

from softorder.kernels import _native, permutahedron
from softorder.relaxations import PermutahedronMethod
from tests import bank
from tests.kernels.fused import vjp

_OPERATORS = ("rank", "sort")
_TOLERANCE = {torch.float64: 1e-10, torch.float32: 2e-5}
_EVERY = [
    pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str),
    pytest.mark.parametrize("regularization", ["l2", "kl"]),
    pytest.mark.parametrize("operator", _OPERATORS),
]


def _every(test):
    for mark in _EVERY:
        test = mark(test)
    return test


def _plain(operator, regularization, scores, temperature, descending, upstream):
    """Value and gradient in float64, without compiled kernels."""
    scores = scores.double().requires_grad_()
    compute = getattr(PermutahedronMethod(regularization), f"soft_{operator}")
    with _native.use("torch"):
        result = compute(scores, temperature, descending)
        (gradient,) = torch.autograd.grad(result, scores, upstream.double())
    return result.detach(), gradient


def _compare(operator, regularization, scores, temperature, descending):
    upstream = torch.linspace(-1, 2, scores.numel(), dtype=scores.dtype).sin().view_as(scores)
    kernel, entropic = getattr(permutahedron, operator), regularization == "kl"
    before = _native.calls.copy()
    found = kernel.forward(scores, temperature, descending, entropic)
    gradient, _ = vjp(kernel, upstream, scores, found, temperature, descending, entropic)
    assert sum((_native.calls - before).values()) == 2
    expected = _plain(operator, regularization, scores, temperature, descending, upstream)
    tolerance = _TOLERANCE[scores.dtype]
    for ours, theirs in zip((found[0], gradient), expected, strict=True):
        finite = theirs[theirs.isfinite()]
        scale = finite.abs().max().item() if len(finite) else 1.0
        torch.testing.assert_close(
            ours.double(), theirs, rtol=0, atol=tolerance * scale, equal_nan=True
        )


@_every
@pytest.mark.parametrize("family", bank.FAMILIES)
def test_rows_of_the_bank(family, operator, regularization, dtype):
    scores = torch.from_numpy(bank.row(family, 60)).to(dtype)
    for value, descending in itertools.product((1e-3, 0.3, 20.0), (False, True)):
        temperature = torch.tensor(value, dtype=torch.float64)
        _compare(operator, regularization, scores, temperature, descending)


@_every
def test_infinities_and_nan(operator, regularization, dtype):
    x = torch.randn(5, 9, generator=torch.Generator().manual_seed(3)).to(dtype)
    x[0, [1, 4]] = -math.inf
    x[1, [0, 2, 8]] = math.inf
    x[2, 3], x[2, 5] = math.inf, -math.inf
    x[3] = -math.inf
    x[4, 6] = math.nan
    temperature = torch.tensor([0.2, 1.0, 3.0, 1.0, 1.0], dtype=torch.float64)
    for descending in (False, True):
        _compare(operator, regularization, x, temperature, descending)


@_every
def test_a_long_row_by_several_threads(operator, regularization, dtype):
    """Parts of the row are pooled apart, and joined."""
    scores = torch.randn(200_000, generator=torch.Generator().manual_seed(4)).to(dtype)
    temperature = torch.tensor(1e-4, dtype=torch.float64)
    kernel, entropic = getattr(permutahedron, operator), regularization == "kl"
    before, results = torch.get_num_threads(), []
    for threads in (1, 3):
        torch.set_num_threads(threads)
        try:
            found = kernel.forward(scores, temperature, False, entropic)
            gradient, _ = vjp(kernel, scores, scores, found, temperature, False, entropic)
            results.append((found[0], gradient))
        finally:
            torch.set_num_threads(before)
    torch.testing.assert_close(*results)

"""Rows of soft permutations by Triton kernels, in Triton's interpreter."""

import math

import numpy as np
import pytest
import torch

import softorder as so
from softorder.densities import BUILT_IN
from softorder.kernels import _native, _triton, permutation
from softorder.kernels._density_numbers import number_of
from tests import test_ordering_accuracy as accuracy
from tests.kernels import test_permutation as direct
from tests.kernels.interpreted import laws, only_triton, triton_serves  # noqa: F401
from tests.kernels.watched import Watched

pytest.importorskip("triton", reason="Triton is not installed")
pytestmark = pytest.mark.usefixtures("triton_serves")

_DENSITIES = pytest.mark.parametrize("density", BUILT_IN)


@pytest.mark.slow
@pytest.mark.usefixtures("only_triton")
@_DENSITIES
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_bank(density, dtype):
    accuracy.test_permutations(density, dtype, 12)


@pytest.mark.slow
@_DENSITIES
@pytest.mark.parametrize("dtype", direct._TOLERANCE, ids=str)
@pytest.mark.parametrize(("descending", "k"), [(False, 90), (True, 90), (True, 4), (False, 7)])
def test_rows_and_gradients(density, descending, k, dtype):
    direct.test_permutations(density, descending, k, dtype)


@pytest.mark.parametrize("density", ["laplace", pytest.param("normal", marks=pytest.mark.slow)])
@pytest.mark.parametrize("descending", [False, True])
def test_blocks_chunks_and_pieces(monkeypatch, density, descending):
    """A few rows of P, in several programs, against plain torch; float32 against float64."""
    from softorder.kernels.permutation import triton as launches

    monkeypatch.setattr(launches, "_WIDTH", 32)
    monkeypatch.setattr(launches, "_LINES", 3)
    monkeypatch.setattr(launches, "interpreted", lambda: False)
    x = torch.randn(1, 70, generator=torch.Generator().manual_seed(0))
    options = {"k": 7, "method": density, "temperature": 0.2, "descending": descending}
    upstream = torch.randn(1, 7, 70, generator=torch.Generator().manual_seed(1))
    leaf = x.clone().requires_grad_()
    p = so.soft_permutation(leaf, **options)
    (gradient,) = torch.autograd.grad(p, leaf, upstream)
    with _native.use("native"):
        leaf = x.double().requires_grad_()
        truth = so.soft_permutation(leaf, **options)
        (exact,) = torch.autograd.grad(truth, leaf, upstream.double())
    torch.testing.assert_close(p.double(), truth, rtol=2e-6, atol=2e-7)
    torch.testing.assert_close(gradient.double(), exact, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(
    "density",
    [pytest.param(d, marks=pytest.mark.slow) if d != "normal" else d for d in BUILT_IN],
)
@pytest.mark.parametrize(
    "descending", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["down", "up"]
)
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
    for kind in ("triton", "torch"):
        x = torch.tensor(rows, dtype=torch.float64, requires_grad=True)
        before = _triton.calls["permutation_gradients"]
        with _native.use(kind):
            p = so.soft_permutation(x, method=density, temperature=0.3, descending=descending)
            upstream = torch.linspace(1, 2, p.numel(), dtype=p.dtype).cos().view_as(p)
            (gradient,) = torch.autograd.grad(p, x, upstream)
        assert _triton.calls["permutation_gradients"] == before + (kind == "triton")
        answers.append((p.detach(), gradient))
    torch.testing.assert_close(*answers, equal_nan=True)


def test_launches_ask_nothing_and_hold_no_second_matrix():
    from softorder.kernels.permutation import triton as kernels

    n = k = 64
    x = torch.randn(n, generator=torch.Generator().manual_seed(0))
    x[:2] = torch.tensor([math.inf, -math.inf])
    tau, upstream = torch.tensor([0.5], dtype=torch.float64), torch.ones(k, n)
    with Watched() as forward:
        p, centre, rest = kernels.rows(x, tau, True, 0, k)
    with Watched() as backward:
        gradient, _ = kernels.vjp(upstream, (x, centre, rest), tau, True, False, 0, k)
    assert forward.largest == p.nbytes
    assert backward.largest <= upstream.nbytes  # the interpreter's own copy of its argument
    assert gradient.abs().max() < 1e-6
    assert p.sum(-1).sub(1).abs().max() < 1e-6


def test_the_operator_agrees_with_its_fake():
    x, tau = torch.randn(3, 20), torch.tensor(0.5).double()
    options = number_of(BUILT_IN["logistic"]), 4
    forward = torch.ops.softorder.soft_permutation
    torch.library.opcheck(forward, (x, tau, False, *options), test_utils="test_faketensor")
    p, *found = permutation.permutation.forward(x, tau, False, *options)
    arguments = (torch.ones_like(p), [x, *found], tau, False, False, *options)
    backward = torch.ops.softorder.soft_permutation_vjp
    torch.library.opcheck(backward, arguments, test_utils="test_faketensor")


@pytest.mark.parametrize(
    ("law", "case"), list(laws("soft_permutation", tuple(BUILT_IN), 7)), ids=str
)
def test_law(law, case):
    law.hold(case.call, examples=min(law.examples, 4))

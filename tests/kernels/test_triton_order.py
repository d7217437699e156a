"""Soft ranks and sorts by Triton kernels, in Triton's interpreter; and the loss made of them."""

import math

import numpy as np
import pytest
import torch

import softorder as so
from softorder.kernels import _native, _triton, order
from tests import bank
from tests import test_ordering_accuracy as accuracy
from tests.kernels import test_order as direct
from tests.kernels.fused import vjp
from tests.kernels.interpreted import laws, only_triton, triton_serves  # noqa: F401
from tests.kernels.watched import Watched

pytest.importorskip("triton", reason="Triton is not installed")
pytestmark = pytest.mark.usefixtures("triton_serves")

_LAPLACE = direct._LAPLACE
_LINEAR = pytest.mark.parametrize("density", ["laplace", "uniform"])
_DTYPES = pytest.mark.parametrize(
    "dtype",
    [np.float64, pytest.param(np.float32, marks=pytest.mark.slow)],
    ids=["float64", "float32"],
)
_N = pytest.mark.parametrize("n", [30, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2))])


# ---- against the oracles, over the bank ---------------------------------------------------------


@pytest.mark.usefixtures("only_triton")
@_N
@_DTYPES
@_LINEAR
def test_ranks(density, dtype, n):
    accuracy.test_ranks(density, dtype, n)


@pytest.mark.usefixtures("only_triton")
@_N
@_DTYPES
@_LINEAR
def test_sorted_scores(density, dtype, n):
    accuracy.test_sorted_scores(density, dtype, n)


@pytest.mark.usefixtures("only_triton")
@_DTYPES
@_LINEAR
def test_gradients(density, dtype):
    """Of scores and of temperature."""
    accuracy.test_gradients(density, dtype, 20)


@pytest.mark.parametrize("dtype", direct._TOLERANCE, ids=str)
def test_descending_mirrors(dtype):
    direct.test_descending_mirrors(dtype, _LAPLACE)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", direct._TOLERANCE, ids=str)
@pytest.mark.parametrize("family", bank.FAMILIES)
def test_what_the_backward_pass_is_given(family, dtype):
    direct.test_ranks(family, dtype)
    direct.test_sorted(family, dtype)


# ---- special rows -------------------------------------------------------------------------------


@pytest.mark.one_of(3)
@_LINEAR
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("descending", [False, True])
def test_infinities_and_nan(density, dtype, descending):
    inf, nan = math.inf, math.nan
    rows = [
        [1, inf, -inf, 2, inf, -inf, 0.5],
        [1, 2, nan, 3, 4, inf, -inf],
        [-inf] * 7,
        [inf] * 7,
        [nan] * 7,
        [3, 1, 2, 5, 4, 7, 6],
        [1, 1, 1, 2, 2, 2, 2],
    ]
    answers = []
    for kind in ("triton", "torch"):
        x = torch.tensor(rows, dtype=dtype, requires_grad=True)
        with _native.use(kind):
            for operator in (so.soft_rank, so.soft_sort):
                y = operator(x, method=density, temperature=0.3, descending=descending)
                upstream = torch.linspace(1, 2, 7, dtype=dtype).expand(y.shape)
                (gradient,) = torch.autograd.grad(y, x, upstream)
                answers.append((y.detach(), gradient))
    for one, other in zip(answers[:2], answers[2:], strict=True):
        torch.testing.assert_close(one, other, equal_nan=True)


def test_hardly_anything():
    for n in (0, 1):
        direct.test_hardly_anything(n, _LAPLACE)
    mask = torch.arange(9) < 6
    scores = torch.randn(3, 9, generator=torch.Generator().manual_seed(1))
    for operator in (so.soft_rank, so.soft_sort):
        assert operator(torch.empty(0, 5)).shape == (0, 5)
        found, alone = operator(scores, mask=mask), operator(scores[:, :6])
        torch.testing.assert_close(found[:, :6], alone)


# ---- how they are called ------------------------------------------------------------------------


def test_a_first_derivative_runs_fused():
    x = torch.randn(2, 9, generator=torch.Generator().manual_seed(0), requires_grad=True)
    for operator, kernels in (
        (so.soft_rank, {"rank_forward": 1, "rank_backward": 1}),
        (so.soft_sort, {"laplace_scan": 2, "laplace_roots": 1, "laplace_at_targets": 1}),
    ):
        before = _triton.calls.copy()
        operator(x).square().sum().backward()
        assert _triton.calls - before == kernels


def test_the_operators_agree_with_their_fakes():
    x, tau = torch.randn(3, 20), torch.tensor(0.5).double()
    for kernel, name in ((order.rank, "soft_rank"), (order.sort, "soft_sort")):
        operator = getattr(torch.ops.softorder, name)
        torch.library.opcheck(operator, (x, tau, False, _LAPLACE), test_utils="test_faketensor")
        found = kernel.forward(x, tau, False, _LAPLACE)
        arguments = (torch.ones_like(x), list(found[1:]), tau, False, True, _LAPLACE)
        backward = getattr(torch.ops.softorder, f"{name}_vjp")
        torch.library.opcheck(backward, arguments, test_utils="test_faketensor")


@pytest.mark.parametrize("operator", [so.soft_rank, so.soft_sort])
def test_strides(operator):
    scores = torch.randn(5, 6, generator=torch.Generator().manual_seed(2))
    for change in (lambda x: x.mT, lambda x: x[:, ::2], lambda x: x.expand(2, 5, 6)):
        dense = change(scores).clone(memory_format=torch.contiguous_format)
        answers = []
        for x in (change(scores).requires_grad_(), dense.requires_grad_()):
            y = operator(x, temperature=0.4)
            answers.append((y.detach(), torch.autograd.grad(y.square().sum(), x)[0]))
        torch.testing.assert_close(*answers, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("split", "kernel"), [(10**6, "rank_backward"), (64, "laplace_pieces")], ids=["alone", "split"]
)
@pytest.mark.slow
def test_rows_that_are_longer_than_a_tile(monkeypatch, split, kernel):
    """Streamed by one program, or split among several."""
    from softorder.kernels.fsum import triton_given

    monkeypatch.setattr(triton_given, "INTERPRETED", 32)
    monkeypatch.setattr(triton_given, "SPLIT", split)
    before = _triton.calls[kernel]
    x = torch.from_numpy(bank.row("normal", 100)).repeat(2, 1)
    x[1, 5:15], x[1, 20:40] = math.inf, -math.inf
    tau = torch.tensor([0.1, 1.0], dtype=torch.float64)
    v = torch.arange(200, dtype=torch.float64).sin().view(2, 100)
    answers = []
    for kind in ("triton", "torch"):
        with _native.use(kind):
            for kernels in (order.rank, order.sort):
                found = kernels.forward(x, tau, True, _LAPLACE)
                gradients = vjp(kernels, v, x, found, tau, True, _LAPLACE, by_temperature=True)
                answers.append((found[0], *gradients))
    for one, other in zip(answers[:2], answers[2:], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-11)
    assert _triton.calls[kernel] > before


@pytest.mark.parametrize("n", [5, 300])
def test_launches_ask_nothing(n):
    from softorder.kernels.order import triton as kernels

    x = torch.randn(2, n, generator=torch.Generator().manual_seed(0))
    x[1, :2] = torch.tensor([math.inf, -math.inf])
    tau = torch.tensor([0.5, 1.0], dtype=torch.float64)
    with Watched() as watched:
        ranks = kernels.rank(x, tau, True, _LAPLACE)
        kernels.rank_vjp(x, ranks[1:], tau, True, True, _LAPLACE)
        sorted_ = kernels.sort(x, tau, True, _LAPLACE)
        kernels.sort_vjp(x, sorted_[1:], tau, True, True, _LAPLACE)
    assert x.nbytes < watched.largest <= 256 * x.numel() + 4096
    by_scores, _ = vjp(order.rank, torch.ones_like(x), x, ranks, tau, True, _LAPLACE)
    assert by_scores.abs().max() < 1e-6  # ranks add up to a constant


# ---- the loss: n entries of P, and never P ------------------------------------------------------


@_LINEAR
@pytest.mark.parametrize("descending", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_the_cross_entropy_without_the_matrix(density, descending):
    n = 100
    x = torch.randn(2, n, generator=torch.Generator().manual_seed(0)).double()
    x[1, 3], x[1, 5] = math.inf, -math.inf
    target = x.argsort(-1, descending=descending).argsort(-1)
    options = {"method": density, "temperature": 2.0, "descending": descending}
    before = _triton.calls.copy()
    with Watched() as watched:
        leaf = x.clone().requires_grad_()
        losses = so.losses.permutation_cross_entropy(leaf, target, **options, reduction="none")
        (gradient,) = torch.autograd.grad(losses[0].sum(), leaf)
    assert watched.largest <= 64 * x.numel()
    assert (_triton.calls - before)[f"{density}_roots"] == 1
    assert (_triton.calls - before)[f"{density}_at_targets"] >= 2
    p = so.soft_permutation(x, **options)
    entry = p.gather(-2, target.unsqueeze(-2)).squeeze(-2)
    expected = torch.where(x == -math.inf, 0.0, -entry.log())
    torch.testing.assert_close(losses.detach(), expected, rtol=1e-9, atol=1e-9)
    with _native.use("native"):
        leaf = x.clone().requires_grad_()
        losses = so.losses.permutation_cross_entropy(leaf, target, **options, reduction="none")
        (truth,) = torch.autograd.grad(losses[0].sum(), leaf)
    torch.testing.assert_close(gradient, truth, rtol=1e-9, atol=1e-9)


# ---- the laws -----------------------------------------------------------------------------------

_LAWS = [
    *laws("soft_rank", ("laplace", "uniform"), 1),
    *laws("soft_sort", ("laplace", "uniform"), 5),
    *laws("soft_quantile", ("laplace", "uniform"), 9),
]


@pytest.mark.parametrize(("law", "case"), _LAWS, ids=str)
@pytest.mark.slow
def test_law(law, case):
    law.hold(case.call, examples=min(law.examples, 4))

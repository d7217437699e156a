"""log_soft_topk where p itself is long gone.

Both kernels in one test where there is an oracle of 80 digits: that is what takes the time.
"""

import itertools
import math

import numpy as np
import pytest
import torch

import softorder as so
from softorder.kernels import _native
from softorder.relaxations import find
from tests import bank
from tests.oracles import bisection, exact
from tests.oracles.densities import BUILT_IN

_FAR = [name for name in BUILT_IN if name != "uniform"]  # p never is an exact zero
_RELATIVE = {torch.float64: 1e-12, torch.float32: 4e-6}


@pytest.mark.parametrize("density", _FAR)
@pytest.mark.parametrize("temperature", [1e-6, 1e-2, 1.0])
@pytest.mark.parametrize("k", [0.25, 1.0, 2.0, 2.5])
def test_agrees_with_80_digits_where_gaps_are_a_million_temperatures(density, temperature, k):
    scores = [3.0, -1.25, 0.5, 1.5]
    truth = exact.soft_topk(scores, k, temperature, density).log_p
    for dtype, kernel in itertools.product(_RELATIVE, _native.KINDS):
        row = torch.tensor(scores, dtype=dtype)
        with _native.use(kernel):
            log_p = so.log_soft_topk(row, k, method=density, temperature=temperature)
        _assert_logs_agree(log_p, truth, (kernel, dtype))


@pytest.mark.one_of(3)
@pytest.mark.parametrize("density", _FAR)
@pytest.mark.parametrize("family", bank.FAMILIES)
def test_agrees_with_80_digits_on_the_bank(density, family):
    labels, *problems = bank.problems([family], 3, temperatures=(1e-6, 1.0, 1e6))
    truth = [exact.soft_topk(*problem, density).log_p for problem in zip(*problems, strict=True)]
    scores, k, temperature = (torch.from_numpy(v) for v in problems)
    for kernel in _native.KINDS:
        with _native.use(kernel):
            log_p = so.log_soft_topk(scores, k, method=density, temperature=temperature)
        for i, label in enumerate(labels):
            _assert_logs_agree(log_p[i], truth[i], (kernel, *label))


@pytest.mark.parametrize("density", _FAR)
def test_agrees_with_bisection_on_a_long_row(kernel, density):
    scores, k, temperature = bank.row("normal", 10**5)[None], 1000.0, 1e-3
    log_p = so.log_soft_topk(torch.from_numpy(scores), k, method=density, temperature=temperature)
    _assert_logs_agree(log_p, bisection.soft_topk(scores, k, temperature, density).log_p)


def test_uniform_is_minus_infinity_where_p_is_zero(kernel):
    scores = torch.tensor([2.0, 0.3, 0.0, -5.0], dtype=torch.float64)
    p = so.soft_topk(scores, 1.5, method="uniform")
    log_p = so.log_soft_topk(scores, 1.5, method="uniform")
    assert torch.equal(log_p.isneginf(), p == 0)
    torch.testing.assert_close(log_p.exp(), p, rtol=1e-14, atol=0)


def test_is_minus_infinity_outside_the_mask(kernel):
    scores = torch.tensor([2.0, math.nan, 0.0, -math.inf])
    mask = torch.tensor([True, False, True, True])
    log_p = so.log_soft_topk(scores, 1, mask=mask)
    assert log_p.isneginf().tolist() == [False, True, False, True]


@pytest.mark.parametrize("density", _FAR)
@pytest.mark.parametrize("dtype", _RELATIVE, ids=str)
@pytest.mark.parametrize("k", [0.25, 1.0, 2.0, 2.5])
def test_gradient_is_finite_where_p_underflows(kernel, density, dtype, k):
    scores = torch.tensor([3.0, -1.25, 0.5, 1.5], dtype=dtype, requires_grad=True)
    inputs = scores, torch.tensor(k, dtype=dtype, requires_grad=True)
    log_p = so.log_soft_topk(*inputs, method=density, temperature=1e-6)
    upstream = torch.tensor([0.3, 1.0, -2.0, 0.7], dtype=dtype)
    for gradient in torch.autograd.grad(log_p, inputs, upstream):
        assert gradient.isfinite().all(), gradient


@pytest.mark.one_of(3)
@pytest.mark.parametrize("density", _FAR)
@pytest.mark.parametrize("temperature", [0.02, 0.1, 1.0])
def test_gradient_agrees_with_differences_of_80_digits(density, temperature):
    scores, k = [3.0, -1.25, 0.55, 1.5], 1.8
    inputs = [torch.tensor(v, dtype=torch.float64) for v in (scores, k, temperature)]

    def log_p(x, k, temperature):
        return so.log_soft_topk(x, k, method=density, temperature=temperature)

    truth = exact.jacobian(scores, k, temperature, density, of="log_p")
    for kernel in _native.KINDS:
        with _native.use(kernel):
            found = torch.func.jacrev(log_p, argnums=(0, 1, 2))(*inputs)
        for one, other in zip(found, truth, strict=True):
            np.testing.assert_allclose(one.numpy(), other, rtol=1e-9, atol=1e-9, err_msg=kernel)


def _assert_logs_agree(log_p, truth, label=""):
    tolerance = _RELATIVE[log_p.dtype]
    truth = np.array(truth, dtype=np.float64).reshape(log_p.shape)
    np.testing.assert_allclose(log_p.numpy(), truth, tolerance, tolerance, err_msg=str(label))


@pytest.mark.parametrize("density", BUILT_IN)
def test_the_value_does_not_depend_on_whether_a_gradient_is_wanted(kernel, density):
    _, *arguments = bank.problems(bank.FAMILIES, 30)
    scores, k, temperature = (torch.from_numpy(v) for v in arguments)
    scores[::7, 3] = -torch.inf
    plain = so.log_soft_topk(scores, k, method=density, temperature=temperature)
    tracked = so.log_soft_topk(scores.requires_grad_(), k, method=density, temperature=temperature)
    torch.testing.assert_close(tracked.detach(), plain, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("method", BUILT_IN)
@pytest.mark.parametrize("spread", [1.0, 40.0])  # no p is tiny: the kernel; else the formula
def test_one_node_has_the_gradients_of_the_plain_path(method, spread):
    """In float32 and beside what is absent, certain and spoiled; finite differences are a law."""
    torch.manual_seed(0)
    served = find("log_soft_topk", method)
    x = spread * torch.randn(4, 12)
    if spread > 1:
        x[1, 3], x[2, 1], x[3, 2] = -math.inf, math.inf, math.nan
    k, tau = (torch.full((4,), v, dtype=torch.float64) for v in (3.7, 1.3))
    inputs = [v.requires_grad_() for v in (x, k, tau)]
    wide = [v.detach().double().requires_grad_() for v in inputs]
    found, plain = served.log_soft_topk(*inputs), served._log(*wide)
    assert type(found.grad_fn).__name__ == "_LogTopKBackward"
    torch.testing.assert_close(found, plain.float(), equal_nan=True, rtol=1e-5, atol=1e-6)
    some = torch.where(plain.isfinite(), torch.randn(4, 12).double(), 0.0)
    gradients = torch.autograd.grad(found, inputs, some.float())
    right = torch.autograd.grad(plain, wide, some)
    for own, other in zip(gradients, right, strict=True):
        largest = float(other.abs().max())
        torch.testing.assert_close(own.double(), other, rtol=3e-5, atol=1e-5 * largest)

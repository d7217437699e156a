"""The public Laplace kernel sum against the table that it avoids."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import softorder as so
from softorder.kernels import _native

_FLOATS = st.floats(-50, 50)


def _direct(sources, targets, weights, temperature):
    distance = (targets.unsqueeze(-1) - sources.unsqueeze(-2)).abs()
    kernel = torch.exp(
        -distance / torch.as_tensor(temperature, dtype=torch.float64)[..., None, None]
    )
    return (weights.unsqueeze(-2) * kernel).sum(-1)


@given(
    sources=st.lists(_FLOATS, max_size=30),
    targets=st.lists(_FLOATS, max_size=30),
    temperature=st.floats(1e-3, 1e3),
)
def test_any_places(kernel, sources, targets, temperature):
    x, t = (torch.tensor(v, dtype=torch.float64) for v in (sources, targets))
    w = torch.linspace(-1, 2, len(x), dtype=torch.float64)
    found = so.laplace_sum(x, t, w, temperature)
    expected = _direct(x, t, w, temperature)
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_rows_broadcast(kernel, dtype):
    torch.manual_seed(0)
    x, t, w = torch.randn(3, 1, 8).to(dtype), torch.randn(4, 6).to(dtype), torch.rand(8).to(dtype)
    temperature = torch.rand(3, 4) + 0.5
    found = so.laplace_sum(x, t, w, temperature)
    assert found.dtype == dtype
    expected = _direct(*(v.double() for v in (x, t, w, temperature)))
    torch.testing.assert_close(found.double(), expected, rtol=4 * torch.finfo(dtype).eps, atol=0)


def _arguments():
    torch.manual_seed(1)
    x, t, w = torch.randn(2, 5), torch.randn(2, 4), torch.randn(2, 5)
    return [v.double().requires_grad_() for v in (x, t, w, torch.tensor([0.7, 1.3]))]


def test_derivatives(kernel):
    assert torch.autograd.gradcheck(
        so.laplace_sum, _arguments(), check_forward_ad=True, check_batched_grad=True
    )
    assert torch.autograd.gradgradcheck(so.laplace_sum, _arguments())


def test_compile_and_vmap(kernel):
    x, t, w, tau = _arguments()
    expected = torch.autograd.grad(so.laplace_sum(x, t, w, tau).square().sum(), (x, t, w))

    def loss(x, t, w):
        return so.laplace_sum(x, t, w, tau).square().sum()

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(torch.autograd.grad(compiled(x, t, w), (x, t, w)), expected)
    batched = torch.vmap(so.laplace_sum)(x, t, w, tau)
    torch.testing.assert_close(batched, so.laplace_sum(x, t, w, tau))


def test_a_million_in_linear_memory():
    x = torch.linspace(0, 1, 10**6, dtype=torch.float64)
    with _native.use("native"):
        found = so.laplace_sum(x, x[::1000], temperature=1e-9)
    np.testing.assert_allclose(found.numpy(), 1, rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((torch.zeros(2, dtype=torch.int64), torch.zeros(2)), TypeError, "sources.*int64"),
        ((torch.zeros(2), [1.0]), TypeError, "targets.*list"),
        ((torch.zeros(2), torch.zeros(2).double()), TypeError, "targets.*float32.*float64"),
        ((torch.zeros(()), torch.zeros(2)), ValueError, r"sources.*at least one axis.*\(\)"),
        ((torch.zeros(2), torch.zeros(2), torch.zeros(3)), ValueError, r"weights.*2 entries"),
        ((torch.zeros(2), torch.zeros(2), None, 0.0), ValueError, "temperature.*0"),
    ],
)
def test_wrong_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        so.laplace_sum(*arguments)

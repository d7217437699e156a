"""The backward pass against implicit differentiation of the oracle, over the bank."""

import numpy as np
import pytest
import torch

import softorder as so
from softorder.kernels import _native
from tests import bank
from tests.oracles import bisection
from tests.oracles.densities import BUILT_IN, DENSITIES

_UNDERFLOW = {np.float64: 1e-290, np.float32: 1e-30}
_BOUND = {np.float64: 1e-10, np.float32: 2e-5}


@pytest.mark.one_of(2)
@pytest.mark.parametrize("density", BUILT_IN)
@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("n", [1, 7, 300])
def test_gradients_agree_with_implicit_differentiation(density, dtype, n):
    """Both kernels in one test: the oracle is what takes the time."""
    labels, scores, k, temperature = bank.problems(bank.FAMILIES, n, dtype)
    upstream = np.random.default_rng(n).standard_normal(scores.shape).astype(dtype)
    truth = bisection.vjp(scores, k, temperature, density, upstream)
    usable = _differentiable(scores, k, temperature, density)
    # Errors are counted in units of the largest gradient that the row's slopes could give.
    unit = np.maximum(abs(truth[0]).max(axis=1), 1 / temperature)
    units = unit[:, None], np.ones_like(k), unit
    for kernel in _native.KINDS:
        with _native.use(kernel):
            found = _backward(scores, k, temperature, density, upstream)
        for name, one, other, scale in zip(
            ("scores", "k", "temperature"), found, truth, units, strict=True
        ):
            error = abs(one - other) / scale
            error = error.reshape(len(k), -1).max(axis=1)[usable]
            worst = error.argmax()
            label = np.flatnonzero(usable)[worst]
            assert error[worst] <= _BOUND[dtype], (kernel, name, labels[label], error[worst])


def _backward(scores, k, temperature, density, upstream):
    inputs = [torch.from_numpy(v).requires_grad_() for v in (scores, k, temperature)]
    p = so.soft_topk(inputs[0], inputs[1], method=density, temperature=inputs[2])
    return [g.numpy() for g in torch.autograd.grad(p, inputs, torch.from_numpy(upstream))]


def _differentiable(scores, k, temperature, density):
    """Rows whose slopes do not underflow, with no element on a corner of the uniform CDF."""
    u = bisection.soft_topk(scores, k, temperature, density).u
    total = DENSITIES[density].pdf(abs(u)).sum(axis=1)
    corner = density == "uniform" and abs(abs(u) - 0.5).min(axis=1) < 1e-4
    return ((total == 0) | (total > _UNDERFLOW[scores.dtype.type])) & ~np.asarray(corner)

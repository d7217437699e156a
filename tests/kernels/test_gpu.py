"""The laws and the oracle on a GPU: `make test-gpu`.

Tensors go to the device before every call, and come back after it. Without a GPU a few of the tests
run in Triton's interpreter, so that the file itself is known to work.
"""

import os
from functools import partial

import numpy as np
import pytest
import torch
from torch.utils._pytree import tree_map_only

import softorder as so
from softorder.kernels import _native, _triton
from tests import bank
from tests.laws.all_laws import EAGER
from tests.laws.registry import cases
from tests.oracles import bisection
from tests.oracles.densities import BUILT_IN

DEVICE = torch.device(os.environ.get("SOFTORDER_TEST_DEVICE", "cpu"))
_HERE = DEVICE.type == "cuda"
_BOUND = {np.float64: 1e-12, np.float32: 2e-6}

pytestmark = pytest.mark.skipif(_triton.problem() is not None, reason=str(_triton.problem()))


@pytest.fixture(autouse=True)
def _triton_serves():
    with _native.use("triton"):
        yield


@pytest.fixture
def _kernels_ran(_triton_serves):
    before = _triton.calls.total()
    yield
    assert _triton.calls.total() > before, "no Triton kernel ran"


def _on_device(call):
    def run(*arguments, **options):
        arguments, options = tree_map_only(
            torch.Tensor, lambda value: value.to(DEVICE), (arguments, options)
        )
        return call(*arguments, **options).cpu()

    return run


def _laws(topk):
    """Of the soft top-k, all of which Triton serves, or of all other operators and methods."""
    for law in EAGER:
        for case in cases():
            served = case.name in BUILT_IN and "topk" in case.operator
            if served == topk and law.binds(case) and "empty" not in str(law):
                yield law, case


def _some(laws):
    return laws if _HERE else laws[:1]


@pytest.mark.usefixtures("_kernels_ran")
@pytest.mark.parametrize(("law", "case"), _some(list(_laws(topk=True))), ids=str)
def test_law(law, case):
    law.hold(_on_device(case.call))


@pytest.mark.parametrize(("law", "case"), _some(list(_laws(topk=False))), ids=str)
def test_law_of_other_operators(law, case):
    law.hold(_on_device(case.call))


@pytest.mark.usefixtures("_kernels_ran")
@pytest.mark.parametrize("density", BUILT_IN if _HERE else BUILT_IN[:1])
@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("n", [5, 64, 1000, 4096, 10_000, 100_000] if _HERE else [5])
def test_accuracy(density, dtype, n):
    for family in bank.FAMILIES if n < 5000 else ("normal", "two_modes", "geometric"):
        labels, scores, k, temperature = bank.problems([family], n, dtype)
        truth = bisection.soft_topk(scores, k, temperature, density).p
        x, size, tau = (torch.from_numpy(v) for v in (scores, k, temperature))
        p = _on_device(so.soft_topk)(x, size, method=density, temperature=tau).numpy()
        error = abs(p - truth).max(axis=1)
        assert error.max() <= _BOUND[dtype], (error.max(), labels[error.argmax()])


@pytest.mark.skipif(not _HERE, reason="there is no GPU, or SOFTORDER_TEST_DEVICE does not name it")
@pytest.mark.parametrize("n", [64, 1000, 100_000])
@pytest.mark.parametrize("name", ["soft_topk", "soft_rank", "soft_sort"])
def test_a_cuda_graph_can_hold_it(name, n):
    scores = torch.randn(4, n, device=DEVICE)
    operator = partial(so.soft_topk, k=3) if name == "soft_topk" else getattr(so, name)
    expected = operator(scores)  # compiles
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = operator(scores)
    graph.replay()
    torch.testing.assert_close(result, expected)


@pytest.mark.skipif(not _HERE, reason="there is no GPU, or SOFTORDER_TEST_DEVICE does not name it")
def test_reduced_overhead():
    scores = torch.randn(4, 1000, device=DEVICE, requires_grad=True)
    compiled = torch.compile(lambda x: so.soft_topk(x, 3).square().sum(), mode="reduce-overhead")
    for _ in range(3):
        (gradient,) = torch.autograd.grad(compiled(scores), scores)
    (expected,) = torch.autograd.grad(so.soft_topk(scores, 3).square().sum(), scores)
    torch.testing.assert_close(gradient, expected)

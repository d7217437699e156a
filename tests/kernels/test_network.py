"""The compiled networks against networks that run layer by layer in plain torch."""

import itertools

import pytest
import torch

import softorder as so
from softorder.kernels import _native
from softorder.kernels.network.comparators import COMPARATORS
from softorder.methods import NetworkMethod
from softorder.networks import SELECTION_KINDS

_STEPS = [*((name,) for name in COMPARATORS), ("logistic_phi", 0.5)]
_TOLERANCE = {torch.float64: 1e-11, torch.float32: 2e-4}


def _both(call, x):
    """Result and gradient, compiled and plain."""
    results = []
    for kind, times in (("native", 2), ("torch", 0)):
        before = _native.calls["network"]
        with _native.use(kind):
            result = call(x)
            upstream = torch.linspace(-1, 2, result.numel(), dtype=x.dtype).cos().view_as(result)
            upstream = torch.where(result.isfinite(), upstream, 0.0)
            (gradient,) = torch.autograd.grad(result, x, upstream)
        assert _native.calls["network"] == before + times
        results.append((result.detach(), gradient))
    return results


def _operators(method, temperature):
    options = {"method": method, "temperature": temperature}
    for descending in (False, True):
        yield lambda x, m, d=descending: so.soft_sort(x, mask=m, descending=d, **options)
        for k in (1, 10, None):  # more rows than go together, and all of them
            yield lambda x, m, d=descending, k=k: so.soft_permutation(
                x, k=k, mask=m, descending=d, **options
            )


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("comparator", _STEPS)
@pytest.mark.parametrize("kind", [None, *SELECTION_KINDS])
def test_compiled_networks_are_the_same(kind, comparator, dtype):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(19, 13, generator=generator).to(dtype).requires_grad_()  # not whole tiles
    some = torch.rand(19, 13, generator=generator) < 0.8
    temperature = torch.linspace(0.1, 2, 19, dtype=torch.float64)
    method = NetworkMethod(kind, *comparator)
    for operator, mask in itertools.product(_operators(method, temperature), (None, some)):
        compiled, plain = _both(lambda x, f=operator, m=mask: f(x, m), x)
        tolerance = _TOLERANCE[dtype]
        torch.testing.assert_close(compiled, plain, rtol=tolerance, atol=10 * tolerance)


@pytest.mark.parametrize("comparator", _STEPS)
def test_extreme_temperatures(comparator):
    x = torch.randn(3, 9, generator=torch.Generator().manual_seed(1)).requires_grad_()
    for temperature in (1e-30, 1e30):
        options = {"method": NetworkMethod(None, *comparator), "temperature": temperature}
        compiled, plain = _both(lambda x, o=options: so.soft_permutation(x, k=3, **o), x)
        torch.testing.assert_close(compiled, plain, rtol=1e-4, atol=1e-6)


def test_the_graph_keeps_the_scores_only():
    """And no tensor of the size of a layer or of P."""
    x = torch.randn(4, 300, requires_grad=True)
    kept = []

    def pack(tensor):
        kept.append(tensor.untyped_storage().nbytes())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        so.soft_permutation(x, k=5, method="network")
    assert max(kept) == x.untyped_storage().nbytes()


def test_threads_share_the_rows():
    x = torch.randn(70, 200, generator=torch.Generator().manual_seed(2)).requires_grad_()
    before, results = torch.get_num_threads(), []
    for threads in (1, 3):
        torch.set_num_threads(threads)
        try:
            results.append(_both(lambda x: so.soft_permutation(x, k=3, method="network"), x)[0])
        finally:
            torch.set_num_threads(before)
    assert all(map(torch.equal, *results))

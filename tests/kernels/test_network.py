"""The compiled networks against networks that run layer by layer in plain torch."""

import itertools

import pytest
import torch

import softorder as so
from softorder.kernels import _native
from softorder.kernels.network.comparators import COMPARATORS
from softorder.networks import SELECTION_KINDS
from softorder.relaxations import NetworkMethod

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


@pytest.mark.one_of(3)
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


# ---- soft top-k ---------------------------------------------------------------------------------


def _topk(x, k, temperature, **options):
    return so.soft_topk(x, k, method=NetworkMethod(**options), temperature=temperature)


@pytest.mark.parametrize("comparator", [c[0] for c in _STEPS])
def test_a_soft_topk_in_float32_is_that_in_float64(comparator):
    """Values are in float64 inside: no comparator enlarges what was rounded, however steep.

    A gradient is a sum of slopes of up to 1/τ, each of which is rounded.
    """
    generator = torch.Generator().manual_seed(3)
    x, upstream = torch.randn(2, 19, 40, generator=generator)
    for temperature in (1.0, 0.05, 1e-3):
        found = []
        for dtype in (torch.float32, torch.float64):
            leaf, before = x.to(dtype).requires_grad_(), _native.calls["network"]
            p = _topk(leaf, 4.5, temperature, comparator=comparator)
            (gradient,) = torch.autograd.grad(p, leaf, upstream.to(dtype))
            assert _native.calls["network"] == before + 2
            found.append((p.detach().double(), gradient.double()))
        (p, gradient), (exact, exact_gradient) = found
        torch.testing.assert_close(p, exact, rtol=0, atol=1e-6)
        atol = 1e-5 * exact_gradient.abs().max().item() + 1e-7 / temperature
        torch.testing.assert_close(gradient, exact_gradient, rtol=0, atol=atol)


def test_a_soft_topk_of_rows_with_networks_of_their_own():
    """Compiled and plain, with absent and certain scores, and with k of either kind."""
    x = torch.randn(5, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
    x[1, 3], x[2, 5], x[3, 1], x[3, 2] = -torch.inf, torch.inf, torch.inf, -torch.inf
    k = torch.tensor([0.0, 2.5, 3.0, 9.2, 12.0], dtype=torch.float64)
    upstream, found = torch.linspace(-1, 2, 60, dtype=torch.float64).cos().view(5, 12), []
    for kind in ("native", "torch"):
        with _native.use(kind):
            leaves = x.clone().requires_grad_(), k.clone().requires_grad_()
            p = _topk(*leaves, 0.4)
            found.append((p.detach(), *torch.autograd.grad(p, leaves, upstream)))
    for compiled, plain in zip(*found, strict=True):
        torch.testing.assert_close(compiled, plain, rtol=0, atol=1e-11)


def test_what_vmap_cannot_do_says_so():
    x = torch.randn(3, 6, generator=torch.Generator().manual_seed(5))

    def loss(row):
        return so.soft_topk(row, 2, method="network").square().sum()

    gradients = torch.func.vmap(torch.func.grad(loss))(x)
    one_by_one = torch.stack([torch.func.grad(loss)(row) for row in x])
    torch.testing.assert_close(gradients, one_by_one, rtol=0, atol=1e-6)
    for more in (torch.func.hessian(loss), torch.func.jacrev(torch.func.grad(loss))):
        with pytest.raises(NotImplementedError, match="under vmap, where nobody can look at k"):
            torch.func.vmap(more)(x)

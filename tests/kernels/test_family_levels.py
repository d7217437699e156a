"""The kernels of the other families at every SIMD level, against plain torch."""

from tests.runtime.processes import run

_SCRIPT = """
import torch, softorder as so
from softorder.kernels import _native
from softorder.relaxations import NetworkMethod

assert _native.level() == "{level}"
torch.set_num_threads(2)
generator = torch.Generator().manual_seed(0)


def calls(x):
    options = {{"temperature": 0.3, "descending": True}}
    for method in ("softsort", "neuralsort", "network", NetworkMethod("bitonic", "optimal")):
        yield so.soft_permutation(x, k=3, method=method, **options)
    for step in (("gaussian",), ("logistic_phi", 0.25), ("logistic_phi", 0.5)):
        yield so.soft_permutation(x[:, :33], k=3, method=NetworkMethod(None, *step), **options)
    for method in ("permutahedron", "permutahedron_kl"):
        yield so.soft_rank(x, method=method, **options)
        yield so.soft_sort(x, method=method, **options)


for dtype, tolerance in ((torch.float64, 1e-9), (torch.float32, 1e-4)):
    x = torch.randn(19, 1100, generator=generator).to(dtype).requires_grad_()
    results = []
    for kind in ("native", "torch"):
        with _native.use(kind):
            found = list(calls(x))
        upstream = [torch.linspace(-1, 1, p.numel()).view_as(p).to(dtype) for p in found]
        gradients = [torch.autograd.grad(p, x, g)[0] for p, g in zip(found, upstream)]
        results.append(found + gradients)
    for ours, plain in zip(*results):
        scale = plain.abs().max().item()
        torch.testing.assert_close(ours, plain, rtol=0, atol=tolerance * max(scale, 1))
"""


def test_every_level(level):
    run(_SCRIPT.format(level=level), SOFTORDER_SIMD=level)

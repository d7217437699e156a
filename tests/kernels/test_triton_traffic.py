"""How often the Triton kernels read and write global memory: counted, not declared.

Triton's interpreter runs every load and store of a row; those that hit a given tensor are counted,
and must be what `softorder gpu` prints.
"""

import pytest
import torch

from softorder.kernels import _native, _triton
from tests.oracles.densities import BUILT_IN

pytest.importorskip("triton", reason="Triton is not installed")
pytestmark = pytest.mark.skipif(not _triton.interpreted(), reason="needs Triton's interpreter")

_DENSITIES = pytest.mark.parametrize(("number", "density"), list(enumerate(BUILT_IN)))


class _Traffic:
    """Counts the elements of tensors that kernels load and store."""

    def __init__(self, monkeypatch):
        from triton.runtime.interpreter import InterpreterBuilder as Builder

        self.loads, self.stores = [], []
        load, store = Builder.create_masked_load, Builder.create_masked_store

        def counting_load(builder, ptrs, mask, *rest):
            self.loads.append(ptrs.data[mask.data])
            return load(builder, ptrs, mask, *rest)

        def counting_store(builder, ptrs, value, mask, *rest):
            self.stores.append(ptrs.data[mask.data])
            return store(builder, ptrs, value, mask, *rest)

        monkeypatch.setattr(Builder, "create_masked_load", counting_load)
        monkeypatch.setattr(Builder, "create_masked_store", counting_store)

    def reads(self, *tensors):
        return sum(_hits(self.loads, tensor) for tensor in tensors)

    def writes(self, tensor):
        return _hits(self.stores, tensor)


def _hits(addresses, tensor):
    first, end = tensor.data_ptr(), tensor.data_ptr() + tensor.nbytes
    return sum(int(((at >= first) & (at < end)).sum()) for at in addresses)


@pytest.fixture
def traffic(monkeypatch):
    with _native.use("triton"):
        yield _Traffic(monkeypatch)


def _declared(folder, name):
    from softorder.kernels import _triton_compile

    kernels = _triton_compile.configurations(folder, "fp32")
    (kernel,) = (kernel for kernel in kernels if kernel.name == name)
    return kernel.reads, kernel.writes


def _row(n):
    x = torch.randn(1, n, generator=torch.Generator().manual_seed(n))
    return x, torch.tensor([n / 10.0]).double(), torch.tensor([0.5]).double()


@_DENSITIES
@pytest.mark.parametrize("n", [40, 300])
def test_rows_on_chip_are_read_and_written_once(traffic, number, density, n):
    from softorder.kernels.threshold import triton as kernels

    x, k, tau = _row(n)
    p, b = kernels.forward(x, k, tau, None, number)
    width = _triton.power_of_two(n)
    assert (traffic.reads(x), traffic.writes(p)) == (n, n)
    assert _declared("threshold", f"{density}: p, {width} scores") == ("1", "1")
    upstream = torch.ones_like(x)
    traffic.loads.clear()
    by_scores, _ = kernels.backward(upstream, x, tau, b, None, number, True)
    assert (traffic.reads(x, upstream), traffic.writes(by_scores)) == (2 * n, n)
    assert _declared("threshold", f"{density}: gradient τ, {width} scores") == ("2", "1")
    traffic.loads.clear()
    weight, index = torch.ones(1), torch.zeros(1, dtype=torch.int64)
    by_scores, _ = kernels.backward(weight, x, tau, b, None, number, True, index)
    assert (traffic.reads(x), traffic.writes(by_scores)) == (n, n)
    assert _declared("threshold", f"{density}: gradient τ of one entry, {width} scores") == (
        "1",
        "1",
    )


def test_gradients_of_long_rows_are_on_chip(traffic):
    """Where the temperature does not learn: up to 16,384 scores."""
    from softorder.kernels.threshold import triton as kernels

    n = 12_000
    x, k, tau = _row(n)
    _, b = kernels.forward(x, k, tau, None, 0)
    traffic.loads.clear()
    upstream = torch.ones_like(x)
    by_scores, _ = kernels.backward(upstream, x, tau, b, None, 0, False)
    assert (traffic.reads(x, upstream), traffic.writes(by_scores)) == (2 * n, n)
    assert _declared("threshold", "laplace: gradient, 16384 scores") == ("2", "1")


@pytest.mark.parametrize(
    ("number", "density"),
    [
        pytest.param(number, density, marks=[] if number == 0 else [pytest.mark.slow])
        for number, density in enumerate(BUILT_IN)
    ],
)
def test_longer_rows_are_read_in_every_pass(traffic, number, density):
    from softorder.kernels.threshold import triton as kernels
    from softorder.kernels.threshold.triton_tiles import tile

    n = 9000
    x, k, tau = _row(n)
    _, passes = kernels.threshold(x, k, tau, number)
    first = tile(n, False, number).width  # of every row, before it is known to be longer
    assert traffic.reads(x) - first == (int(passes) + 1) * n
    traffic.loads.clear()
    p, b = kernels.forward(x, k, tau, None, number)
    assert (traffic.reads(x) - first, traffic.writes(p)) == ((int(passes) + 2) * n, n)
    assert _declared("threshold", f"{density}: p, more scores") == ("passes + 2", "1")
    upstream = torch.ones_like(x)
    traffic.loads.clear()
    by_scores, _ = kernels.backward(upstream, x, tau, b, None, number, True)
    assert (traffic.reads(x, upstream), traffic.writes(by_scores)) == (4 * n, n)
    assert _declared("threshold", f"{density}: gradient τ, more scores") == ("4", "1")


@pytest.mark.parametrize(("family", "n"), [("softsort", 40), ("neuralsort", 300)])
def test_rows_of_a_permutation_are_written_once(traffic, family, n):
    """And x is read once for all of them, but for its ends and the k scores they start from."""
    from softorder.kernels.row_softmax import triton as kernels

    x, _, tau = _row(n)
    k, ends = 8, 2
    above = 2 * n + ends if family == "neuralsort" else 0  # which compares neighbours
    p, order, taken = kernels.rows(x, tau, True, family, k)
    assert traffic.reads(x) == n + ends + k + above
    assert traffic.writes(p) == k * n
    width = _triton.power_of_two(n)
    name = f"{family}: rows, descending, {width} scores"
    assert _declared("row_softmax", name) == ("1/k", "1")
    upstream = torch.ones_like(p)
    kernels.vjp(upstream, (x, p, order, taken), tau, True, False, family, k)
    assert traffic.reads(upstream) == 2 * k * n


@pytest.mark.parametrize("n", [40, 70])
def test_networks_read_scores_and_write_results_once(traffic, n):
    from softorder.kernels.network import triton as kernels
    from softorder.kernels.network.wires import Wires

    x, _, tau = _row(n)
    wires = Wires(x, torch.ones_like(x, dtype=torch.bool))
    ask = kernels.Problem.of(wires, tau, True, None, "cauchy", 3)
    values = kernels._values(ask)
    assert (traffic.reads(ask.x), traffic.writes(values)) == (n + 1, 3)  # the first one is a centre
    width = _triton.power_of_two(n)
    assert _declared("network", f"cauchy: values, descending, {width} wires") == ("1", "1")

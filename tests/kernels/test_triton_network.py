"""The Triton networks, in Triton's interpreter."""

import itertools
import math

import pytest
import torch

import softorder as so
from softorder.kernels import _native, _triton, network
from softorder.kernels.network import reference
from softorder.kernels.network.comparators import COMPILED
from softorder.networks import SELECTION_KINDS
from softorder.relaxations import NetworkMethod
from tests.kernels.fused import launches, vjp
from tests.laws.all_laws import EAGER
from tests.laws.registry import cases

pytest.importorskip("triton", reason="Triton is not installed")

_BOUND = {torch.float64: 1e-12, torch.float32: 1e-5}  # steep comparators enlarge rounding errors
_MATRIX = pytest.mark.parametrize("matrix", [False, True], ids=["values", "matrix"])


def _launches():
    return sum(count for name, count in _triton.calls.items() if name.startswith("network"))


@pytest.fixture(autouse=True)
def _interpreted():
    """Triton serves, and a test whose kernels did not run fails."""
    before = _launches()
    with _native.use("triton"):
        yield
    assert _launches() > before, "no Triton kernel ran"


def _assert_same(x, kind, comparator, k, matrix, descending=True, temperature=0.4):
    """Results and gradients against plain torch in float64."""
    temperature = torch.as_tensor(temperature, dtype=torch.float64)
    settings = temperature, descending, kind, comparator, k, matrix
    before = _launches()
    found = network.run.forward(x, *settings)
    upstream = torch.linspace(-1, 2, found.numel()).cos().view_as(found).to(x.dtype)
    upstream = torch.where(found.isfinite(), upstream, 0.0)
    gradient, _ = vjp(network.run, upstream, x, (found,), *settings)
    assert _launches() == before + 2
    exact = x.double()
    (expected,) = reference.run(exact, *settings)
    by_scores, _ = reference.vjp(upstream.double(), (exact,), *settings[:2], False, *settings[2:])
    bound = _BOUND[x.dtype]
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=bound, equal_nan=True)
    scale = by_scores.abs().max().clamp(min=1).item()
    torch.testing.assert_close(gradient.double(), by_scores, rtol=0, atol=bound * scale)


def _in_turn():
    """By default every kind, and every comparator, in one precision, up or down."""
    for number, kind in enumerate((None, *SELECTION_KINDS)):
        for turn, comparator in enumerate(COMPILED):
            for dtype in _BOUND:
                chosen = (number + turn) % 4 == 0 and (number % 2) == (dtype is torch.float32)
                marks = [] if chosen else [pytest.mark.slow]
                yield pytest.param(kind, comparator, dtype, number % 2 == 0, marks=marks)


@pytest.mark.one_of(3)
@pytest.mark.parametrize(("kind", "comparator", "dtype", "descending"), list(_in_turn()))
@pytest.mark.parametrize(
    ("matrix", "k"),
    [
        (False, 6),
        (True, 2),
        *(pytest.param(*c, marks=pytest.mark.slow) for c in ((False, 2), (True, 6))),
    ],
)
def test_networks(kind, comparator, dtype, descending, matrix, k):
    x = torch.randn(2, 6, generator=torch.Generator().manual_seed(0)).to(dtype)
    _assert_same(x, kind, comparator, k, matrix, descending, [0.2, 2.0])


def _both_ways():
    for dtype, descending in itertools.product(_BOUND, (True, False)):
        default = (dtype is torch.float32) == descending
        yield pytest.param(dtype, descending, marks=[] if default else [pytest.mark.slow])


@pytest.mark.parametrize(("dtype", "descending"), list(_both_ways()))
@_MATRIX
@pytest.mark.parametrize("k", [3, pytest.param(5, marks=pytest.mark.slow)])
def test_infinities_and_nan(dtype, matrix, descending, k):
    """Only finite scores have wires, the first ones."""
    inf, nan = math.inf, math.nan
    rows = [[0.5, inf, -1.0, -inf, 2.0], [0.5, nan, 2.0, inf, -inf], [-inf] * 5, [inf] * 5]
    _assert_same(torch.tensor(rows, dtype=dtype), None, "cauchy", k, matrix, descending)


@pytest.mark.parametrize("comparator", COMPILED)
@pytest.mark.parametrize("matrix", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_extreme_temperatures(comparator, matrix):
    x = torch.randn(2, 6, generator=torch.Generator().manual_seed(1))
    _assert_same(x, None, comparator, 3, matrix, temperature=[1e-30, 1e30])


@_MATRIX
@pytest.mark.parametrize("n", [70, pytest.param(1000, marks=pytest.mark.slow)])
def test_longer_networks_exchange_by_scratch(n, matrix):
    x = torch.randn(1, n, generator=torch.Generator().manual_seed(n))
    _assert_same(x, None, "cauchy", 2, matrix)


@_MATRIX
@pytest.mark.slow
def test_programs_share_what_is_too_much_for_their_scratch(matrix, monkeypatch):
    from softorder.kernels.network import triton as kernels

    monkeypatch.setattr(kernels, "_SCRATCH", 1)  # one program takes one row after another
    monkeypatch.setattr(kernels, "interpreted", lambda: False)  # and several tiles of it
    monkeypatch.setattr(kernels, "processors", lambda device: 3)
    x = torch.randn(3, 70, generator=torch.Generator().manual_seed(3))
    _assert_same(x, None, "logistic", 9 if matrix else 1, matrix)


def test_more_wires_than_fit_are_left_to_plain_torch():
    from softorder.kernels.network import triton as kernels

    x = torch.randn(1, kernels.LONGEST + 1, generator=torch.Generator().manual_seed(4))
    before = _launches()
    found = so.soft_permutation(x, k=1, method="network")
    assert _launches() == before
    with _native.use("torch"):
        assert torch.equal(so.soft_permutation(x, k=1, method="network"), found)
    so.soft_permutation(x[:, :8], k=1, method="network")


@_MATRIX
def test_through_autograd_and_no_rows(matrix):
    def call(x):
        method = NetworkMethod("pairwise", "logistic")
        if matrix:
            return so.soft_permutation(x, method=method, temperature=0.7)
        return so.soft_sort(x, method=method, temperature=0.7)

    assert call(torch.empty(0, 5)).shape == ((0, 5, 5) if matrix else (0, 5))
    x = torch.randn(5, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    assert torch.autograd.gradcheck(call, x.requires_grad_(), fast_mode=True)


def _laws():
    """By default a few of those that call the kernels."""
    for number, law in enumerate(EAGER):
        for case in cases():
            if case.name == "network" and law.binds(case) and launches(law):
                turn = number % 8 == 2 and case.operator == "soft_sort"
                yield pytest.param(law, case, marks=[] if turn else [pytest.mark.slow])


@pytest.mark.parametrize(("law", "case"), list(_laws()), ids=str)
def test_law(law, case):
    law.hold(case.call, examples=min(law.examples, 4))

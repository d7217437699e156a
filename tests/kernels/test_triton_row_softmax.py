"""The Triton rows of SoftSort and NeuralSort, in Triton's interpreter."""

import math

import pytest
import torch

import softorder as so
from softorder.kernels import _native, _triton, row_softmax
from softorder.kernels.row_softmax import reference
from softorder.kernels.row_softmax.cpu import FAMILIES
from tests import bank
from tests.kernels.fused import launches, vjp
from tests.laws.all_laws import EAGER
from tests.laws.registry import cases

pytest.importorskip("triton", reason="Triton is not installed")

_BOUND = {torch.float64: 1e-12, torch.float32: 2e-6}
_FAMILIES = pytest.mark.parametrize("family", FAMILIES)
_DTYPES = pytest.mark.parametrize("dtype", _BOUND, ids=str)


@pytest.fixture(autouse=True)
def _interpreted():
    """Triton serves, and a test whose kernels did not run fails."""
    before = _triton.calls["row_softmax_forward"]
    with _native.use("triton"):
        yield
    assert _triton.calls["row_softmax_forward"] > before, "no Triton kernel ran"


def _assert_same(x, family, k, temperature, descending):
    """Rows and gradients against plain torch in float64."""
    temperature = torch.as_tensor(temperature, dtype=torch.float64)
    settings = temperature, descending, family, k
    found = row_softmax.rows.forward(x, *settings)
    upstream = torch.linspace(-1, 2, found[0].numel()).cos().view_as(found[0]).to(x.dtype)
    before = _triton.calls["row_softmax_columns"]
    gradient, _ = vjp(row_softmax.rows, upstream, x, found, *settings)
    assert _triton.calls["row_softmax_columns"] == before + 1
    exact = x.double()
    p, _, taken = reference.rows(exact, *settings)
    expected, _ = reference.vjp(
        upstream.double(), (exact,), temperature, descending, False, family, k
    )
    bound = _BOUND[x.dtype]
    torch.testing.assert_close(found[0].double(), p, rtol=0, atol=bound, equal_nan=True)
    assert torch.equal(found[2], taken)
    # slopes are of the size 1/τ, NeuralSort's n/τ, and their errors with them
    steep = (1 / temperature).clamp(min=1) * (x.shape[-1] if family == "neuralsort" else 1)
    error = (gradient.double() - expected).abs().amax(-1)
    assert (error <= bound * steep).all(), (error, bound * steep)
    return found


@_FAMILIES
@_DTYPES
@pytest.mark.parametrize("descending", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("n", "k"), [(1, 1), (6, 6), (40, 3)])
def test_rows_and_gradients(family, dtype, descending, n, k):
    x = torch.randn(3, n, generator=torch.Generator().manual_seed(n)).to(dtype)
    _assert_same(x, family, k, [0.05, 1.0, 1e4], descending)


@_FAMILIES
@_DTYPES
@pytest.mark.parametrize("descending", [True, False])
def test_ties(family, dtype, descending):
    """Equal scores share what they get, and |x - a| has no slope at 0."""
    x = torch.tensor([[1.0, 2, 1, 1, 0, 2], [3, 3, 3, 3, 3, 3]], dtype=dtype)
    _assert_same(x, family, 6, 0.7, descending)


def _special():
    inf, nan = math.inf, math.nan
    return [
        [0.5, inf, -1.0, -inf, inf, 2.0, -inf],
        [0.5, 1.0, nan, 2.0, inf, 3.0, -inf],
        [-inf] * 7,
        [inf] * 7,
        [-inf, -inf, 0.25, -inf, -inf, -inf, -inf],
        [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7],
    ]


@_FAMILIES
@_DTYPES
@pytest.mark.parametrize(
    ("descending", "k"),
    [
        (True, 3),
        *(pytest.param(*c, marks=pytest.mark.slow) for c in ((True, 7), (False, 3), (False, 7))),
    ],
)
def test_infinities_and_nan(family, dtype, descending, k):
    _assert_same(torch.tensor(_special(), dtype=dtype), family, k, 0.7, descending)


@pytest.mark.parametrize(
    ("family", "n"),
    [("neuralsort", 5000), pytest.param("softsort", 17_000, marks=pytest.mark.slow)],
)
def test_longer_rows_are_streamed(family, n):
    """Longer than any tile, and than what the scan takes at a time."""
    x = torch.randn(1, n, generator=torch.Generator().manual_seed(0))
    x[0, n - 100], x[0, n - 10] = math.inf, -math.inf
    _, order, taken = _assert_same(x, family, 2, 0.5, True)
    finite = x[0, order[0, : int(taken)].long()]
    assert torch.equal(finite, finite.sort(descending=True).values)


@pytest.mark.slow
@_FAMILIES
@_DTYPES
@pytest.mark.parametrize("shape", bank.FAMILIES)
@pytest.mark.parametrize("n", [64, 300, 3000])
def test_the_bank(shape, family, dtype, n):
    x = torch.from_numpy(bank.row(shape, n)).to(dtype)[None]
    x = x / x.abs().max().clamp(min=1)  # logits of the size of n/τ
    _assert_same(x, family, 4, 0.3, True)


@_FAMILIES
def test_a_row_does_not_depend_on_the_others(family):
    x = torch.randn(4, 30, generator=torch.Generator().manual_seed(2))
    tau = torch.tensor([0.1, 1.0, 0.3, 2.0], dtype=torch.float64)
    together = so.soft_permutation(x, k=5, method=family, temperature=tau)
    for row, temperature, expected in zip(x, tau, together, strict=True):
        alone = so.soft_permutation(row, k=5, method=family, temperature=temperature)
        assert torch.equal(alone, expected)


@_FAMILIES
def test_programs_share_the_rows_of_a_permutation(family, monkeypatch):
    """As on a GPU: a few rows of P in each program, where there are few rows of scores."""
    from softorder.kernels.row_softmax import triton as kernels

    monkeypatch.setattr(kernels, "interpreted", lambda: False)
    monkeypatch.setattr(kernels, "processors", lambda device: 2)
    x = torch.randn(1, 300, generator=torch.Generator().manual_seed(3))
    _assert_same(x, family, 9, 0.5, False)


@_FAMILIES
def test_through_autograd_and_no_rows(family):
    def p(x):
        return so.soft_permutation(x, k=3, method=family, temperature=0.7)

    assert p(torch.empty(0, 5)).shape == (0, 3, 5)
    x = torch.randn(5, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    assert torch.autograd.gradcheck(p, x.requires_grad_(), fast_mode=True)


def _laws():
    """By default a few of those that call the kernels."""
    for number, law in enumerate(EAGER):
        for place, case in enumerate(cases()):
            if case.name in FAMILIES and law.binds(case) and launches(law):
                turn = (number + 5 * place) % 60 == 0
                yield pytest.param(law, case, marks=[] if turn else [pytest.mark.slow])


@pytest.mark.parametrize(("law", "case"), list(_laws()), ids=str)
def test_law(law, case):
    law.hold(case.call, examples=min(law.examples, 4))

"""The compiled rows of SoftSort and NeuralSort against their formulas, and what they sort."""

import math

import pytest
import torch

import softorder as so
from softorder.kernels import _native, row_softmax
from softorder.kernels.row_softmax.cpu import FAMILIES
from tests import bank
from tests.kernels.fused import vjp

_TOLERANCE = {torch.float64: 1e-11, torch.float32: 2e-5}


def _formula(family, x, k, temperature):
    """The first k rows, descending, from a table of all differences."""
    n, place = x.shape[-1], torch.arange(1, k + 1, dtype=x.dtype)
    if family == "softsort":
        anchors = x.sort(descending=True).values[:k]
        logits = -(anchors[:, None] - x).abs()
    else:
        logits = (n + 1 - 2 * place)[:, None] * x - (x[:, None] - x).abs().sum(-1)
    return torch.softmax(logits / temperature, -1)


def _compiled(family, x, k, temperature, descending, upstream):
    temperature = torch.tensor(temperature, dtype=torch.float64)
    before = _native.calls["row_softmax"]
    settings = temperature, descending, family, k
    found = row_softmax.rows.forward(x, *settings)
    gradient, _ = vjp(row_softmax.rows, upstream, x, found, *settings)
    assert _native.calls["row_softmax"] == before + 2
    return found, gradient


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize(("n", "k"), [(1, 1), (5, 5), (60, 3), (2000, 5)])
@pytest.mark.parametrize("family", FAMILIES)
def test_rows_and_gradients_are_those_of_the_formula(family, n, k, dtype):
    x = torch.randn(n, generator=torch.Generator().manual_seed(n)).to(dtype)
    for temperature in (0.05, 1.0, 30.0, 1e4):
        for descending in (True, False):
            exact = x.double().requires_grad_()
            p = _formula(family, exact if descending else -exact, k, temperature)
            upstream = torch.linspace(-1, 2, p.numel()).cos().view_as(p).to(dtype)
            (expected,) = torch.autograd.grad(p, exact, upstream.double())
            found, gradient = _compiled(family, x, k, temperature, descending, upstream)
            tolerance = _TOLERANCE[dtype] + 1e-14 * n / temperature  # of the table
            torch.testing.assert_close(found[0].double(), p.detach(), rtol=0, atol=tolerance)
            scale = expected.abs().max().clamp(min=1).item()
            atol = 10 * tolerance * scale
            torch.testing.assert_close(gradient.double(), expected, rtol=0, atol=atol)


@pytest.mark.parametrize("family", FAMILIES)
def test_what_rounding_the_shares_leaves_does_not_grow_with_the_rows(family):
    """All scores are one, and alike to the loss: every share is 1/n, rounded; nothing moves."""
    n, upstream = 109, torch.arange(1.0, 110).outer(torch.ones(109))
    _, gradient = _compiled(family, torch.full((n,), 1001.28), n, 3.7, True, upstream)
    assert gradient.abs().max() <= 2e-6


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("shape", bank.FAMILIES)
def test_long_rows_of_the_bank(shape, family):
    """Samples that tell little of their rows: ties, several modes, outliers."""
    x = torch.from_numpy(bank.row(shape, 3000))
    for temperature in (1e-2, 1.0):
        p = _formula(family, x, 4, temperature)
        found, _ = _compiled(family, x, 4, temperature, True, p)
        scale = 1e-13 * len(x) * (1 + x.abs().max().item()) / temperature
        torch.testing.assert_close(found[0], p, rtol=0, atol=max(1e-11, scale))


@pytest.mark.parametrize("family", FAMILIES)
def test_only_the_first_scores_are_sorted(family):
    x = torch.randn(100_000, generator=torch.Generator().manual_seed(0))
    found, _ = _compiled(family, x, 5, 0.1, True, torch.zeros(5, len(x)))
    count = int(found[2])
    assert 5 <= count < 10_000
    assert torch.equal(x[found[1][:count].long()], x.topk(count).values)


@pytest.mark.parametrize("family", FAMILIES)
def test_what_takes_no_part_gets_nothing(family):
    x = torch.randn(2000, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    there = torch.rand(2000, generator=torch.Generator().manual_seed(2)) < 0.5
    absent = torch.where(there, x, -math.inf)
    found, gradient = _compiled(family, absent, 3, 1.0, True, torch.ones(3, 2000).double())
    alone, _ = _compiled(family, x[there], 3, 1.0, True, torch.ones(3, int(there.sum())).double())
    torch.testing.assert_close(found[0][:, there], alone[0])
    assert (found[0][:, ~there] == 0).all()
    assert (gradient[~there] == 0).all()
    few = torch.tensor([0.5, -math.inf, 1.5], dtype=torch.float64)
    last = _compiled(family, few, 3, 1.0, True, torch.ones(3, 3).double())[0][0][2]
    assert last.tolist() == [0, 1, 0]  # what is absent comes last


@pytest.mark.parametrize("family", FAMILIES)
def test_second_derivatives_through_the_plain_path(family):
    x = torch.randn(2, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(5))

    def rows(x):
        return so.soft_permutation(x, k=2, method=family, temperature=0.7)

    assert torch.autograd.gradcheck(rows, x.requires_grad_())
    assert torch.autograd.gradgradcheck(rows, x)

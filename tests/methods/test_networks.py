"""Soft networks against networks written comparator by comparator."""

import math

import pytest
import torch

import softorder as so
from softorder.methods import NetworkMethod
from softorder.methods.network_program import network
from softorder.methods.networks import COMPARATORS
from softorder.networks import SELECTION_KINDS, SORTING_KINDS, selection_network, sorting_network


def _scores(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def _step(name, u):
    if name == "logistic":
        return 1 / (1 + math.exp(-u))
    if name == "cauchy":
        return math.atan(u) / math.pi + 0.5
    if name == "reciprocal":
        return 0.5 * 2 * u / (1 + 2 * abs(u)) + 0.5
    if abs(u) <= 0.25:
        return u + 0.5
    return 1 - 1 / (16 * u) if u > 0 else -1 / (16 * u)


def _dense(network, x, temperature, comparator):
    """P as a product of n×n matrices, one per comparator."""
    p = torch.eye(len(x), dtype=x.dtype)
    for layer in network.layers:
        for low, high in layer:
            a, b = (p @ x)[[low, high]].tolist()
            keep = _step(comparator, (b - a) / temperature)
            swap = torch.eye(len(x), dtype=x.dtype)
            swap[low, low] = swap[high, high] = keep
            swap[low, high] = swap[high, low] = 1 - keep
            p = swap @ p
    return p[list(network.outputs)]


@pytest.mark.parametrize("comparator", COMPARATORS)
@pytest.mark.parametrize("kind", SORTING_KINDS)
def test_sorts_as_its_comparators_do(kind, comparator):
    x, method = _scores(9), NetworkMethod(kind, comparator)
    expected = _dense(sorting_network(9, kind), x, 0.4, comparator)
    p = so.soft_permutation(x, method=method, temperature=0.4)
    torch.testing.assert_close(p, expected)
    torch.testing.assert_close(so.soft_sort(x, method=method, temperature=0.4), expected @ x)


@pytest.mark.parametrize("comparator", COMPARATORS)
@pytest.mark.parametrize("kind", SELECTION_KINDS)
def test_selects_as_its_comparators_do(kind, comparator):
    x, method = _scores(11), NetworkMethod(kind, comparator)
    for sign, descending in ((1, False), (-1, True)):
        expected = _dense(selection_network(11, 3, kind), sign * x, 0.4, comparator)
        p = so.soft_permutation(x, k=3, method=method, temperature=0.4, descending=descending)
        torch.testing.assert_close(p, expected)


@pytest.mark.parametrize("comparator", COMPARATORS)
@pytest.mark.parametrize("kind", [None, *SELECTION_KINDS])
def test_is_hard_when_cold(kind, comparator):
    x, options = _scores(2, 20), {"k": 4, "descending": True}
    cold = so.soft_permutation(
        x, method=NetworkMethod(kind, comparator), temperature=1e-9, **options
    )
    torch.testing.assert_close(cold, so.hard.permutation(x, **options), atol=1e-6, rtol=0)


@pytest.mark.parametrize("comparator", ["cauchy", "reciprocal", "optimal"])
def test_monotone_comparators_never_lower_a_value(comparator):
    gap = torch.linspace(-50, 50, 10_001, dtype=torch.float64)
    smaller = gap * (1 - COMPARATORS[comparator](gap))  # of 0 and gap, as gap rises
    assert (smaller.diff() >= -1e-12).all()


@pytest.mark.parametrize("kind", [None, "splitter", "bitonic"])
def test_first_and_second_derivatives(kind):
    x = _scores(2, 6).requires_grad_()
    temperature = torch.tensor([0.7, 1.3], dtype=torch.float64, requires_grad=True)

    def rows(x, temperature):
        return so.soft_permutation(x, k=2, method=NetworkMethod(kind), temperature=temperature)

    assert torch.autograd.gradcheck(rows, (x, temperature))
    assert torch.autograd.gradgradcheck(rows, (x, temperature))


def test_the_default_is_the_shallowest():
    assert network(1024, 5, None).kind == "splitter"
    assert network(16, 8, None).kind == "pairwise"


def test_wrong_options():
    with pytest.raises(ValueError, match="comparator must be one of logistic"):
        NetworkMethod(comparator="sigmoid")
    with pytest.raises(ValueError, match="kind must be one of odd_even"):
        NetworkMethod("bubble")

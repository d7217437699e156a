"""Soft networks against networks written comparator by comparator."""

import itertools
import math

import pytest
import torch

import softorder as so
from softorder.kernels import _native
from softorder.kernels.network.comparators import COMPARATORS, named, step
from softorder.networks import SELECTION_KINDS, SORTING_KINDS, selection_network, sorting_network
from softorder.networks.choice import network_for
from softorder.relaxations import NetworkMethod


def _scores(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def _step(name, u):
    if name == "logistic":
        return 1 / (1 + math.exp(-u))
    if name == "cauchy":
        return math.atan(u) / math.pi + 0.5
    if name == "gaussian":
        return 0.5 * math.erfc(-u / math.sqrt(2))
    if name == "logistic_phi":
        return 1 / (1 + math.exp(-math.copysign(abs(u) ** 0.75, u)))
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
    smaller = gap * (1 - step(named(comparator))(gap))  # of 0 and gap, as gap rises
    assert (smaller.diff() >= -1e-12).all()


@pytest.mark.parametrize("comparator", ["logistic", "gaussian", "logistic_phi"])
def test_the_others_do(comparator):
    gap = torch.linspace(0, 50, 10_001, dtype=torch.float64)
    assert (gap * (1 - step(named(comparator))(gap))).diff().min() < -1e-4


@pytest.mark.parametrize("art_lambda", [0.25, 0.4, 0.5])
def test_the_bend_of_logistic_phi(art_lambda):
    """Compiled or not: λ = 0.4 is left to plain torch."""
    x, calls = _scores(3, 7).requires_grad_(), _native.calls["network"]
    method = NetworkMethod("bitonic", "logistic_phi", art_lambda)
    p = so.soft_permutation(x, k=1, method=method, temperature=0.3, descending=True)
    assert _native.calls["network"] - calls == (0 if art_lambda == 0.4 else 1)
    y = -x.detach()
    for row, found in zip(y, p.detach(), strict=True):
        expected = torch.eye(7, dtype=x.dtype)
        for low, high in itertools.chain(*selection_network(7, 1, "bitonic").layers):
            u = ((expected[high] - expected[low]) @ row).item() / 0.3
            keep = 1 / (1 + math.exp(-math.copysign(abs(u) ** (1 - art_lambda), u)))
            a, b = expected[low].clone(), expected[high].clone()
            expected[low], expected[high] = keep * a + (1 - keep) * b, keep * b + (1 - keep) * a
        torch.testing.assert_close(found[0], expected[0], atol=1e-8, rtol=0)

    def first(x):
        return so.soft_permutation(x, k=1, method=method, temperature=0.3)

    assert torch.autograd.gradcheck(first, x)


def test_gradients_at_ties_are_finite():
    x = torch.zeros(2, 5, requires_grad=True)
    for art_lambda in (0.25, 0.4, 0.5):
        method = NetworkMethod("splitter", "logistic_phi", art_lambda)
        p = so.soft_permutation(x, k=2, method=method)
        assert torch.autograd.grad(p[..., 0].sum(), x)[0].isfinite().all()


@pytest.mark.parametrize("kind", [None, "splitter", "bitonic"])
def test_first_and_second_derivatives(kind):
    x = _scores(2, 6).requires_grad_()
    temperature = torch.tensor([0.7, 1.3], dtype=torch.float64, requires_grad=True)

    def rows(x, temperature):
        return so.soft_permutation(x, k=2, method=NetworkMethod(kind), temperature=temperature)

    assert torch.autograd.gradcheck(rows, (x, temperature))
    assert torch.autograd.gradgradcheck(rows, (x, temperature))


def test_the_default_depends_on_k_alone():
    """Splitter networks for few of many, whatever n is: padding must not change the network."""
    assert [network_for(n, 5, None).kind for n in (6, 1024)] == ["splitter", "splitter"]
    assert [network_for(n, 9, None).kind for n in (10, 1024)] == ["pairwise", "pairwise"]
    assert network_for(5, 5, None).kind == "pairwise"  # a sort


def _padded_rows(kind, n, k, pad):
    """P of n scores, and its part of P of these scores among absent ones."""
    x, options = _scores(n), {"k": k, "method": NetworkMethod(kind), "descending": True}
    mask = torch.ones(n + pad, dtype=torch.bool)
    mask[1 : 1 + pad] = False
    padded = torch.zeros(n + pad, dtype=x.dtype).masked_scatter(mask, x)
    p = so.soft_permutation(padded, mask=mask, temperature=0.3, **options)
    return so.soft_permutation(x, temperature=0.3, **options), p[:, mask]


@pytest.mark.parametrize("kind", [None, "pairwise", "splitter"])
@pytest.mark.parametrize(("n", "k"), [(7, 2), (16, 5), (16, 12), (33, 8), (100, 3)])
def test_padding_changes_no_row(kind, n, k):
    for pad in (1, 9, 40):
        torch.testing.assert_close(*_padded_rows(kind, n, k, pad))


@pytest.mark.parametrize("kind", ["odd_even", "odd_even_merge", "bitonic", "bitonic_sort"])
def test_padding_changes_rows_and_they_say_so(kind):
    alone, padded = _padded_rows(kind, 7, 3, 9)
    assert (alone - padded).abs().max() > 1e-3
    for laws in NetworkMethod(kind).breaks.values():
        assert "masked_out_elements_change_nothing" in laws
    assert not any("masked_out" in law for law in NetworkMethod("splitter").breaks["soft_topk"])


@pytest.mark.parametrize("kind", SORTING_KINDS)
def test_which_kinds_have_the_rows_of_the_sort(kind):
    x, options = _scores(2, 16), {"method": NetworkMethod(kind), "temperature": 0.5}
    every, some = (so.soft_permutation(x, k=k, **options) for k in (16, 3))
    whole = kind in ("odd_even", "bitonic_sort")
    assert torch.allclose(some, every[:, :3], atol=1e-12) == whole
    broken = NetworkMethod(kind).breaks["soft_permutation"]
    assert ("first_rows_are_the_first_rows" in broken) == (not whole)


def test_a_soft_topk_is_a_sum_of_rows():
    x, options = _scores(3, 12), {"method": "network", "temperature": 0.5}
    k = torch.tensor([2.0, 2.0, 3.25], dtype=torch.float64)
    mask = so.soft_topk(x, k, **options)
    torch.testing.assert_close(mask.sum(-1), k)
    rows = so.soft_permutation(x[:2], k=2, descending=True, **options)
    torch.testing.assert_close(mask[:2], rows.sum(1))
    rows = so.soft_permutation(x[2:], k=4, descending=True, **options)
    torch.testing.assert_close(mask[2:], rows[:, :3].sum(1) + 0.25 * rows[:, 3])


@pytest.mark.parametrize("k", [1.0, 5.5, 7.0, 9.0])
def test_what_is_certain_does_not_choose_the_network(k):
    """Up to k = 8 another kind serves: two that are certain must not lead from one to the other."""
    x = torch.randn(2, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    beside = torch.nn.functional.pad(x, (1, 1), value=math.inf)
    p = so.soft_topk(beside, k + 2, method="network")
    assert (p[:, [0, -1]] == 1).all()
    torch.testing.assert_close(p[:, 1:-1], so.soft_topk(x, k, method="network"))


def test_a_nan_beside_what_is_certain():
    x = torch.tensor([[math.nan, math.inf, 0.0, 1.0], [2.0, math.inf, 0.0, 1.0]])
    p = so.soft_topk(x, 2, method="network")
    assert torch.equal(p.isnan().all(-1), torch.tensor([True, False]))
    assert not p[1].isnan().any()


def test_a_soft_topk_of_everything_is_one():
    x = _scores(2, 6).requires_grad_()
    p = so.soft_topk(x, 6, method="network")
    assert (p == 1).all()
    assert (torch.autograd.grad(p.sum(), x)[0] == 0).all()


def test_wrong_options():
    with pytest.raises(ValueError, match="comparator must be one of logistic"):
        NetworkMethod(comparator="sigmoid")
    with pytest.raises(ValueError, match="kind must be one of odd_even"):
        NetworkMethod("bubble")
    with pytest.raises(ValueError, match="art_lambda must be None unless the comparator is"):
        NetworkMethod("bitonic", "cauchy", art_lambda=0.5)
    with pytest.raises(ValueError, match="art_lambda must be between 0 and 1, both excluded"):
        NetworkMethod("bitonic", "logistic_phi", art_lambda=1.0)

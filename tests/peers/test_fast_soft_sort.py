"""fast-soft-sort: the authors' NumPy code. Not on the registry: formulas stand for it.

Its values are those of the paper's formulas. Its derivative of the KL sort is not that of the
values: the shares within a block are the softmax of the places ρ/s, where the scores belong
(`SoftSort.compute` sets an attribute `s` of its isotonic problem, and nothing reads it).
"""

import pytest
import torch

import softorder as so
from tests.peers import permutahedra
from tests.peers.statements import ALL, Peer, agreement, difference, error, scores

PEER = Peer("fast-soft-sort", "commit e87a4de")


def _ours(operator, regularization, strength):
    method = "permutahedron" if regularization == "l2" else "permutahedron_kl"
    return lambda x: getattr(so, operator)(x, method=method, temperature=strength)


def _theirs(operator, regularization, strength):
    function = getattr(permutahedra, operator)
    return lambda x: function(x, strength, regularization)


def _both(operator, regularization):
    return [
        (_ours(operator, regularization, s), _theirs(operator, regularization, s), scores(9))
        for s in (2.0, 5.0, 10.0, 1000.0)
    ]


@agreement(
    PEER,
    theirs='soft_rank(x, regularization_strength=s, regularization="l2")',
    ours='soft_rank(x, method="permutahedron", temperature=s)',
    values=ALL,
    gradients=ALL,
)
def test_l2_ranks():
    return _both("soft_rank", "l2")


@agreement(
    PEER,
    theirs='soft_rank(x, regularization_strength=s, regularization="kl")',
    ours='soft_rank(x, method="permutahedron_kl", temperature=s)',
    values=ALL,
    gradients=ALL,
)
def test_kl_ranks():
    return _both("soft_rank", "kl")


@agreement(
    PEER,
    theirs='soft_sort(x, regularization_strength=s, regularization="l2")',
    ours='soft_sort(x, method="permutahedron", temperature=s)',
    values=ALL,
    gradients=ALL,
)
def test_l2_sorts():
    return _both("soft_sort", "l2")


@agreement(
    PEER,
    theirs='soft_sort(x, regularization_strength=s, regularization="kl")',
    ours='soft_sort(x, method="permutahedron_kl", temperature=s)',
    values=ALL,
    gradients=None,
    note="gradients: below",
)
def test_kl_sorts():
    return _both("soft_sort", "kl")


def _published_jacobian(x, strength):
    """∂sorted/∂x of the KL sort as it is published: softmax of the places within a block."""
    places = torch.arange(len(x), 0, -1, dtype=x.dtype) / strength
    s, order = (-x).sort(descending=True)
    jacobian = torch.zeros(len(x), len(x), dtype=x.dtype)
    for a, b in permutahedra.blocks(places, s, permutahedra.entropic):
        jacobian[a:b, order[a:b]] = torch.softmax(places[a:b], 0)
    return jacobian


@difference(
    PEER,
    "Jacobian of the KL sort, strength 1,000, n = 7",
    theirs="off by 0.33",
    ours="right to 9 digits",
    proof="central differences of the values, in which both agree",
)
def test_jacobian_of_the_kl_sort():
    x, strength = scores(7), 1000.0
    function = _theirs("soft_sort", "kl", strength)
    moves = 1e-6 * torch.eye(7, dtype=x.dtype)
    truth = torch.stack([(function(x + h) - function(x - h)) / 2e-6 for h in moves], 1)
    ours = torch.autograd.functional.jacobian(_ours("soft_sort", "kl", strength), x)
    torch.testing.assert_close(ours, truth, rtol=0, atol=1e-9)
    assert error(_published_jacobian(x, strength), truth) == pytest.approx(0.331, abs=1e-3)
    # without a block of two or more both are the permutation
    assert torch.equal(_published_jacobian(x, 0.01).argmax(-1), x.argsort())


def test_the_formulas_have_right_gradients():
    """Autograd of the formulas, which stand for the others' gradients, against differences."""
    for operator in ("soft_rank", "soft_sort"):
        for regularization in ("l2", "kl"):
            function = _theirs(operator, regularization, 2.0)
            x = scores(6, seed=5)
            jacobian = torch.autograd.functional.jacobian(function, x)
            moves = 1e-6 * torch.eye(6, dtype=x.dtype)
            truth = torch.stack([(function(x + h) - function(x - h)) / 2e-6 for h in moves], 1)
            torch.testing.assert_close(jacobian, truth, rtol=0, atol=1e-8)

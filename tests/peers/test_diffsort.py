"""diffsort: sorting networks with soft comparators, as dense matrices."""

import math
from itertools import product

import pytest
import torch

import softorder as so
from softorder.relaxations import NetworkMethod
from tests.peers.statements import (
    ALL,
    Peer,
    agreement,
    difference,
    digits,
    error,
    gradient,
    scores,
    slopes,
)

PEER = Peer("diffsort", "0.2.0", "diffsort")
_STEEPNESS = 3.0


def _ours(distribution="cauchy", temperature=1 / _STEEPNESS, kind="bitonic"):
    method = NetworkMethod(kind, distribution)
    return lambda x: so.soft_permutation(x, method=method, temperature=temperature)


def _theirs(n, distribution="cauchy", kind="bitonic", steepness=_STEEPNESS):
    net = PEER.load().DiffSortNet(kind, n, steepness=steepness, distribution=distribution)
    return lambda x: net(x)[1].mT  # column j of theirs says where the j-th smallest came from


def _sorted(n, steepness=_STEEPNESS):
    net = PEER.load().DiffSortNet("bitonic", n, steepness=steepness)
    return lambda x: net(x)[0]


@agreement(
    PEER,
    theirs='DiffSortNet("bitonic", n, steepness=1/τ, distribution="logistic" or "cauchy")',
    ours='soft_permutation(x, method=NetworkMethod("bitonic", distribution), temperature=τ)',
    values=ALL,
    gradients=ALL,
    note="n a power of two",
)
def test_permutations():
    return [
        (_ours(name), _theirs(n, name), scores(4, n))
        for n in (8, 16)
        for name in ("logistic", "cauchy")
    ]


@agreement(
    PEER,
    theirs='DiffSortNet("bitonic", n, steepness=4/τ, distribution="reciprocal")',
    ours='soft_permutation(x, method=NetworkMethod("bitonic", "reciprocal"), temperature=τ)',
    values=ALL,
    gradients=ALL,
    note="their u/(2 + u)/2 is ours of u/4",
)
def test_reciprocal_comparators():
    ours = _ours("reciprocal", 4 / _STEEPNESS)
    return [(ours, _theirs(n, "reciprocal"), scores(4, n)) for n in (8, 16)]


@agreement(
    PEER,
    theirs='DiffSortNet("bitonic", n, steepness=1/τ, distribution="gaussian")',
    ours='soft_permutation(x, method=NetworkMethod("bitonic", "gaussian"), temperature=τ)',
    values=ALL,
    gradients=7,
    note="theirs rounds τ to float32 for the backward pass: ours is right, by central differences",
)
def test_gaussian_comparators():
    ours, theirs, x = _ours("gaussian"), _theirs(8, "gaussian"), scores(4, 8)
    truth = slopes(theirs, x)
    assert digits(gradient(ours, x), truth) > 8.5 > digits(gradient(theirs, x), truth)
    return ours, theirs, x


@agreement(
    PEER,
    theirs='DiffSortNet("bitonic", n, steepness=1/τ, distribution="optimal")',
    ours='soft_permutation(x, method=NetworkMethod("bitonic", "optimal"), temperature=τ)',
    values=9,
    gradients=9,
    note="theirs adds 1e-10 where it divides by the distance: ours is the paper's formula",
)
def test_optimal_comparators():
    return _ours("optimal"), _theirs(8, "optimal"), scores(4, 8)


def test_the_optimal_comparator_is_the_papers():
    """Of two scores: 1 - 1/(16 u) beyond u = 1/4, exactly, which theirs misses by 1e-10."""
    x = torch.tensor([[0.0, 1.0]], dtype=torch.float64)
    keep = 1 - 1 / (16 * _STEEPNESS)
    assert abs(_ours("optimal")(x)[0, 0, 0].item() - keep) < 1e-15
    assert 1e-13 < abs(_theirs(2, "optimal")(x)[0, 0, 0].item() - keep) < 1e-10


@agreement(
    PEER,
    theirs='DiffSortNet("odd_even", n, steepness=1/τ)',
    ours='soft_permutation(x, method=NetworkMethod("odd_even"), temperature=τ)',
    values=ALL,
    gradients=ALL,
    note="any n",
)
def test_transposition():
    pairs = ((n, _ours(kind="odd_even"), _theirs(n, kind="odd_even")) for n in (5, 8, 9))
    return [(ours, theirs, scores(4, n)) for n, ours, theirs in pairs]


@difference(
    PEER,
    "`bitonic`, n = 22: not a power of two",
    theirs="does not sort, however steep: the first wires of 32 are dropped",
    ours="sorts: the last wires of 32 are dropped",
    proof="500 random orders; torch.sort",
)
def test_other_lengths():
    x = torch.rand(500, 22, generator=torch.Generator().manual_seed(22)).argsort(-1).double()
    truth = x.sort(-1).values
    found = (_ours(temperature=1e-6)(x) @ x.unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(found, truth, rtol=0, atol=1e-3)
    assert error(_sorted(22, steepness=1e6)(x), truth) > 0.9


@difference(
    PEER,
    "`bitonic`, n = 5",
    theirs="drops the first wires of 8",
    ours="drops the last wires of 8",
    proof="both sort all 32 rows of zeros and ones: both are sorting networks",
    right="both",
)
def test_two_networks_of_five():
    x = scores(4, 5)
    assert error(_ours()(x), _theirs(5)(x)) > 0.1
    rows = torch.tensor(list(product((0.0, 1.0), repeat=5)), dtype=torch.float64)
    truth = rows.sort(-1).values
    for permutation in (_ours(temperature=1e-12), _theirs(5, steepness=1e12)):
        found = (permutation(rows) @ rows.unsqueeze(-1)).squeeze(-1)
        torch.testing.assert_close(found, truth, rtol=0, atol=1e-6)


@difference(
    PEER,
    "an infinite score",
    theirs="the row is NaN",
    ours="goes last, the rest as without it",
    proof="the row without it, by a network that padding leaves alone",
)
def test_infinite_scores():
    x = torch.tensor([[1.0, 3.0, math.inf, 2.0]], dtype=torch.float64)
    assert _sorted(4)(x).isnan().all()
    options = {"method": NetworkMethod("pairwise"), "temperature": 1 / _STEEPNESS}
    found = so.soft_sort(x, **options)
    assert found[0, 3] == math.inf
    torch.testing.assert_close(found[:, :3], so.soft_sort(x[:, [0, 1, 3]], **options))


@difference(
    PEER,
    "float32, scores + 10⁶, n = 16",
    theirs="P off by 0.04",
    ours="right to float32",
    proof="the same float32 scores in float64",
)
def test_shifted_scores():
    x = (scores(4, 16, dtype=torch.float32) + 1e6).float()
    truth = _theirs(16)(x.double())
    assert error(_ours()(x.double()), truth) < 1e-8
    assert error(_ours()(x), truth) < 1e-6
    assert error(_theirs(16)(x), truth) == pytest.approx(0.04, abs=0.01)


@difference(
    PEER,
    "bfloat16 sort, n = 16",
    theirs="off by 0.03",
    ours="right to the last bit or two of the result",
    proof="the same bfloat16 scores in float64",
)
def test_half_precision():
    x = scores(4, 16, dtype=torch.bfloat16)
    truth = _sorted(16)(x.double())
    options = {"method": NetworkMethod("bitonic"), "temperature": 1 / _STEEPNESS}
    found = so.soft_sort(x, **options)
    torch.testing.assert_close(found, truth.bfloat16(), rtol=2**-7, atol=0)
    assert error(_sorted(16)(x), truth) == pytest.approx(0.03, abs=0.01)

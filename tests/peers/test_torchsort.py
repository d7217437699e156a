"""torchsort: soft ranks and sorts by projection onto permutahedra, in C++."""

import math

import pytest
import torch
from torch.autograd.gradcheck import GradcheckError

import softorder as so
from tests.peers.statements import ALL, Peer, agreement, difference, digits, error, gradient, scores

PEER = Peer(
    "torchsort", "0.1.10", "torchsort", "is not installed; it compiles against the installed torch"
)
_METHODS = {"l2": "permutahedron", "kl": "permutahedron_kl"}


def _ours(operator, regularization, strength):
    options = {"method": _METHODS[regularization], "temperature": strength}
    return lambda x: getattr(so, operator)(x, **options)


def _theirs(operator, regularization, strength):
    function = getattr(PEER.load(), operator)
    return lambda x: function(x, regularization, strength)


def _both(operator, regularization, x=None, strengths=(0.1, 1.0, 10.0, 1000.0)):
    x = scores(4, 9) if x is None else x
    return [
        (_ours(operator, regularization, s), _theirs(operator, regularization, s), x)
        for s in strengths
    ]


@agreement(
    PEER,
    theirs='soft_rank(x, "l2", s)',
    ours='soft_rank(x, method="permutahedron", temperature=s)',
    values=ALL,
    gradients=ALL,
)
def test_l2_ranks():
    return _both("soft_rank", "l2")


@agreement(
    PEER,
    theirs='soft_sort(x, "l2", s)',
    ours='soft_sort(x, method="permutahedron", temperature=s)',
    values=ALL,
    gradients=ALL,
)
def test_l2_sorts():
    return _both("soft_sort", "l2")


@agreement(
    PEER,
    theirs='soft_rank(x, "kl", s)',
    ours='soft_rank(x, method="permutahedron_kl", temperature=s)',
    values=ALL,
    gradients=ALL,
)
def test_kl_ranks():
    return _both("soft_rank", "kl")


@agreement(
    PEER,
    theirs='soft_sort(x, "kl", s)',
    ours='soft_sort(x, method="permutahedron_kl", temperature=s)',
    values=ALL,
    gradients=ALL,
)
def test_kl_sorts():
    return _both("soft_sort", "kl")


@agreement(
    PEER,
    theirs='soft_rank(x, "l2", s), equal scores',
    ours='soft_rank(x, method="permutahedron", temperature=s)',
    values=ALL,
    gradients=ALL,
)
def test_equal_scores():
    x = torch.tensor([[1.0, 1.0, 2.0, 0.5, 1.0]], dtype=torch.float64)
    return _both("soft_rank", "l2", x, (0.9, 3.0))


@difference(
    PEER,
    "l2 sort of scores of 10⁻¹⁰, strength 10⁻³: cold, so a hard sort",
    theirs="2 digits: ρ/s - (ρ/s - x) cancels",
    ours="exact",
    proof="torch.sort, to which both round",
)
def test_cold_sorts():
    x = 1e-10 * scores(4, 9)
    truth = x.sort(-1).values
    assert torch.equal(_ours("soft_sort", "l2", 1e-3)(x), truth)
    assert 2 <= digits(_theirs("soft_sort", "l2", 1e-3)(x), truth) < 3


@difference(
    PEER,
    "gradient of the l2 sort of scores of 10⁻¹⁰, strength 10⁹",
    theirs="1/n everywhere: blocks closer than 10⁻⁹ are taken for one",
    ours="a permutation",
    proof="the sort is hard there: all gaps are below 1/s",
)
def test_blocks_are_not_guessed():
    x = 1e-10 * scores(1, 9)
    assert (x.sort(-1).values.diff() < 1e-9).all()
    jacobian = torch.autograd.functional.jacobian
    ours = jacobian(_ours("soft_sort", "l2", 1e9), x).squeeze()
    assert torch.equal(ours, so.hard.permutation(x).squeeze())
    theirs = jacobian(_theirs("soft_sort", "l2", 1e9), x).squeeze()
    torch.testing.assert_close(theirs, torch.full_like(theirs, 1 / 9))


@difference(
    PEER,
    "float32, scores + 10⁶, l2 rank, strength 2",
    theirs="off by 0.06 ranks",
    ours="right to float32",
    proof="the same float32 scores in float64",
)
def test_shifted_scores():
    x = (scores(4, 9) + 1e6).float()
    truth = _ours("soft_rank", "l2", 2.0)(x.double())
    torch.testing.assert_close(
        truth, _theirs("soft_rank", "l2", 2.0)(x.double()), rtol=1e-9, atol=0
    )
    torch.testing.assert_close(_ours("soft_rank", "l2", 2.0)(x).double(), truth, rtol=1e-6, atol=0)
    assert error(_theirs("soft_rank", "l2", 2.0)(x), truth) == pytest.approx(0.06, abs=0.02)


@difference(
    PEER,
    "float32, n = 100,000, KL rank, strength 1,000",
    theirs="2 to 3 digits",
    ours="6 digits and more",
    proof="float64, in which both agree",
)
def test_long_rows():
    x = scores(1, 100_000, seed=3, dtype=torch.float32)
    ours, theirs = _ours("soft_rank", "kl", 1e3), _theirs("soft_rank", "kl", 1e3)
    truth = ours(x.double())
    assert digits(theirs(x.double()), truth) > 10
    assert digits(ours(x), truth) > 6
    assert digits(theirs(x), truth) < 4


@difference(
    PEER,
    "second derivative of the KL rank",
    theirs="wrong, silently: blocks are taken for constants",
    ours="right",
    proof="gradgradcheck",
)
def test_second_derivatives():
    x = scores(2, 6).requires_grad_()
    assert torch.autograd.gradgradcheck(_ours("soft_rank", "kl", 1.0), x)
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        torch.autograd.gradgradcheck(_theirs("soft_rank", "kl", 1.0), x)


@difference(
    PEER,
    "a score of -inf, l2 rank",
    theirs="NaN for it, and all others a rank too high",
    ours="last, the rest as without it",
    proof="the row without it",
)
def test_absent_scores():
    x = torch.tensor([[1.0, 3.0, -math.inf, 2.0]], dtype=torch.float64)
    rest = x[:, [0, 1, 3]]
    alone = _theirs("soft_rank", "l2", 0.1)(rest)
    found = _theirs("soft_rank", "l2", 0.1)(x)
    assert found[0, 2].isnan()
    assert torch.equal(found[:, [0, 1, 3]], alone + 1)
    ours = _ours("soft_rank", "l2", 0.1)(x)
    assert ours[0, 2] == 4
    assert torch.equal(ours[:, [0, 1, 3]], alone)


@difference(
    PEER,
    "NaN in a row, l2 rank",
    theirs="NaN for it, the others are ranked below it",
    ours="NaN in the whole row",
    proof="a choice: ours hides no NaN, theirs keeps what it can",
    right="both",
)
def test_nan():
    x = torch.tensor([[1.0, 3.0, math.nan, 2.0]], dtype=torch.float64)
    found = _theirs("soft_rank", "l2", 0.1)(x)
    assert found[0, [0, 1, 3]].tolist() == [1, 3, 2]
    assert found[0, 2].isnan()
    assert _ours("soft_rank", "l2", 0.1)(x).isnan().all()


@difference(
    PEER,
    "bfloat16, and 1-D or 3-D scores",
    theirs="raises",
    ours="as in float32, any shape",
    proof="float32 and the rows one by one",
)
def test_other_inputs():
    function, x = PEER.load().soft_rank, scores(2, 3, 5, dtype=torch.float32)
    for wrong in (x, x[0, 0], x[0].bfloat16()):
        with pytest.raises((ValueError, RuntimeError, NotImplementedError)):
            function(wrong)
    ours = _ours("soft_rank", "l2", 1.0)
    torch.testing.assert_close(ours(x)[1], function(x[1]))
    half = x.bfloat16()
    torch.testing.assert_close(ours(half), ours(half.float()).bfloat16())
    assert gradient(ours, half).isfinite().all()

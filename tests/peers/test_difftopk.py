"""difftopk: rows of soft permutations and the top-k losses made of them; float32 only."""

import contextlib
import io
import math

import pytest
import torch

import softorder as so
from softorder.relaxations import NetworkMethod
from tests.peers.statements import (
    ALL,
    Peer,
    agreement,
    cotangent,
    difference,
    digits,
    error,
    gradient,
    scores,
    slopes,
)

PEER = Peer("difftopk", "0.2.0", "difftopk")
_TARGET = torch.tensor([0, 3, 5, 8])

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of how it uses torch


def _load():
    with contextlib.redirect_stdout(io.StringIO()):  # it prints what it misses
        return PEER.load()


def _scores(*shape, seed=0):
    return scores(*shape, seed=seed, dtype=torch.float32)


@agreement(
    PEER,
    theirs='DiffTopkNet("bitonic", n, k, sparse=False, steepness=1/τ)',
    ours='soft_permutation(x, k=k, method=NetworkMethod("bitonic_sort"), temperature=τ,'
    " descending=True)",
    values=ALL,
    gradients=ALL,
    note="float32",
)
def test_rows_of_a_bitonic_network():
    options = {"method": NetworkMethod("bitonic_sort"), "temperature": 0.5, "descending": True}
    pairs = []
    for n, k in ((8, 3), (16, 3), (16, 5), (64, 3)):
        net = _load().DiffTopkNet("bitonic", n, k, sparse=False, steepness=2.0)
        pairs.append(
            (
                lambda x, k=k: so.soft_permutation(x, k=k, **options),
                lambda x, net=net: net(x)[1].mT.flip(-2),
                _scores(4, n),
            )
        )
    return pairs


@agreement(
    PEER,
    theirs="NeuralSort(tau=τ)",
    ours='soft_permutation(x, method="neuralsort", temperature=τ)',
    values=ALL,
    gradients=ALL,
    note="float32",
)
def test_neuralsort():
    theirs = _load().NeuralSort(tau=0.5)
    return (
        lambda x: so.soft_permutation(x, method="neuralsort", temperature=0.5),
        lambda x: theirs(x).mT,
        _scores(4, 9),
    )


@agreement(
    PEER,
    theirs="SoftSort(tau=τ)",
    ours='soft_permutation(x, method="softsort", temperature=τ, descending=True)',
    values=ALL,
    gradients=ALL,
    note="float32",
)
def test_softsort():
    return (
        lambda x: so.soft_permutation(x, method="softsort", temperature=0.5, descending=True),
        _load().SoftSort(tau=0.5),
        _scores(4, 9),
    )


def _loss(mode, p_k=(0.5, 0.0, 0.5), method="softsort"):
    loss = _load().TopKCrossEntropyLoss(method, 2.0, list(p_k), 9, top1_mode=mode)
    return lambda x: loss(x, _TARGET)


def _our_loss(top1, p_k=(0.5, 0.0, 0.5), method="softsort"):
    return lambda x: so.losses.top_k_cross_entropy(
        x, _TARGET, list(p_k), method=method, temperature=0.5, top1=top1
    )


@agreement(
    PEER,
    theirs='TopKCrossEntropyLoss("softsort", 1/τ, p_k, n, top1_mode="sort" or "smce")',
    ours='top_k_cross_entropy(x, y, p_k, method="softsort", temperature=τ, top1="operator" or'
    ' "softmax")',
    values=ALL,
    gradients=ALL,
    note="float32; targets that are not hopeless",
)
def test_losses():
    modes = (("sort", "operator"), ("smce", "softmax"))
    return [(_our_loss(ours), _loss(theirs), 0.5 * _scores(4, 9)) for theirs, ours in modes]


@difference(
    PEER,
    "loss of a target far below the rest",
    theirs="never above 16.1, gradient 0: log(p + 1e-7)",
    ours="grows, with its gradient",
    proof="-log p of the formula in float64",
)
def test_hopeless_targets():
    x = torch.zeros(4, 9)
    x[range(4), _TARGET] = -20.0
    x += 0.1 * _scores(4, 9)
    p_k = (0.0, 0.0, 1.0)
    rows = torch.softmax(
        -(x.double().sort(-1, descending=True).values[..., None] - x.double()[:, None]).abs() / 0.5,
        -1,
    )
    truth = -rows[:, :3].sum(1)[range(4), _TARGET].log().mean()
    ours, theirs = (x.clone().requires_grad_() for _ in range(2))
    loss = _our_loss("operator", p_k)(ours)
    torch.testing.assert_close(loss.double(), truth, rtol=1e-5, atol=0)
    assert torch.autograd.grad(loss, ours)[0].abs().max() > 0.1
    capped = _loss("sort", p_k)(theirs)
    assert capped.item() == pytest.approx(-math.log(1e-7), rel=1e-3)
    assert torch.autograd.grad(capped, theirs)[0].abs().max() < 1e-6


@agreement(
    PEER,
    theirs="SmoothTopKLoss(n, k, tau=τ)",
    ours="smooth_top_k(x, y, k, temperature=τ)",
    values=ALL,
    gradients=None,
    note="float32; Berrada et al.'s own code; gradients: below",
)
def test_smooth_losses():
    x = _scores(4, 20)
    return [
        (
            lambda x, k=k, t=t: so.losses.smooth_top_k(x, _TARGET, k, temperature=t),
            lambda x, k=k, t=t: _load().SmoothTopKLoss(20, k, tau=t)(x, _TARGET),
            x,
        )
        for k, t in ((2, 0.1), (5, 0.1), (2, 1.0), (5, 1.0))
    ]


@difference(
    PEER,
    "gradient of `SmoothTopKLoss`, float32, k = 5, τ = 0.1, over eight seeds",
    theirs="2 to 4 digits",
    ours="6 digits",
    proof="our gradient in float64, itself checked by central differences",
)
def test_gradient_of_the_smooth_loss():
    def ours(x):
        return so.losses.smooth_top_k(x, _TARGET, 5, temperature=0.1)

    def theirs(x):
        return _load().SmoothTopKLoss(20, 5, tau=0.1)(x, _TARGET)

    x = _scores(4, 20).double()
    torch.testing.assert_close(gradient(ours, x), slopes(ours, x), rtol=0, atol=1e-8)
    found = []
    for seed in range(8):
        x = _scores(4, 20, seed=seed)
        truth = gradient(ours, x.double()) / cotangent(ours(x.double()))
        assert digits(gradient(ours, x) / cotangent(ours(x)), truth) > 6
        found.append(digits(gradient(theirs, x) / cotangent(theirs(x)), truth))
    assert 2 < min(found) < 3
    assert 4 < max(found) < 5


@difference(
    PEER,
    "float64 scores, `DiffTopkNet`",
    theirs="raises: double != float",
    ours="float64 results",
    proof="float32 agrees with them",
)
def test_double_precision():
    net, x = _load().DiffTopkNet("bitonic", 8, 3, sparse=False), scores(2, 8)
    with pytest.raises(RuntimeError, match=r"double != float|same dtype"):
        net(x)
    options = {"method": NetworkMethod("bitonic"), "temperature": 0.1}
    found = so.soft_permutation(x, **options)
    assert found.dtype == torch.float64
    assert error(found[..., -3:, :], net(x.float())[1].mT) < 1e-5

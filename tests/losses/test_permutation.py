"""permutation_cross_entropy: entries of P without P, exact however small they are."""

import math

import numpy as np
import pytest
import torch

import softorder as so
from tests.oracles import exact
from tests.oracles.densities import BUILT_IN

_loss = so.losses.permutation_cross_entropy
_FAR = [name for name in BUILT_IN if name != "uniform"]  # P has no exact zero


def _problem(*shape):
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(*shape, dtype=torch.float64, generator=generator)
    return scores, torch.rand(*shape, generator=generator).argsort(-1)


def _entries(p, target):
    return p.gather(-2, target.unsqueeze(-2)).squeeze(-2)


@pytest.mark.parametrize("method", _FAR)
@pytest.mark.parametrize("descending", [False, True])
def test_is_the_logarithm_of_the_matrix(kernel, method, descending):
    scores, target = _problem(3, 20)
    options = {"method": method, "temperature": 0.4, "descending": descending}
    losses = _loss(scores, target, reduction="none", **options)
    p = so.soft_permutation(scores, **options)
    torch.testing.assert_close(losses, -_entries(p, target).log(), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("method", _FAR)
def test_gradient_is_that_of_the_matrix(kernel, method):
    scores, target = _problem(2, 7)
    inputs = scores.requires_grad_(), torch.tensor(0.6, dtype=torch.float64, requires_grad=True)
    found = torch.autograd.grad(_loss(scores, target, method=method, temperature=inputs[1]), inputs)
    p = so.soft_permutation(scores, method=method, temperature=inputs[1])
    truth = torch.autograd.grad(-_entries(p, target).log().mean(), inputs)
    for one, other in zip(found, truth, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("method", _FAR)
@pytest.mark.parametrize("temperature", [1e-3, 0.05, 1.0])
def test_agrees_with_80_digits_far_away(kernel, method, temperature):
    scores, target = [0.3, -1.2, 2.0, 0.9], [3, 1, 0, 2]
    found = _loss(
        torch.tensor(scores, dtype=torch.float64),
        torch.tensor(target),
        method=method,
        temperature=temperature,
        reduction="none",
    )
    truth = exact.permutation_losses(scores, target, temperature, method)
    np.testing.assert_allclose(found.numpy(), truth, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("method", _FAR)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("temperature", [1e-6, 1e-3])
def test_loss_and_gradient_stay_finite_far_away(kernel, method, dtype, temperature):
    scores = torch.tensor([0.3, -1.2, 2.0, 0.9, 1e3], dtype=dtype, requires_grad=True)
    target = torch.tensor([3, 4, 0, 2, 1])
    loss = _loss(scores, target, method=method, temperature=temperature)
    (gradient,) = torch.autograd.grad(loss, scores)
    assert loss.isfinite()
    assert gradient.isfinite().all()
    if method != "cauchy":  # whose thresholds feel everybody, and move along
        assert (gradient[2] > 0) & (gradient[1] < 0), gradient  # towards their places


def test_uniform_has_no_hope_where_it_is_zero():
    scores, target = torch.tensor([0.0, 5.0], requires_grad=True), torch.tensor([1, 0])
    loss = _loss(scores, target, method="uniform")
    assert loss == math.inf
    (gradient,) = torch.autograd.grad(loss, scores)
    assert (gradient == 0).all()
    assert _loss(scores, 1 - target, method="uniform") == 0


def test_reductions():
    scores, target = _problem(3, 5)
    losses = _loss(scores, target, reduction="none")
    assert losses.shape == scores.shape
    torch.testing.assert_close(_loss(scores, target, reduction="sum"), losses.sum())
    torch.testing.assert_close(_loss(scores, target), losses.mean())


def test_ignored_places_take_part_without_a_loss():
    scores, target = _problem(3, 5)
    losses = _loss(scores, target, reduction="none")
    partly = target.clone()
    partly[0, 2], partly[1, :] = -100, -100
    kept = partly != -100
    found = _loss(scores, partly, reduction="none")
    torch.testing.assert_close(found, torch.where(kept, losses, 0.0))
    torch.testing.assert_close(_loss(scores, partly), losses[kept].mean())
    renamed = torch.where(kept, target, 77)
    torch.testing.assert_close(_loss(scores, renamed, ignore_index=77), losses[kept].mean())
    assert _loss(scores, torch.full_like(target, -100)).isnan()  # as torch has it


@pytest.mark.parametrize("descending", [False, True])
def test_what_is_masked_out_changes_nothing(descending):
    scores, target = _problem(3, 5)
    padded = torch.cat([scores[:, :2], torch.full((3, 2), math.nan), scores[:, 2:]], -1)
    places = torch.cat([target[:, :2], torch.full((3, 2), 6), target[:, 2:]], -1)
    mask = ~padded.isnan()
    found = _loss(padded, places, mask=mask, descending=descending, reduction="none")
    expected = _loss(scores, target, descending=descending, reduction="none")
    torch.testing.assert_close(found[mask], expected.flatten())
    assert (found[~mask] == 0).all()
    minus = torch.where(mask, padded, -math.inf).requires_grad_()
    loss = _loss(minus, places, descending=descending)
    torch.testing.assert_close(loss, expected.mean())
    (gradient,) = torch.autograd.grad(loss, minus)
    assert (gradient[~mask] == 0).all()
    assert gradient.isfinite().all()


def test_certain_elements_share_their_places():
    scores = torch.tensor([math.inf, 0.0, math.inf, -3.0], requires_grad=True)
    losses = _loss(scores, torch.tensor([2, 1, 3, 0]), temperature=0.01, reduction="none")
    assert losses.tolist() == pytest.approx([math.log(2), 0, math.log(2), 0], abs=1e-6)
    wrong = _loss(scores, torch.tensor([0, 1, 3, 2]), temperature=0.01, reduction="none")
    assert wrong[0] == math.inf
    assert wrong[3] == math.inf


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_any_axis(dim):
    scores, target = _problem(3, 4)
    expected = _loss(scores, target, reduction="none")
    moved = _loss(scores.movedim(-1, dim), target.movedim(-1, dim), dim=dim, reduction="none")
    torch.testing.assert_close(moved.movedim(dim, -1), expected)


def test_memory_of_the_graph_is_linear():
    def saved(n):
        kept = []  # alive until they are counted: memory that is free again has another's address

        def pack(tensor):
            kept.append(tensor.untyped_storage())
            return tensor

        scores, target = _problem(1, n)
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            _loss(scores.requires_grad_(), target)
        return sum({storage.data_ptr(): storage.nbytes() for storage in kept}.values())

    assert saved(8000) < 2.2 * saved(4000)


def test_a_perfect_order_costs_nothing():
    scores = torch.tensor([3.0, 1.0, 2.0])
    assert _loss(scores, torch.tensor([2, 0, 1]), temperature=1e-3) == 0
    assert _loss(scores, torch.tensor([0, 2, 1]), temperature=1e-3, descending=True) == 0


def test_learns_an_order():
    target = torch.tensor([2, 0, 3, 1])
    scores = torch.zeros(4, requires_grad=True)
    criterion = so.losses.PermutationCrossEntropyLoss(temperature=0.5)
    optimizer = torch.optim.Adam([scores], lr=0.1)
    for _ in range(60):
        optimizer.zero_grad()
        criterion(scores, target).backward()
        optimizer.step()
    assert scores.argsort().argsort().tolist() == target.tolist()


def test_module_computes_the_function():
    scores, target = _problem(3, 5)
    mask = scores < 1
    options = {"method": "normal", "temperature": 0.3, "descending": True, "reduction": "sum"}
    module = so.losses.PermutationCrossEntropyLoss(**options)
    assert torch.equal(module(scores, target, mask), _loss(scores, target, mask=mask, **options))
    for part in ("normal", "temperature=0.3", "descending=True", "ignore_index=-100", "sum"):
        assert part in repr(module)


@pytest.mark.parametrize(
    ("target", "error", "message"),
    [
        (torch.tensor([0, 1, 3]), ValueError, r"target must be between 0 and 2.*-100, but got 3"),
        (torch.tensor([0, 1]), ValueError, r"target.*\(3,\).*\(2,\)"),
        (torch.tensor([0.0, 1.0, 2.0]), TypeError, r"target must hold integers.*float32"),
        ([0, 1, 2], TypeError, r"target must be a tensor.*list"),
    ],
)
def test_wrong_targets(target, error, message):
    with pytest.raises(error, match=message):
        _loss(torch.zeros(3), target)


def test_wrong_reduction():
    with pytest.raises(ValueError, match=r"reduction must be 'mean'.*'average'"):
        so.losses.PermutationCrossEntropyLoss(reduction="average")

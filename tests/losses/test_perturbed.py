"""The loss of a perturbed top-k, against quadrature."""

import math

import pytest
import torch

import softorder as so
from tests.oracles import perturbed as oracle

_X = torch.tensor([0.9, -0.3, 0.2, 0.5], dtype=torch.float64)
_Y = torch.tensor([0.0, 1.0, 1.0, 0.0], dtype=torch.float64)


def _generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("noise", ["normal", "gumbel"])
def test_its_derivatives_are_those_of_the_mean(noise):
    """In the scores p - y. In τ: L/τ depends on x/τ alone, so ∂L/∂τ = (L - <x, p - y>)/τ."""
    tau, draws = 0.6, 3000
    x = _X.expand(draws, 4).clone().requires_grad_()
    taus = torch.full((draws,), tau, dtype=torch.float64, requires_grad=True)
    options = {"temperature": taus, "noise": noise, "samples": 5, "reduction": "none"}
    losses = so.losses.perturbed_fenchel_young(x, _Y.expand(draws, 4), 2, **options)
    by_x, by_tau = torch.autograd.grad(losses.sum(), (x, taus))
    wanted = oracle.topk(_X, 2, tau, noise) - _Y
    error = by_x.std(0) / math.sqrt(draws)
    assert ((by_x.mean(0) - wanted).abs() <= 5 * error).all()
    torch.testing.assert_close(by_tau, (losses - by_x @ _X) / tau)


def test_its_value_is_an_integral_of_its_derivative():
    """L → 0 as the target is raised to where it is certain: 5 standard errors, 1 in 1.7 million."""
    steps = torch.linspace(0, 8, 81, dtype=torch.float64)
    slopes = []
    for step in steps:
        p = oracle.topk(_X + step * _Y, 2, 0.6, "normal")
        slopes.append((p - _Y) @ _Y)
    wanted = -torch.trapezoid(torch.stack(slopes), steps)
    many = _X.expand(20_000, 4)
    options = {"temperature": 0.6, "samples": 5, "reduction": "none", "generator": _generator()}
    losses = so.losses.perturbed_fenchel_young(many, _Y.expand(20_000, 4), **options)
    assert (losses >= 0).all()
    error = losses.std() / math.sqrt(len(losses))
    assert abs(losses.mean() - wanted) < 5 * error + 2e-4  # of the trapezoid


def test_training_finds_the_target():
    x = torch.zeros(3, 6, requires_grad=True)
    target = so.hard.topk(torch.randn(3, 6, generator=_generator(1)), 2)
    criterion = so.losses.PerturbedFenchelYoungLoss(
        temperature=0.5, samples=1, generator=_generator()
    )
    assert "samples=1, noise='normal'" in repr(criterion)
    optimizer = torch.optim.SGD([x], 0.3)
    for _ in range(100):
        optimizer.zero_grad()
        criterion(x, target).backward()
        optimizer.step()
    assert torch.equal(so.hard.topk(x, 2), target)


def test_what_takes_no_part_and_what_is_certain():
    x = torch.tensor([0.3, math.nan, -math.inf, math.inf, 0.1], requires_grad=True)
    mask = torch.tensor([True, False, True, True, True])
    target = torch.tensor([1.0, 0.5, 0.2, 1.0, 0.0])
    loss = so.losses.perturbed_fenchel_young(x, target, 2, mask=mask)
    assert 0 < loss < 5
    (found,) = torch.autograd.grad(loss, x)
    assert found[[1, 2, 3]].tolist() == [0.0] * 3
    assert found[0] < 0 < found[4]
    wrong = torch.tensor([1.0, 0.0, 0.0, 0.0, 1.0])
    assert so.losses.perturbed_fenchel_young(x, wrong, 2, mask=mask) == math.inf


def test_few_take_part():
    """Fewer than k: each of them is chosen, and the targets of the others do not count."""
    x = torch.tensor([[0.3, -math.inf, -math.inf], [0.0, 1.0, 2.0]], requires_grad=True)
    target = torch.tensor([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    losses = so.losses.perturbed_fenchel_young(x, target, 2, reduction="none")
    assert losses[0] == 0
    losses.sum().backward()
    assert x.grad[0].tolist() == [0.0] * 3
    empty = so.losses.perturbed_fenchel_young(torch.zeros(2, 0), torch.zeros(2, 0), reduction="sum")
    assert empty == 0


def test_axes_and_reductions():
    x = torch.randn(4, 5, generator=_generator())
    target = so.hard.topk(-x, 2)
    each = so.losses.perturbed_fenchel_young(x, target, reduction="none", generator=_generator(1))
    moved = so.losses.perturbed_fenchel_young(
        x.T, target.T, dim=0, reduction="sum", generator=_generator(1)
    )
    torch.testing.assert_close(moved, each.sum())
    half = so.losses.perturbed_fenchel_young(x.half(), target.half(), generator=_generator(1))
    assert half.dtype == torch.float16


def test_wrong_arguments():
    x = torch.zeros(4, requires_grad=True)
    with pytest.raises(ValueError, match="k must be whole for a perturbed loss"):
        so.losses.perturbed_fenchel_young(x, torch.full((4,), 0.125))
    with pytest.raises(ValueError, match="target"):
        so.losses.perturbed_fenchel_young(x, torch.ones(4), 2)
    with pytest.raises(ValueError, match="noise must be one of"):
        so.losses.PerturbedFenchelYoungLoss(noise="laplace")
    loss = so.losses.perturbed_fenchel_young(x, torch.tensor([1.0, 0.0, 0.0, 0.0]))
    (slope,) = torch.autograd.grad(loss, x, create_graph=True)
    with pytest.raises(RuntimeError, match="no second derivatives"):
        slope.sum().backward()

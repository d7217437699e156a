"""Laws of elements that take no part: masked out, or at minus infinity."""

import math

import torch

from tests.laws.close import assert_close

_GARBAGE = torch.tensor([math.nan, math.inf, -math.inf, 1e30, 0.0], dtype=torch.float64)


def masked_out_elements_change_nothing(op, problem):
    padded, mask = _pad(problem, _GARBAGE)
    p = op(padded, problem.k, temperature=problem.temperature, mask=mask)
    _assert_padding_is_invisible(op, problem, p, mask)


def masked_out_elements_are_not_the_smallest(op, problem):
    padded, mask = _pad(problem, _GARBAGE)
    p = op(padded, problem.k, temperature=problem.temperature, mask=mask, largest=False)
    assert_close(p[mask], problem.solve(op, largest=False).flatten())
    assert (p[~mask] == 0).all()


def minus_infinity_changes_nothing(op, problem):
    padded, mask = _pad(problem, torch.tensor([-math.inf], dtype=torch.float64))
    p = op(padded, problem.k, temperature=problem.temperature)
    _assert_padding_is_invisible(op, problem, p, mask)


def plus_infinity_is_padding_of_the_smallest(op, problem):
    padded, mask = _pad(problem, torch.tensor([math.inf], dtype=torch.float64))
    p = op(padded, problem.k, temperature=problem.temperature, largest=False)
    assert_close(p[mask], problem.solve(op, largest=False).flatten())
    assert (p[~mask] == 0).all()


def a_mask_may_differ_from_row_to_row(op, problem):
    scores, mask = problem.scores, _some_of_each_row(problem)
    available = mask.sum(-1)
    k = problem.k * available / problem.n
    together = op(scores, k, temperature=problem.temperature, mask=mask)
    for row, x in enumerate(scores):
        chosen = x[mask[row]]
        alone = op(chosen, k[row], temperature=problem.temperature[row])
        assert_close(together[row][mask[row]], alone)


def a_mask_may_broadcast(op, problem):
    mask = _some_of_each_row(problem)[0]
    k = problem.k * mask.sum() / problem.n
    broadcast = op(problem.scores, k, temperature=problem.temperature, mask=mask)
    full = mask.expand_as(problem.scores)
    assert_close(broadcast, op(problem.scores, k, temperature=problem.temperature, mask=full))
    assert (broadcast[..., ~mask] == 0).all()


def too_few_available_are_all_taken(op, problem):
    mask = _some_of_each_row(problem)
    everything = float(problem.n)
    p = op(problem.scores, everything, temperature=problem.temperature, mask=mask)
    assert torch.equal(p, mask.to(p.dtype))


def a_row_without_elements_is_zero(op, problem):
    nothing = torch.zeros_like(problem.scores, dtype=torch.bool)
    assert (problem.solve(op, mask=nothing) == 0).all()
    empty = torch.full_like(problem.scores, -math.inf)
    assert (op(empty, problem.k, temperature=problem.temperature) == 0).all()


def padding_takes_no_gradient(op, problem):
    padded, mask = _pad(problem, torch.tensor([-math.inf, 1e30], dtype=torch.float64))
    upstream = torch.randn(padded.shape, dtype=torch.float64, generator=problem.generator())
    padded.requires_grad_()
    p = op(padded, problem.k, temperature=problem.temperature, mask=mask)
    (gradient,) = torch.autograd.grad(p, padded, upstream)
    plain = problem.scores.clone().requires_grad_()
    kept = upstream[mask].view_as(plain)
    unpadded = op(plain, problem.k, temperature=problem.temperature)
    (expected,) = torch.autograd.grad(unpadded, plain, kept)
    assert (gradient[~mask] == 0).all()
    scale = expected.abs().max().clamp(min=1).item()
    assert_close(gradient[mask].view_as(plain), expected, atol=1e-10 * scale)


def _pad(problem, filling):
    """Puts five fillers among the elements of every row: (padded, where the elements are)."""
    rows, n = problem.scores.shape
    elements = torch.randperm(n + 5, generator=problem.generator())[:n].sort().values
    mask = torch.zeros(rows, n + 5, dtype=torch.bool)
    mask[:, elements] = True
    padded = filling.repeat(n + 5)[: n + 5].repeat(rows, 1)
    padded[mask] = problem.scores.flatten()
    return padded, mask


def _some_of_each_row(problem):
    """A mask that keeps at least one element of every row."""
    mask = torch.rand(problem.scores.shape, generator=problem.generator()) < 0.6
    mask[:, 0] = True
    return mask


def _assert_padding_is_invisible(op, problem, p, mask):
    assert_close(p[mask], problem.solve(op).flatten())
    assert (p[~mask] == 0).all()

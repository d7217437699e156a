"""Laws of the forms that arguments may have: several axes, kept ones, hard=True, jagged rows."""

import torch

import softorder as so
from tests.laws.close import assert_close
from tests.laws.inputs import _with_mirror, _without_the_last


def several_axes_are_one(op, problem):
    block, k, temperature = _with_mirror(problem.scores), problem.k, problem.temperature
    mask = _without_the_last(block)
    for own in (None, mask):
        p = op(block, k, temperature=temperature, dim=(0, 2), mask=own)
        assert p.shape == block.shape
        joined = None if own is None else _joined(own)
        assert_close(_joined(p), op(_joined(block), k, temperature=temperature, mask=joined))
    everything = op(block, k[0], temperature=temperature[0], dim=None)
    assert_close(everything.flatten(), op(block.flatten(), k[0], temperature=temperature[0]))


def numbers_may_keep_their_axis(op, problem):
    expected = problem.solve(op)
    k, temperature = problem.k.unsqueeze(-1), problem.temperature.unsqueeze(-1)
    assert_close(op(problem.scores, k, temperature=temperature), expected)
    across = op(problem.scores.T, k.T, temperature=temperature.T, dim=0)
    assert_close(across.T, expected)
    block, (k, temperature) = _with_mirror(problem.scores), (v[None] for v in (k, temperature))
    kept = op(block, k, temperature=temperature, dim=(0, 2))
    assert_close(kept, op(block, problem.k, temperature=problem.temperature, dim=(0, 2)))


def rows_of_different_lengths_are_rows_alone(op, problem):
    scores, rows = _shorter_and_shorter(problem.scores)
    found = op(scores, problem.k, temperature=problem.temperature).values()
    each = [
        op(row, k.clamp(max=len(row)), temperature=tau)
        for row, k, tau in zip(rows, problem.k, problem.temperature, strict=True)
    ]
    assert_close(found, torch.cat(each))


def hard_is_the_limit_with_the_soft_gradient(op, problem):
    for mask in (None, _without_the_last(problem.scores)):
        limit = so.hard.topk(problem.scores, problem.k, mask=mask)
        _agree(op, problem.arguments, limit, mask=mask)


hard_is_the_limit_with_the_soft_gradient.operators = ("soft_topk",)


def _agree(op, arguments, limit, **options):
    """hard=True has the value of the limit, and every gradient of the soft operator, exactly."""
    gradients = []
    for hard in (False, True):
        inputs = [v.clone().requires_grad_() for v in arguments]
        *others, temperature = inputs
        result = op(*others, temperature=temperature, hard=hard, **options)
        weights = torch.linspace(-1, 2, result.numel(), dtype=result.dtype).view_as(result)
        gradients.append(torch.autograd.grad((result * weights).nansum(), inputs))
    assert torch.equal(result, limit)
    for soft, straight in zip(*gradients, strict=True):
        torch.testing.assert_close(straight, soft, rtol=0, atol=0, equal_nan=True)


def _shorter_and_shorter(scores):
    """Rows that lose one score more from row to row, jagged and as a list."""
    rows = [row[: max(scores.shape[-1] - i, 0)] for i, row in enumerate(scores)]
    offsets = torch.tensor([0, *map(len, rows)]).cumsum(0)
    return torch.nested.nested_tensor_from_jagged(torch.cat(rows), offsets=offsets), rows


def _joined(block):
    return block.transpose(0, 1).flatten(1)

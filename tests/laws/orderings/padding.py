"""Laws of elements that take no part, and of those that are certain."""

import math

import torch

from tests.laws.close import assert_close
from tests.laws.orderings.binding import orderings, orderings_and_sums
from tests.laws.orderings.operators import embedded, is_value
from tests.laws.padding import _GARBAGE, _pad, _some_of_each_row


@orderings
def masked_out_elements_change_nothing(op, problem):
    padded, mask = _pad(problem, _GARBAGE)
    for descending in (False, True):
        result = op(padded, temperature=problem.temperature, mask=mask, descending=descending)
        expected = embedded(op, op.solve(problem, descending=descending), mask, descending)
        assert_close(result, expected, atol=1e-11)


@orderings
def minus_infinity_changes_nothing(op, problem):
    padded, mask = _pad(problem, torch.tensor([-math.inf], dtype=torch.float64))
    for descending in (False, True):
        result = op(padded, temperature=problem.temperature, descending=descending)
        expected = embedded(op, op.solve(problem, descending=descending), mask, descending)
        assert_close(result, expected, atol=1e-11)


@orderings
def a_mask_may_differ_from_row_to_row(op, problem):
    mask = _some_of_each_row(problem)
    together = op(problem.scores, temperature=problem.temperature, mask=mask)
    for row, x in enumerate(problem.scores):
        alone = op(x[None, mask[row]], temperature=problem.temperature[row])
        expected = embedded(op, alone, mask[row : row + 1], descending=False)
        assert_close(together[row : row + 1], expected, atol=1e-11)


@orderings_and_sums
def a_mask_may_broadcast(op, problem):
    mask = _some_of_each_row(problem)[0]
    broadcast = op(problem.scores, temperature=problem.temperature, mask=mask)
    full = mask.expand_as(problem.scores)
    assert_close(broadcast, op(problem.scores, temperature=problem.temperature, mask=full))
    assert not torch.equal(broadcast, op.solve(problem)) or mask.all()


@orderings
def a_row_without_elements_is_all_padding(op, problem):
    nothing = torch.zeros_like(problem.scores, dtype=torch.bool)
    for descending in (False, True):
        result = op.solve(problem, mask=nothing, descending=descending)
        if op.name == "soft_quantile":
            assert result.isnan().all()
        else:
            empty = problem.scores[:, :0]
            none = op(empty, temperature=problem.temperature, descending=descending)
            assert_close(result, embedded(op, none, nothing, descending))


@orderings
def plus_infinity_is_certainly_the_largest(op, problem):
    scores = torch.nn.functional.pad(problem.scores, (1, 1), value=math.inf)
    n = problem.n
    if op.name == "soft_quantile":
        full = op(torch.full_like(scores, math.inf), temperature=problem.temperature)
        assert (full == math.inf).all()
        return
    result = op(scores, temperature=problem.temperature)
    finite = op.solve(problem)
    if op.name == "soft_rank":
        assert_close(result[:, 1:-1], finite)
        assert (result[:, [0, -1]] == n + 1.5).all()
    elif op.name == "soft_sort":
        assert_close(result[:, :n], finite, atol=1e-11)
        assert (result[:, n:] == math.inf).all()
    else:
        assert_close(result[:, :n, 1:-1], finite)
        assert (result[:, n:, [0, -1]] == 0.5).all()
        assert_close(result.sum(-1), torch.ones_like(scores))


@orderings
def padding_takes_no_gradient(op, problem):
    padded, mask = _pad(problem, torch.tensor([-math.inf, 1e30], dtype=torch.float64))
    padded.requires_grad_()
    plain = problem.scores.clone().requires_grad_()
    results = (
        op(padded, temperature=problem.temperature, mask=mask),
        op(plain, temperature=problem.temperature),
    )
    everywhere = torch.randn(results[0].shape, dtype=torch.float64, generator=problem.generator())
    (leak,) = torch.autograd.grad(results[0], padded, everywhere, retain_graph=True)
    assert (leak[~mask] == 0).all()
    gradients = []
    for result, x in zip(results, (padded, plain), strict=True):
        part = _unpadded(op, result, mask)
        upstream = torch.randn(part.shape, dtype=part.dtype, generator=problem.generator())
        gradients += torch.autograd.grad(part, x, upstream)
    scale = gradients[1].abs().max().clamp(min=1).item()
    assert_close(gradients[0][mask].view_as(plain), gradients[1], atol=1e-10 * scale)


@orderings_and_sums
def infinities_take_no_gradient(op, problem):
    scores = torch.nn.functional.pad(problem.scores, (1, 0), value=math.inf)
    scores = torch.nn.functional.pad(scores, (0, 1), value=-math.inf).requires_grad_()
    result = op(scores, temperature=problem.temperature)
    upstream = torch.randn(result.shape, dtype=result.dtype, generator=problem.generator())
    (gradient,) = torch.autograd.grad(result, scores, upstream)
    assert (gradient[:, [0, -1]] == 0).all()
    assert gradient.isfinite().all()


def _unpadded(op, result, mask):
    """The part of a padded result that belongs to the elements; of a plain one, everything."""
    n = int(mask[0].sum())
    if result.shape[-1] == n or op.name == "soft_quantile":
        return result
    if is_value(op):
        return result[:, :n]
    kept = mask[0].nonzero().squeeze(-1)
    return result[..., kept] if op.name == "soft_rank" else result[:, :n, kept]

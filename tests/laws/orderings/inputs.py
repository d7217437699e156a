"""Laws of the ways in which the same problem may be handed over."""

import torch

from tests.laws.close import assert_close
from tests.laws.inputs import _with_mirror, _without_the_last
from tests.laws.orderings.binding import orderings_and_sums
from tests.laws.orderings.operators import is_value


def result_has_the_dtype_of_the_scores(op, problem):
    result = op.solve(problem)
    rows, n = problem.scores.shape
    four = dict.fromkeys(("soft_quantile", "fsum", "fsum_inverse"), (4,))
    shape = {"soft_permutation": (n, n)} | four
    assert result.shape == (rows, *shape.get(op.name, (n,)))
    assert (result.dtype, result.device) == (problem.scores.dtype, problem.scores.device)


def any_axis_will_do(op, problem):
    block, temperature = _with_mirror(problem.scores), _with_mirror(problem.temperature)
    expected = op(block, temperature=temperature)
    for dim in (-3, -2, -1, 0, 1, 2):
        moved = block.movedim(-1, dim).contiguous()
        assert_close(op(moved, temperature=temperature, dim=dim), expected)


@orderings_and_sums
def a_mask_goes_along_with_any_axis(op, problem):
    block, temperature = _with_mirror(problem.scores), _with_mirror(problem.temperature)
    mask = _without_the_last(block)
    expected = op(block, temperature=temperature, mask=mask)
    for dim in (0, 1):
        moved, own = (v.movedim(-1, dim) for v in (block, mask))
        found = op(moved, temperature=temperature, dim=dim, mask=own)
        assert_close(found, expected)


def one_axis_is_enough(op, problem):
    result = op(problem.scores[0], temperature=problem.temperature[0])
    assert_close(result, op.solve(problem)[0])


def strides_do_not_matter(op, problem):
    transposed = problem.scores.T.contiguous().T
    spaced = problem.scores.repeat_interleave(2, dim=-1)[:, ::2]
    expanded = problem.scores[:1].expand(3, -1)
    for scores in (transposed, spaced):
        assert_close(op(scores, temperature=problem.temperature), op.solve(problem))
    together = op(expanded, temperature=problem.temperature[0])
    assert_close(together, op.solve(problem)[:1].expand_as(together))


def numbers_and_tensors_agree(op, problem):
    temperature = problem.temperature[0]
    by_number = op(problem.scores, temperature=temperature.item())
    assert_close(by_number, op(problem.scores, temperature=temperature))
    by_row = op(problem.scores, temperature=temperature.expand_as(problem.temperature))
    assert_close(by_number, by_row)


def a_shared_temperature_collects_the_gradient_of_all_rows(op, problem):
    def gradient(expand):
        temperature = problem.temperature[0].clone().requires_grad_()
        result = op(problem.scores, temperature=expand(temperature))
        weights = torch.randn(result.shape, dtype=result.dtype, generator=problem.generator())
        finite = torch.where(result.isfinite(), result * weights, 0.0)
        return torch.autograd.grad(finite.sum(), temperature)[0]

    shared, expanded = gradient(lambda v: v), gradient(lambda v: v.expand_as(problem.temperature))
    assert shared.shape == ()
    assert_close(shared, expanded, atol=1e-10 * max(1, expanded.abs().item()))


@orderings_and_sums
def lower_precision_is_rounded_higher_precision(op, problem):
    pairs = {
        torch.float32: (torch.float64, 1e-6),
        torch.float16: (torch.float32, 1e-3),
        torch.bfloat16: (torch.float32, 8e-3),
    }
    for dtype, (wider, rtol) in pairs.items():
        scores = problem.scores.to(dtype)
        result = op(scores, temperature=problem.temperature)
        assert result.dtype == dtype
        reference = op(scores.to(wider), temperature=problem.temperature)
        unit = problem.temperature.max().clamp(min=4).item() if is_value(op) else 1
        unit = max(unit, reference.abs().max().item())
        assert_close(result.to(wider), reference, atol=rtol * unit)


def autocast_changes_nothing(op, problem):
    scores = problem.scores.float()
    expected = op(scores, temperature=problem.temperature)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        result = op(scores, temperature=problem.temperature)
    assert result.dtype == torch.float32
    unit = expected[expected.isfinite()].abs().max().clamp(min=1).item()
    assert_close(result, expected, atol=1e-7 * unit)


def arguments_are_left_alone(op, problem):
    mask = torch.ones_like(problem.scores, dtype=torch.bool)
    mask[:, 1:2] = False
    arguments = [problem.scores, problem.temperature, mask]
    copies = [argument.clone() for argument in arguments]
    inputs = [a.clone().requires_grad_() for a in arguments[:2]]
    for hidden in (None, mask):
        result = op(inputs[0], temperature=inputs[1], mask=hidden)
        upstream = torch.ones_like(result)
        torch.autograd.grad(result, inputs, upstream)
        assert (upstream == 1).all()
    op.solve(problem, mask=mask)
    for argument, copy in zip([*arguments, *inputs], [*copies, *copies[:2]], strict=True):
        assert torch.equal(argument, copy)

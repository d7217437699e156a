"""Laws of the ways in which the same problem may be handed over."""

import torch

from tests.laws.close import assert_close


def result_looks_like_the_scores(op, problem):
    p = problem.solve(op)
    assert (p.shape, p.dtype, p.device) == (
        problem.scores.shape,
        problem.scores.dtype,
        problem.scores.device,
    )
    assert p.is_contiguous()


def any_axis_will_do(op, problem):
    block, k, temperature = (_with_mirror(argument) for argument in problem.arguments)
    expected = op(block, k, temperature=temperature)
    for dim in (-3, -2, -1, 0, 1, 2):
        moved = block.movedim(-1, dim).contiguous()
        p = op(moved, k, temperature=temperature, dim=dim)
        assert p.shape == moved.shape
        assert_close(p.movedim(dim, -1), expected)


def a_mask_goes_along_with_any_axis(op, problem):
    block, k, temperature = (_with_mirror(argument) for argument in problem.arguments)
    mask = _without_the_last(block)
    expected = op(block, k, temperature=temperature, mask=mask)
    for dim in (0, 1):
        moved, own = (v.movedim(-1, dim) for v in (block, mask))
        p = op(moved, k, temperature=temperature, dim=dim, mask=own)
        assert_close(p.movedim(dim, -1), expected)


def one_axis_is_enough(op, problem):
    p = op(problem.scores[0], problem.k[0], temperature=problem.temperature[0])
    assert_close(p, problem.solve(op)[0])


def strides_do_not_matter(op, problem):
    expected = problem.solve(op)
    transposed = problem.scores.T.contiguous().T
    spaced = problem.scores.repeat_interleave(2, dim=-1)[:, ::2]
    for scores in (transposed, spaced):
        assert_close(op(scores, problem.k, temperature=problem.temperature), expected)


def expanded_scores_are_fine(op, problem):
    one = problem.scores[:1]
    k, temperature = problem.k[0].expand(4), problem.temperature[0].expand(4)
    p = op(one.expand(4, -1), k, temperature=temperature)
    assert_close(p, problem.solve(op)[:1].expand(4, -1))


def numbers_and_tensors_agree(op, problem):
    k, temperature = problem.k[0], problem.temperature[0]
    by_number = op(problem.scores, k.item(), temperature=temperature.item())
    by_tensor = op(problem.scores, k, temperature=temperature)
    by_row = op(
        problem.scores,
        k.expand_as(problem.k),
        temperature=temperature.expand_as(problem.k),
    )
    assert_close(by_number, by_tensor)
    assert_close(by_number, by_row)


def whole_k_may_be_an_integer(op, problem):
    k = max(problem.n // 2, 1)
    expected = op(problem.scores, float(k), temperature=problem.temperature)
    assert_close(op(problem.scores, k, temperature=problem.temperature), expected)
    counts = torch.full_like(problem.k, k, dtype=torch.int64)
    assert_close(op(problem.scores, counts, temperature=problem.temperature), expected)


def shared_k_and_temperature_collect_the_gradient_of_all_rows(op, problem):
    def gradients(expand):
        k = problem.k[0].clone().requires_grad_()
        temperature = problem.temperature[0].clone().requires_grad_()
        p = op(problem.scores, expand(k), temperature=expand(temperature))
        weights = torch.randn(p.shape, dtype=p.dtype, generator=problem.generator())
        return torch.autograd.grad((p * weights).sum(), (k, temperature))

    shared = gradients(lambda v: v)
    expanded = gradients(lambda v: v.expand_as(problem.k))
    for one, other in zip(shared, expanded, strict=True):
        assert one.shape == ()
        assert_close(one, other, atol=1e-10 * max(1, other.abs().item()))


def lower_precision_is_rounded_higher_precision(op, problem):
    pairs = {
        torch.float32: (torch.float64, 2e-6),
        torch.float16: (torch.float32, 2e-3),
        torch.bfloat16: (torch.float32, 1.6e-2),
    }
    for dtype, (wider, atol) in pairs.items():
        scores = problem.scores.to(dtype)
        p = op(scores, problem.k, temperature=problem.temperature)
        assert p.dtype == dtype
        reference = op(scores.to(wider), problem.k, temperature=problem.temperature)
        assert_close(p.to(wider), reference, atol=atol)


def autocast_changes_nothing(op, problem):
    scores = problem.scores.float()
    expected = op(scores, problem.k, temperature=problem.temperature)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        p = op(scores, problem.k, temperature=problem.temperature)
    assert p.dtype == torch.float32
    assert_close(p, expected, atol=1e-7)


def arguments_are_left_alone(op, problem):
    mask = torch.ones_like(problem.scores, dtype=torch.bool)
    mask[:, 1:2] = False
    arguments = [problem.scores, problem.k, problem.temperature, mask]
    copies = [argument.clone() for argument in arguments]
    inputs = [a.clone().requires_grad_() for a in arguments[:3]]
    p = op(inputs[0], inputs[1], temperature=inputs[2], mask=mask)
    upstream = torch.ones_like(p)
    torch.autograd.grad(p, inputs, upstream)
    problem.solve(op, mask=mask)
    for argument, copy in zip([*arguments, *inputs], [*copies, *copies[:3]], strict=True):
        assert torch.equal(argument, copy)
    assert (upstream == 1).all()


def _with_mirror(value):
    """The rows, and the rows in reverse order."""
    return torch.stack([value, value.flip(0)])


def _without_the_last(scores):
    """A mask that hides the last of every row, if there are others."""
    mask = torch.ones_like(scores, dtype=torch.bool)
    mask[..., 1:][..., -1:] = False
    return mask

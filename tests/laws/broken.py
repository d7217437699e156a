"""Operators with one deliberate fault each, under the names of the laws that must notice it.

Most faults were seen in published code: masses that are only nearly k, padding by a large
negative number, a scale taken over the whole batch, gradients that forget the threshold.
"""

import math

import torch

import softorder as so


def _correct(scores, k, temperature=1.0, dim=-1, largest=True, mask=None):
    return so.soft_topk(scores, k, temperature=temperature, dim=dim, largest=largest, mask=mask)


def _renormalised_sigmoid(scores, k, temperature=1.0, dim=-1, largest=True, mask=None):
    weight = torch.sigmoid(scores)
    return k.unsqueeze(dim) * weight / weight.sum(dim, keepdim=True)


def _after(change):
    """The correct p, changed."""

    def op(scores, k, **options):
        return change(_correct(scores, k, **options))

    return op


def _before(change):
    """The correct operator on changed scores."""

    def op(scores, k, **options):
        return _correct(change(scores), k, **options)

    return op


def _without(*names):
    """An operator that ignores some of its options."""

    def op(scores, k, **options):
        return _correct(scores, k, **{n: v for n, v in options.items() if n not in names})

    return op


def _with_temperature(change):
    def op(scores, k, temperature=1.0, **options):
        return _correct(scores, k, temperature=change(temperature, scores), **options)

    return op


def _with_k(change):
    def op(scores, k, **options):
        return _correct(scores, change(k, scores), **options)

    return op


def _with_finite_padding(scores, k, mask=None, **options):
    filled = scores if mask is None else scores.masked_fill(~mask, -10.0)
    return _correct(filled, k, **options)


def _with_finite_infinity(scores, k, **options):
    return _correct(scores.clamp(-10, 10), k, **options)


def _with_a_shared_nan(scores, k, **options):
    return _correct(scores, k, **options) + 0 * scores.sum()


def _that_writes_to_its_input(scores, k, **options):
    p = _correct(scores, k, **options)
    scores.detach().mul_(2)
    return p


def _that_forgets_the_threshold(scores, k, temperature=1.0, **options):
    """Backward through p = F((x - b) / temperature) with b held fixed."""
    p = _correct(scores, k, temperature=temperature, **options)
    drift = (p * (1 - p)).detach() * (scores - scores.detach())
    return p.detach() + drift + 0 * (p - p.detach())


class _StraightThrough(torch.autograd.Function):
    """Hands the upstream gradient to the scores as it is."""

    @staticmethod
    def forward(ctx, scores, p):
        return p.clone()

    @staticmethod
    def backward(ctx, upstream):
        return upstream, None


def _with_a_straight_through_backward(scores, k, **options):
    return _StraightThrough.apply(scores, _correct(scores, k, **options))


class _DoubledForwardMode(torch.autograd.Function):
    """The identity, with a wrong jvp and a right vjp."""

    generate_vmap_rule = True

    @staticmethod
    def forward(p):
        return p.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, upstream):
        return upstream

    @staticmethod
    def jvp(ctx, tangent):
        return 2 * tangent


def _with_a_frozen_jacobian(scores, k, **options):
    """A right first derivative that is a constant to the second."""
    start = scores.detach()
    slope = torch.func.jacrev(lambda x: _correct(x, k, **options))(start)
    return _correct(start, k, **options) + slope @ (scores - start)


def _that_depends_on_the_first_axis(scores, k, **options):
    """Wrong unless the first axis is one of the rows' own."""
    return _correct(scores, k, **options) / scores.shape[0]


def _that_takes_the_mask_for_the_smallest(scores, k, largest=True, mask=None, **options):
    if mask is None or largest:
        return _correct(scores, k, largest=largest, mask=mask, **options)
    return _correct(torch.where(mask, scores, -math.inf), k, largest=False, **options)


def _that_forgets_the_mask_along_the_first_axis(scores, k, dim=-1, mask=None, **options):
    return _correct(scores, k, dim=dim, mask=None if dim == 0 else mask, **options)


def _that_looks_at_its_result(scores, k, **options):
    """Python control flow on values: neither vmap nor compile can follow."""
    p = _correct(scores, k, **options)
    return p if p.detach().sum().item() >= 0 else -p


def _nan_gradient(scores, k, temperature=1.0, **options):
    p = _correct(scores, k, temperature=temperature, **options)
    return p + 0 * (scores / temperature).exp()


def _rounded(p):
    return p if p.dtype == torch.float64 else p.bfloat16().to(p.dtype)


def _that_takes_one_axis_of_several(scores, k, dim=-1, **options):
    return so.soft_topk(scores, k, dim=dim if isinstance(dim, int) else -1, **options)


def _that_stays_soft(scores, k, hard=False, **options):
    return so.soft_topk(scores, k, **options)


BROKEN = {
    # values
    "mass_is_k": _after(lambda p: p * (1 - 1e-9)),
    "stays_between_zero_and_one": _after(lambda p: 1.5 * p - 0.5 * p.mean(-1, keepdim=True)),
    "order_is_preserved": _after(lambda p: p.flip(-1)),
    "equal_scores_get_equal_shares": _after(lambda p: p + 1e-9 * torch.arange(p.shape[-1])),
    "all_equal_scores_get_k_over_n": _after(lambda p: p.roll(1, -1) * 0.999),
    "larger_k_gives_more_to_everyone": _with_k(lambda k, x: x.shape[-1] - k),
    "raising_a_score_helps_it_alone": _before(torch.neg),
    "cold_limit_is_hard": _with_temperature(lambda t, x: t + 1),
    "warm_limit_is_even": _with_temperature(lambda t, x: torch.as_tensor(t).clamp(max=1)),
    "smallest_is_largest_of_the_negative": _without("largest"),
    "what_the_top_leaves_is_the_bottom": _without("largest"),
    # symmetries
    "follows_a_permutation": _before(lambda x: x + 0.1 * torch.arange(x.shape[-1])),
    "ignores_a_shift": _renormalised_sigmoid,
    "only_scores_over_temperature_count": _without("temperature"),
    "works_at_huge_and_tiny_scales": _with_finite_infinity,
    "rows_do_not_meet": _with_temperature(lambda t, x: t * (1 + x.abs().max())),
    # padding
    "masked_out_elements_change_nothing": _with_finite_padding,
    "masked_out_elements_are_not_the_smallest": _that_takes_the_mask_for_the_smallest,
    "minus_infinity_changes_nothing": _with_finite_infinity,
    "plus_infinity_is_padding_of_the_smallest": _with_finite_infinity,
    "a_mask_may_differ_from_row_to_row": _with_finite_padding,
    "a_mask_may_broadcast": _without("mask"),
    "too_few_available_are_all_taken": _without("mask"),
    "a_row_without_elements_is_zero": _without("mask"),
    "padding_takes_no_gradient": _with_a_straight_through_backward,
    # edges
    "k_zero_takes_nothing": _after(lambda p: p + 1e-30),
    "k_n_takes_everything": _after(lambda p: p * (1 - 1e-15)),
    "a_single_score_gets_k": _after(torch.round),
    "an_empty_batch_is_empty": _after(lambda p: p.unsqueeze(0)),
    "a_row_of_no_scores_is_empty": _after(lambda p: p.unsqueeze(0)),
    "plus_infinity_is_certain": _with_finite_infinity,
    "too_many_at_plus_infinity_share_k": _with_finite_infinity,
    "k_at_plus_infinity_leave_nothing": _with_finite_infinity,
    "infinities_take_no_gradient": _with_a_straight_through_backward,
    "nan_stays_in_its_row": _with_a_shared_nan,
    # forms
    "several_axes_are_one": _that_takes_one_axis_of_several,
    "numbers_may_keep_their_axis": _with_k(lambda k, x: k if k.dim() < 2 else k / 2),
    "hard_is_the_limit_with_the_soft_gradient": _that_stays_soft,
    "rows_of_different_lengths_are_rows_alone": _before(lambda x: 2 * x if x.is_nested else x),
    # inputs
    "result_looks_like_the_scores": _after(lambda p: p.float()),
    "any_axis_will_do": _that_depends_on_the_first_axis,
    "a_mask_goes_along_with_any_axis": _that_forgets_the_mask_along_the_first_axis,
    "one_axis_is_enough": _after(lambda p: p / p.dim()),
    "strides_do_not_matter": _before(lambda x: x * x.stride(-1)),
    "expanded_scores_are_fine": _before(lambda x: x * (1 + x.stride(0))),
    "numbers_and_tensors_agree": _with_k(lambda k, x: k if isinstance(k, float) else k / 2),
    "whole_k_may_be_an_integer": _with_k(lambda k, x: k if isinstance(k, float) else k / 2),
    "shared_k_and_temperature_collect_the_gradient_of_all_rows": _with_k(
        lambda k, x: k / (1 + k.dim())
    ),
    "lower_precision_is_rounded_higher_precision": _after(_rounded),
    "autocast_changes_nothing": _before(lambda x: x @ torch.eye(x.shape[-1], dtype=x.dtype)),
    "arguments_are_left_alone": _that_writes_to_its_input,
    # gradients
    "gradients_match_differences": _that_forgets_the_threshold,
    "second_gradients_match_differences": _that_forgets_the_threshold,
    "forward_gradients_match_differences": _that_forgets_the_threshold,
    "forward_mode_agrees_with_backward_mode": _after(_DoubledForwardMode.apply),
    "jvp_is_the_slope_along_a_direction": _that_forgets_the_threshold,
    "hessian_is_the_slope_of_the_gradient": _with_a_frozen_jacobian,
    "mass_moves_as_k_says": _that_forgets_the_threshold,
    "gradients_stay_finite_when_cold": _nan_gradient,
    # batching
    "vmap_is_a_loop_over_rows": _that_looks_at_its_result,
    "vmap_takes_any_argument_alone": _that_looks_at_its_result,
    "vmap_takes_a_mask": _that_looks_at_its_result,
    "vmap_of_a_gradient_is_per_row": _that_looks_at_its_result,
    # tracing
    "compiles_without_a_graph_break": _that_looks_at_its_result,
    "inductor_gives_the_same": _that_looks_at_its_result,
    "exports": _that_looks_at_its_result,
}

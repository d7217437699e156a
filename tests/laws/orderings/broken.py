"""Operators with one deliberate fault each, under the names of the laws that must notice it."""

from dataclasses import replace

import torch

from tests.laws.broken import _DoubledForwardMode, _StraightThrough
from tests.laws.orderings.operators import operator

_RANK, _SORT, _PERMUTATION, _QUANTILE, _FSUM, _INVERSE = (
    operator(name, "laplace")
    for name in (
        "soft_rank",
        "soft_sort",
        "soft_permutation",
        "soft_quantile",
        "fsum",
        "fsum_inverse",
    )
)


def _after(op, change):
    """The correct result, changed."""
    return replace(op, call=lambda scores, **options: change(op(scores, **options)))


def _before(op, change):
    """The correct operator on changed scores."""
    return replace(op, call=lambda scores, **options: op(change(scores), **options))


def _without(op, *names):
    """An operator that ignores some of its options."""

    def call(scores, **options):
        return op(scores, **{name: v for name, v in options.items() if name not in names})

    return replace(op, call=call)


def _at(op, change):
    """The correct operator at changed points."""
    return replace(op, call=lambda scores, at, **options: op(scores, at=change(at), **options))


def _with_temperature(op, change):
    def call(scores, temperature=1.0, **options):
        return op(scores, temperature=change(temperature, scores), **options)

    return replace(op, call=call)


def _with_finite_padding(op):
    """Padding by a large number, as long as it is not."""

    def call(scores, mask=None, **options):
        return op(scores if mask is None else scores.masked_fill(~mask, -10.0), **options)

    return replace(op, call=call)


def _that_forgets_the_mask_along_the_first_axis(op):
    def call(scores, dim=-1, mask=None, **options):
        return op(scores, dim=dim, mask=None if dim == 0 else mask, **options)

    return replace(op, call=call)


def _that_takes_one_axis_of_several(op):
    def call(scores, dim=-1, **options):
        return op(scores, dim=dim if isinstance(dim, int) else -1, **options)

    return replace(op, call=call)


def _with_finite_infinity(op):
    return _before(op, lambda scores: scores.clamp(-10, 10))


def _with_a_straight_through_backward(op):
    def call(scores, **options):
        return _StraightThrough.apply(scores, op(scores, **options))

    return replace(op, call=call)


def _that_writes_to_its_input(op):
    def call(scores, **options):
        result = op(scores, **options)
        scores.detach().mul_(2)
        return result

    return replace(op, call=call)


def _that_forgets_half_of_its_derivative(op):
    """Every score moves, but the scores that it is compared with stand still."""

    def call(scores, **options):
        result = op(scores, **options)
        return result.detach() + 0.5 * (result - result.detach())

    return replace(op, call=call)


def _with_a_frozen_slope(op):
    """A first derivative that is a constant to the second."""

    def call(scores, **options):
        result = op(scores, **options)
        drift = result.detach() * (scores - scores.detach())
        return result.detach() + drift + 0 * (result - result.detach())

    return replace(op, call=call)


def _that_looks_at_its_result(op):
    """Python control flow on values: neither vmap nor compile can follow."""

    def call(scores, **options):
        result = op(scores, **options)
        return result if result.detach().sum().item() >= 0 else result + 0

    return replace(op, call=call)


def _nan_gradient(op):
    def call(scores, temperature=1.0, **options):
        overflow = 0 * (scores / torch.as_tensor(temperature).unsqueeze(-1)).exp()
        return op(scores, temperature=temperature, **options) + overflow

    return replace(op, call=call)


def _that_reads_strides(scores):
    return scores * (1 + scores.stride(-1))


def _rounded(result):
    return result if result.dtype == torch.float64 else result.bfloat16().to(result.dtype)


BROKEN = {
    # values
    "ranks_sum_to_the_triangle_number": _after(_RANK, lambda r: r * (1 + 1e-9)),
    "ranks_are_places": _after(_RANK, lambda r: r - 1),
    "ranks_follow_the_scores": _after(_RANK, lambda r: r.flip(-1)),
    "equal_scores_get_equal_ranks": _after(_RANK, lambda r: r + 1e-9 * torch.arange(r.shape[-1])),
    "sorted_scores_ascend": _without(_SORT, "descending"),
    "larger_q_gives_more": _after(_QUANTILE, lambda t: t.flip(-1)),
    "rows_and_columns_sum_to_one": _after(_PERMUTATION, lambda p: p.softmax(-1)),
    "cold_limit_is_hard": _with_temperature(_SORT, lambda t, x: t + 1),
    "warm_limit_is_even": _with_temperature(_RANK, lambda t, x: min(t, 1)),
    "descending_is_ascending_of_the_negative": _without(_RANK, "descending"),
    "doubled_scores_double_their_ranks": _after(_RANK, lambda r: r + 1e-9),
    "raising_a_score_lowers_nothing": _before(_SORT, torch.neg),
    "first_rows_are_the_first_rows": _without(_PERMUTATION, "k"),
    "descending_rows_add_up_to_a_soft_topk": _without(_PERMUTATION, "descending"),
    # symmetries
    "follows_a_permutation": _before(_RANK, lambda x: x + 0.1 * torch.arange(x.shape[-1])),
    "moves_with_a_shift": _before(_SORT, lambda x: x - x.mean(-1, keepdim=True)),
    "scales_with_scores_and_temperature": _without(_RANK, "temperature"),
    "rows_do_not_meet": _with_temperature(_RANK, lambda t, x: t * (1 + x.abs().max())),
    # sums
    "sums_and_roots_ascend": _at(_FSUM, torch.neg),
    "the_order_of_points_does_not_matter": _at(_FSUM, lambda t: t.cummax(-1).values),
    "points_may_be_shared": _at(_FSUM, lambda t: t * t.dim()),
    "scores_and_points_move_together": _before(_FSUM, lambda x: x - x.mean(-1, keepdim=True)),
    "scores_points_and_temperature_scale_together": _without(_FSUM, "temperature"),
    "sums_at_the_scores_are_ranks": _after(_FSUM, lambda s: s + 0.5),
    "sums_go_from_nothing_to_everything": _at(_FSUM, lambda t: t.clamp(-10, 10)),
    "roots_of_sums_are_their_points": _at(_INVERSE, lambda c: c * (1 + 1e-6)),
    "what_takes_no_part_is_not_counted": _with_finite_padding(_FSUM),
    "what_is_certain_is_above_every_point": _with_finite_infinity(_FSUM),
    # padding
    "masked_out_elements_change_nothing": _with_finite_padding(_RANK),
    "minus_infinity_changes_nothing": _with_finite_infinity(_SORT),
    "a_mask_may_differ_from_row_to_row": _with_finite_padding(_PERMUTATION),
    "a_mask_may_broadcast": _without(_RANK, "mask"),
    "a_row_without_elements_is_all_padding": _without(_SORT, "mask"),
    "plus_infinity_is_certainly_the_largest": _with_finite_infinity(_RANK),
    "padding_takes_no_gradient": _with_a_straight_through_backward(_RANK),
    "infinities_take_no_gradient": _with_a_straight_through_backward(_RANK),
    # edges
    "a_single_score_is_where_it_is": _after(_RANK, lambda r: r - 1),
    "an_empty_batch_is_empty": _after(_RANK, lambda r: r.unsqueeze(0)),
    "a_row_of_no_scores_is_empty": _after(_QUANTILE, lambda t: t.nan_to_num(0.0)),
    "nan_stays_in_its_row": _after(_RANK, lambda r: r + 0 * r.sum()),
    # forms
    "several_axes_are_one": _that_takes_one_axis_of_several(_RANK),
    "numbers_may_keep_their_axis": _with_temperature(
        _RANK, lambda t, x: t if t.dim() < 2 else t / 2
    ),
    "hard_is_the_limit_with_the_soft_gradient": _without(_SORT, "hard"),
    "rows_of_different_lengths_are_rows_alone": _before(
        _RANK, lambda x: 2 * x if x.is_nested else x
    ),
    # inputs
    "result_has_the_dtype_of_the_scores": _after(_RANK, lambda r: r.float()),
    "any_axis_will_do": _before(_SORT, lambda x: x / x.shape[0]),
    "a_mask_goes_along_with_any_axis": _that_forgets_the_mask_along_the_first_axis(_RANK),
    "one_axis_is_enough": _after(_RANK, lambda r: r / r.dim()),
    "strides_do_not_matter": _before(_SORT, _that_reads_strides),
    "numbers_and_tensors_agree": _with_temperature(
        _RANK, lambda t, x: t if isinstance(t, float) else t / 2
    ),
    "a_shared_temperature_collects_the_gradient_of_all_rows": _with_temperature(
        _RANK, lambda t, x: t / (1 + t.dim())
    ),
    "lower_precision_is_rounded_higher_precision": _after(_SORT, _rounded),
    "autocast_changes_nothing": _before(_SORT, lambda x: x @ torch.eye(x.shape[-1])),
    "arguments_are_left_alone": _that_writes_to_its_input(_RANK),
    # derivatives
    "gradients_match_differences": _that_forgets_half_of_its_derivative(_RANK),
    "a_common_shift_moves_values_only": _that_forgets_half_of_its_derivative(_SORT),
    "values_are_homogeneous": _that_forgets_half_of_its_derivative(_QUANTILE),
    "gradients_stay_finite_when_cold": _nan_gradient(_RANK),
    "second_gradients_match_differences": _with_a_frozen_slope(_RANK),
    "hessian_does_not_depend_on_the_mode": _after(_SORT, _DoubledForwardMode.apply),
    "forward_gradients_match_differences": _that_forgets_half_of_its_derivative(_SORT),
    "forward_mode_agrees_with_backward_mode": _after(_RANK, _DoubledForwardMode.apply),
    "jvp_is_the_slope_along_a_direction": _that_forgets_half_of_its_derivative(_RANK),
    # batching and tracing
    "vmap_is_a_loop_over_rows": _that_looks_at_its_result(_RANK),
    "vmap_takes_any_argument_alone": _that_looks_at_its_result(_RANK),
    "vmap_takes_a_mask": _that_looks_at_its_result(_RANK),
    "vmap_of_a_gradient_is_per_row": _that_looks_at_its_result(_RANK),
    "compiles_without_a_graph_break": _that_looks_at_its_result(_RANK),
    "inductor_gives_the_same": _that_looks_at_its_result(_RANK),
    "exports": _that_looks_at_its_result(_RANK),
}

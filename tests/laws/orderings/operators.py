"""The operators in one form: the rows in front, then the result of a row."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

import softorder as so

#: No multiple by a short row's length is an integer: there heavy tails have a limit of their own.
Q = torch.tensor([0.13, 0.37, 0.55, 0.83], dtype=torch.float64)
#: Between the eighths of which scores are made, and on both sides of them.
POINTS = torch.tensor([0.31, -2.2, 9.7, 0.93], dtype=torch.float64)


@dataclass(frozen=True)
class Operator:
    """One operator by one method."""

    name: str
    method: object
    call: Callable
    hard: Callable | None  # its limit, of the same form

    def __call__(self, scores, temperature=1.0, **options):
        return self.call(scores, temperature=temperature, **options)

    def solve(self, problem, **options):
        return self.call(problem.scores, temperature=problem.temperature, **options)


def _along(function):
    def call(scores, dim=-1, **options):
        return _to_the_end(function(scores, dim=dim, **options), dim)

    return call


def _to_the_end(result, dim):
    """The axis of the scores behind the rows; several of them as one."""
    if result.is_nested:  # which has it there
        return result
    if isinstance(dim, int):
        return result.movedim(dim, -1)
    if dim is None:
        return result.flatten()
    return result.movedim(dim, tuple(range(-len(dim), 0))).flatten(-len(dim))


def _quantile(function):
    def call(scores, descending=False, dim=-1, **options):
        q = Q.to(scores.device)
        q = 1 - q if descending else q
        return function(scores, q, dim=dim, **options).movedim(0, -1)

    return call


def _fsum(scores, at=POINTS, dim=-1, **options):
    return so.fsum(scores, at.to(scores.device), dim=dim, **options).movedim(dim, -1)


def _fsum_inverse(scores, at=None, dim=-1, mask=None, **options):
    """At these levels, or at some of every row, by how many scores it has."""
    if at is None:
        there = scores > -math.inf if mask is None else mask & (scores > -math.inf)
        at = (there.movedim(dim, -1).sum(-1, keepdim=True) * Q).movedim(-1, dim)
    return so.fsum_inverse(scores, at, dim=dim, mask=mask, **options).movedim(dim, -1)


def _cross_entropy(scores, dim=-1, **options):
    """Every element should be where the one beside it is."""
    target = torch.arange(scores.shape[dim]).roll(1).expand(scores.movedim(dim, -1).shape)
    losses = so.losses.permutation_cross_entropy(
        scores, target.movedim(-1, dim), dim=dim, reduction="none", **options
    )
    return losses.movedim(dim, -1)


_FORMS = {
    "soft_rank": (_along(so.soft_rank), _along(so.hard.rank)),
    "soft_sort": (_along(so.soft_sort), _along(so.hard.sort)),
    "soft_permutation": (so.soft_permutation, so.hard.permutation),
    "soft_quantile": (_quantile(so.soft_quantile), _quantile(so.hard.quantile)),
    "permutation_cross_entropy": (_cross_entropy, None),
    "fsum": (_fsum, None),
    "fsum_inverse": (_fsum_inverse, None),
}
NAMES = tuple(_FORMS)


def operator(name, method):
    form, hard = _FORMS[name]

    def call(scores, **options):
        return form(scores, **{"method": method, **options})

    return Operator(name, method, call, hard)


# ---- what sets the operators apart --------------------------------------------------------------


def reordered(op, result, order):
    """The result after the scores of every row were taken in this order."""
    per_score = op.name in ("soft_rank", "soft_permutation")
    return result[..., order] if per_score else result


def is_value(op):
    """Whether results are measured in units of the scores."""
    return op.name in ("soft_sort", "soft_quantile", "fsum_inverse")


def mirrored(op, result):
    """From a descending result to that of the negative scores."""
    return -result if is_value(op) else result


def embedded(op, result, mask, descending):
    """The result of rows to which elements were added that take no part, where mask is False."""
    rows, n = mask.shape
    present = mask.sum(-1, keepdim=True)
    if op.name == "soft_rank":
        padded = ((present + 1 + n) / 2).expand(rows, n).to(result.dtype)
        return padded.masked_scatter(mask, result)
    if op.name == "soft_sort":
        end = torch.full((rows, n - result.shape[-1]), -math.inf if descending else math.inf)
        return torch.cat([result, end.to(result.dtype)], -1)
    if op.name == "soft_permutation":
        padded = result.new_zeros(rows, n, n)
        for row in range(rows):
            count = int(present[row])
            padded[row, :count, mask[row]] = result[row]
            absent = (~mask[row]).nonzero().squeeze(-1)
            padded[row, torch.arange(count, n), absent] = 1
        return padded
    return result

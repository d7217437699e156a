"""What an operator gives for some rows: the value, and derivatives of both orders."""

import math
from dataclasses import dataclass

import torch

import softorder as so
from tests.laws.orderings import operators as orderings

#: They weigh the entries of a result, and of a gradient: no sum of a few of them is 0.
_WEIGHTS = (0.7, -1.3, 0.4, 1.9, -0.6)
P_K = (0.4, 0.6)


@dataclass(frozen=True)
class Answer:
    """Of one row: the value, and by the names of what they are for, two orders of derivatives."""

    value: torch.Tensor
    first: dict
    second: dict


def answers(solve, name, rows, dtype=torch.float64):
    """Of rows of one length. `solve` takes scores, k, temperature and what belongs to the rows."""
    scores = torch.tensor([row.scores for row in rows], dtype=dtype).requires_grad_()
    k = torch.tensor([row.k for row in rows], dtype=torch.float64).requires_grad_()
    tau = torch.tensor([row.temperature for row in rows], dtype=torch.float64).requires_grad_()
    value = solve(scores, k, tau)
    leaves = {"scores": scores, "k": k, "temperature": tau}
    shown = weighed(name, rows, value)
    first = _gradients(shown, leaves, create_graph=True)
    slope = (first["scores"] * _along(rows, scores)).sum()
    if not slope.requires_grad:  # a constant, as far as autograd can see
        slope = slope + 0 * scores.detach().nan_to_num().requires_grad_().sum()
    second = _gradients(slope, leaves)
    return [
        Answer(
            value[i].detach(),
            {key: gradient[i].detach() for key, gradient in first.items()},
            {key: gradient[i].detach() for key, gradient in second.items()},
        )
        for i in range(len(rows))
    ]


def _gradients(result, leaves, **options):
    found = torch.autograd.grad(
        result, [*leaves.values()], allow_unused=True, materialize_grads=True, **options
    )
    return dict(zip(leaves, found, strict=True))


def weighed(name, rows, value):
    """Σ w value over what is finite: infinite entries of a result have no derivative."""
    weights = [_weights(name, row, value.shape[1:]) for row in rows]
    weights = torch.stack(weights).to(value.dtype)
    return torch.where(value.isinf(), 0.0, weights * value).sum()


def _weights(name, row, shape):
    """The same for an entry whether or not another score is there."""
    per_score, per_place = _along([row], torch.empty(1))[0], torch.tensor(_WEIGHTS)[: shape[0]]
    if name == "soft_permutation":
        return per_place[:, None] * per_score
    return per_score if name in _PER_SCORE else per_place


_PER_SCORE = ("soft_topk", "log_soft_topk", "soft_rank", "permutation_cross_entropy")


def _along(rows, like):
    """A number for each score; a twin without one of five lacks that one's."""
    lengths = {len(row.scores) for row in rows}
    (n,) = lengths
    kept = [w for i, w in enumerate(_WEIGHTS) if n == len(_WEIGHTS) or i != ABSENT]
    return torch.tensor([kept] * len(rows), dtype=like.dtype)


ABSENT = 2  # the place of -inf in rows.py


# ---- the operators ------------------------------------------------------------------------------


def solver(name, method, known=None):
    """The operator as a function of scores, k and temperature, rows first.

    Losses have the targets that the scores themselves say, or those that known ones do.
    """
    if name in ("soft_topk", "log_soft_topk"):
        call = getattr(so, name)
        return lambda scores, k, tau: call(scores, k, method=method, temperature=tau)
    if name in _LOSSES:
        loss, target_of = _LOSSES[name]

        def solve(scores, k, tau):
            target = target_of(scores if known is None else known.expand_as(scores))
            return loss(scores, target, method=method, temperature=tau, reduction="none")

        return solve
    operator = orderings.operator(name, method)
    return lambda scores, k, tau: operator(scores, temperature=tau)


def _top_k(scores, target, **options):
    losses = so.losses.top_k_cross_entropy(scores, target, P_K, top1="operator", **options)
    return losses.unsqueeze(-1)


def best(scores):
    """The last class with the largest score."""
    n = scores.shape[-1]
    return n - 1 - scores.detach().nan_to_num().flip(-1).argmax(-1)


def places(scores):
    """Where the scores belong; what takes no part is last."""
    last = torch.where(scores.detach() == -math.inf, math.inf, scores.detach())
    return last.argsort(dim=-1, stable=True).argsort(dim=-1)


_LOSSES = {
    "top_k_cross_entropy": (_top_k, best),
    "permutation_cross_entropy": (so.losses.permutation_cross_entropy, places),
}

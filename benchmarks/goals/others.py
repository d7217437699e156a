"""Losses, sampling and nearest neighbours, each against the plain thing of its kind."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product

import torch
from torch import Tensor
from torch.nn import functional

import softorder as so
from benchmarks.cases import Case, LossCase, Shape, normal_scores
from benchmarks.goals.goal import Goal, Side
from benchmarks.loss_cases import EVEN, MIX
from benchmarks.map.entries import places
from benchmarks.providers import DENSITIES

_CLASSES, _LISTS, _UNITS = Shape(64, 100), Shape(128, 1_000), Shape(64, 1_000)
_TEMPLATES, _QUERIES, _FEATURES, _NEIGHBOURS = 60_000, 1_000, 64, 9


def goals() -> Iterator[Goal]:
    yield from _top_k_losses()
    yield from _permutation_losses()
    yield _log_prob()
    yield _nearest()


def _top_k_losses() -> Iterator[Goal]:
    for density, p_k in product(DENSITIES, (MIX, EVEN)):
        case = LossCase(_CLASSES, p_k, 0.1)
        target = case.target()
        loss = so.losses.TopKCrossEntropyLoss(p_k, method=density, temperature=0.1)
        ours = Side(f"softorder {density}", partial(_with_target, loss, target), case.scores, True)
        plain = partial(_with_target, functional.cross_entropy, target)
        theirs = Side("torch cross_entropy", plain, case.scores, True)
        table = f"Top-k loss, {_CLASSES}, forward + backward, × cross_entropy"
        yield Goal("losses", table, f"{density}, worst p_k", str(case), ours, theirs, 8.0)


def _with_target(loss: object, target: Tensor, x: Tensor) -> Tensor:
    assert callable(loss)
    return loss(x, target)


def _permutation_losses() -> Iterator[Goal]:
    """One entry of P for each score, against the rank of each."""
    target, inputs = places(Case(_LISTS, 5, 0.1)), partial(normal_scores, _LISTS)
    for density in DENSITIES:
        options = {"method": density, "temperature": 0.1}
        loss = partial(so.losses.permutation_cross_entropy, **options)
        ours = Side(f"softorder loss {density}", partial(_with_target, loss, target), inputs, True)
        rank = partial(so.soft_rank, **options)
        theirs = Side(f"softorder rank {density}", rank, inputs, True)
        table = f"permutation_cross_entropy, {_LISTS}, forward + backward, × soft_rank"
        yield Goal("losses", table, density, density, ours, theirs, 3.0)


def _log_prob() -> Goal:
    k, inputs = _UNITS.n // 2, partial(normal_scores, _UNITS)
    draw = so.distributions.KHot(k, logits=inputs()).sample()

    def log_prob(x: Tensor) -> Tensor:
        return so.distributions.KHot(k, logits=x).log_prob(draw)

    ours = Side("softorder log_prob", log_prob, inputs, True)
    theirs = Side("torch.softmax", partial(torch.softmax, dim=-1), inputs, True)
    table = f"Conditional Poisson, {_UNITS}, k = n/2, forward + backward, × torch.softmax"
    return Goal("sampling", table, "log_prob", "log_prob", ours, theirs, 30.0)


def _nearest() -> Goal:
    """A prediction against one matrix product and one top-k."""
    templates = normal_scores(Shape(_TEMPLATES, _FEATURES))
    labels = torch.arange(_TEMPLATES) % 10
    model = so.nn.SoftKNN(torch.nn.Identity(), _NEIGHBOURS).remember(templates, labels)

    def product_and_topk(queries: Tensor) -> Tensor:
        return torch.topk(queries @ templates.mT, _NEIGHBOURS, -1).indices

    inputs = partial(normal_scores, Shape(_QUERIES, _FEATURES))
    ours = Side("softorder SoftKNN", model.predict, inputs)
    theirs = Side("torch matmul and topk", product_and_topk, inputs)
    row = f"{_TEMPLATES:,} templates, {_QUERIES:,} queries"
    table = "SoftKNN.predict, × one matrix product and one topk"
    return Goal("neighbours", table, row, row, ours, theirs, 1.5)

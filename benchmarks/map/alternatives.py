"""With what the map compares: what people use today for each operator, and peers of single methods.

A yardstick is torch's own operator for the same purpose, the hard one or the plain one, and so a
bound that softness can hardly beat. A peer computes the same as one of our methods: a package, if
it is installed, or the formula as published.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec

import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.cases import Case, Shape
from benchmarks.map.entries import (
    SAMPLES,
    WHOLE,
    hot_target,
    levels_of,
    places,
    points_of,
    predicted,
    quartiles,
    relevance_of,
    rows_of_permutation,
    target_of,
)
from benchmarks.providers import Operator, Provider, closed_form
from benchmarks.providers import neural_sort as neural
from benchmarks.providers import soft_sort as soft

_FORMULA = 2**25  # numbers of an n×n formula, all rows together: 128 MB


@dataclass(frozen=True)
class Yardstick:
    """What torch offers. Without a gradient that is of use it is timed forward in both passes."""

    name: str
    bind: Callable[[Case], Operator]
    gradient: bool = True
    inputs: Callable[[Case], Tensor] = Case.scores


@dataclass(frozen=True)
class Peer:
    """Who computes the same as one of our methods, up to a size."""

    provider: Provider
    fits: Callable[[Shape], bool] = lambda shape: True
    gradient: bool = True


# ---- yardsticks --------------------------------------------------------------------------------


def _plain(function: Callable[[Tensor], Tensor]) -> Callable[[Case], Operator]:
    return lambda case: function


def _rows_of_logits(case: Case) -> Tensor:
    shape, generator = case.shape, torch.Generator().manual_seed(1)
    return torch.randn(shape.rows, rows_of_permutation(shape), shape.n, generator=generator)


def _matrix_of_logits(case: Case) -> Tensor:
    shape, generator = case.shape, torch.Generator().manual_seed(0)
    return torch.randn(shape.rows, shape.n, shape.n, generator=generator)


def _topk(case: Case) -> Operator:
    return lambda x: torch.topk(x, case.k, -1).values


def _noisy_topk(case: Case) -> Operator:
    return lambda x: torch.topk(x - torch.empty_like(x).exponential_().log(), case.k, -1).values


def _many_topk(case: Case) -> Operator:
    def call(x: Tensor) -> Tensor:
        noisy = x + torch.randn(SAMPLES, *x.shape)
        return torch.topk(noisy, case.k, -1).values

    return call


def _sums(case: Case) -> Operator:
    points, tau = points_of(case).unsqueeze(-1), case.temperature
    return lambda x: torch.sigmoid((points - x.unsqueeze(-2)) / tau).sum(-1)


def _quantile(case: Case) -> Operator:
    q = quartiles()
    return lambda x: torch.quantile(x, q, -1)


def _levels(case: Case) -> Operator:
    q = levels_of(case)[0].contiguous()
    return lambda x: torch.quantile(x, q, -1)


def _cross_entropy(case: Case) -> Operator:
    target = target_of(case)
    return lambda x: functional.cross_entropy(x, target)


def _multi_label(case: Case) -> Operator:
    target = hot_target(case)
    return lambda x: functional.binary_cross_entropy_with_logits(x, target)


def _listwise(case: Case) -> Operator:
    target = torch.softmax(relevance_of(case), -1)
    return lambda x: functional.cross_entropy(x, target)


def _plackett_luce(case: Case) -> Operator:
    """ListMLE: the negative log-likelihood of an order, first to last."""
    order = places(case).argsort(-1)

    def call(x: Tensor) -> Tensor:
        y = x.gather(-1, order)
        return (torch.logcumsumexp(y, -1) - y).sum(-1).mean()

    return call


def _regression(loss: Callable[..., Tensor], case: Case) -> Operator:
    target = predicted(case)
    return lambda x: loss(x, target)


_SOFTMAX = Yardstick("torch.softmax", _plain(lambda x: torch.softmax(x, -1)))
_SORT = Yardstick("torch.sort", _plain(lambda x: torch.sort(x, -1).values), gradient=False)
_QUANTILE = Yardstick("torch.quantile", _quantile, gradient=False)
_MEDIAN = Yardstick("torch.median", _plain(lambda x: torch.median(x, -1).values), gradient=False)
_SIGMOIDS = Yardstick("torch.sigmoid of m×n, summed", _sums)
_CROSS_ENTROPY = Yardstick("torch cross_entropy", _cross_entropy)
_LISTWISE = Yardstick("torch cross_entropy, soft targets", _listwise)
_SQUARES = Yardstick("torch mse_loss", partial(_regression, functional.mse_loss))
_MANY = Yardstick(f"torch.topk of {SAMPLES} noisy rows", _many_topk, gradient=False)
_MATRIX = Yardstick(
    "torch.softmax of n×n", _plain(lambda x: torch.softmax(x, -1)), inputs=_matrix_of_logits
)

#: By the operator's name in the map.
YARDSTICKS = {
    "soft_topk": _SOFTMAX,
    "log_soft_topk": Yardstick("torch.log_softmax", _plain(lambda x: torch.log_softmax(x, -1))),
    "calibrate_temperature": _SOFTMAX,
    "soft_rank": _SORT,
    "soft_sort": _SORT,
    "soft_permutation": Yardstick(
        "torch.softmax of k×n", _plain(lambda x: torch.softmax(x, -1)), inputs=_rows_of_logits
    ),
    "soft_quantile": _QUANTILE,
    "soft_median": _MEDIAN,
    "fsum": _SIGMOIDS,
    "fsum_inverse": Yardstick("torch.quantile", _levels, gradient=False),
    "laplace_sum": _SIGMOIDS,
    "perturbed_topk": _MANY,
    "perturbed_permutation": _MANY,
    "sinkhorn": _MATRIX,
    "gumbel_sinkhorn": _MATRIX,
    "permutation_cross_entropy": Yardstick("torch, ListMLE", _plackett_luce),
    "TopKCrossEntropyLoss": _CROSS_ENTROPY,
    "SmoothTopKLoss": _CROSS_ENTROPY,
    "TopKEntropyLoss": _CROSS_ENTROPY,
    "TopKHingeLoss": _CROSS_ENTROPY,
    "TruncatedTopKEntropyLoss": _CROSS_ENTROPY,
    "FenchelYoungLoss": Yardstick("torch BCE with logits", _multi_label),
    "PerturbedFenchelYoungLoss": _MANY,
    "NDCGLoss": _LISTWISE,
    "ListwiseCE": _LISTWISE,
    "MRRLoss": _LISTWISE,
    "SpearmanLoss": _LISTWISE,
    "PrecisionAtK": _LISTWISE,
    "RecallAtK": _LISTWISE,
    "NeuralNDCGLoss": _LISTWISE,
    "ApproxNDCGLoss": _LISTWISE,
    "SmoothAPLoss": _LISTWISE,
    "SmoothRecallLoss": _LISTWISE,
    "ListMLELoss": Yardstick("torch, ListMLE", _plackett_luce),
    "ListNetLoss": _LISTWISE,
    "PairwiseLoss": _LISTWISE,
    "LambdaLoss": _LISTWISE,
    "MultiKLoss": _SQUARES,
    "QuantileLoss": _SQUARES,
    "RankHuberLoss": Yardstick("torch huber_loss", partial(_regression, functional.huber_loss)),
    "TrimmedLoss": _SQUARES,
    "KHot.sample": Yardstick("torch.topk of noisy scores", _noisy_topk, gradient=False),
    "KHot.log_prob": _SOFTMAX,
    "KHot.rsample": _SOFTMAX,
}


# ---- peers -------------------------------------------------------------------------------------


def peers() -> dict[tuple[str, str], Peer]:
    """Those that are here, by operator and method."""
    found = _formulas()
    if find_spec("entmax"):
        from benchmarks.providers import entmax_budget

        found["soft_topk", "uniform"] = Peer(entmax_budget.provider)
    if find_spec("difftopk"):
        from benchmarks.providers import difftopk_network

        found["soft_permutation", "network"] = Peer(difftopk_network.sparse_splitter, _cut_short)
    if find_spec("diffsort"):
        from benchmarks.providers import diffsort_network

        found["soft_sort", "network"] = Peer(diffsort_network.provider, _few)
    if find_spec("ot"):
        from benchmarks.providers import pot_sinkhorn

        found["soft_permutation", "sinkhorn"] = Peer(
            pot_sinkhorn.provider, _one_row, gradient=False
        )
    if find_spec("torchsort"):
        from benchmarks.providers import torchsort_projection

        for operator in ("soft_rank", "soft_sort"):
            for method, name in (("permutahedron", "l2"), ("permutahedron_kl", "kl")):
                found[operator, method] = Peer(torchsort_projection.provider(operator, name))
    return found


def _formulas() -> dict[tuple[str, str], Peer]:
    """As their papers have them, in plain torch."""
    found = {("soft_topk", "laplace"): Peer(closed_form)}
    for method, module in (("softsort", soft), ("neuralsort", neural)):
        rows = Provider(f"{method}-rows", module.provider.name, _rows_by(module.permutation))
        found["soft_sort", method] = Peer(module.provider, _square_fits)
        found["soft_permutation", method] = Peer(rows, _square_fits)
    return found


def _rows_by(permutation: Callable[[Tensor, float], Tensor]) -> Callable[[Case], Operator]:
    def bind(case: Case) -> Operator:
        k = rows_of_permutation(case.shape)
        return lambda x: permutation(x, case.temperature)[:, :k]

    return bind


def _square_fits(shape: Shape) -> bool:
    return shape.rows * shape.n**2 <= _FORMULA


def _few(shape: Shape) -> bool:
    """Their layers are n×n matrices for each row."""
    return shape.n <= 100 and shape.rows <= 64


def _one_row(shape: Shape) -> bool:
    """They take one row after the other, each for a second."""
    return shape.n <= 100 and shape.rows == 1


def _cut_short(shape: Shape) -> bool:
    """A selection network is for a few rows of P; building it takes minutes from 10,000 on."""
    return WHOLE < shape.n <= 1_000

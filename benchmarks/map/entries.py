"""What the map measures: every method of the registry on every operator that it serves.

Losses and designs of sampling have registries of their own, or are listed here; tests/test_map.py
fails where a public operator or loss is neither in the map nor left out with a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

import softorder as so
from benchmarks.cases import Case, Shape
from benchmarks.providers import DENSITIES, Operator, Provider

SHAPES = (
    Shape(1, 16),
    Shape(64, 100),
    Shape(4096, 64),
    Shape(128, 1_000),
    Shape(16, 10_000),
    Shape(1, 1_000_000),
)
K, TEMPERATURE = 5, 0.1
SAMPLES = 100  # of the perturbed operators: their default
POINTS = 16  # at which an F-sum is evaluated or inverted
WHOLE = 100  # permutations of so many scores are whole, of more their first K rows
SQUARE = 2**22  # numbers of an n×n matrix per row that is given: no more

#: Public names that the map leaves out, and why.
LEFT_OUT = {
    "Auto": "says how soft, and computes nothing",
    "Sinkhorn": "a method with other options",
    **dict.fromkeys(
        ("argmax", "argmin", "argsort", "kthvalue", "max", "median", "min", "sort", "topk"),
        "calls torch and an operator of the map",
    ),
    "methods": "the registry itself",
    "perturb": "adds noise, nothing else",
}


@dataclass(frozen=True)
class Entry:
    """One line of the map: an operator by a method."""

    operator: str
    method: str
    cost: str  # as the registry has it
    bind: Callable[[Case], Operator]
    gradient: bool = True
    square: bool = False  # its input is an n×n matrix per row

    @property
    def provider(self) -> Provider:
        return Provider(self.operator, f"softorder {self.method}", self.bind, self.method)

    def rows_of_output(self, shape: Shape) -> int:
        """How many numbers it returns for a score, at the most."""
        if "permutation" in self.operator and self.operator != "permutation_cross_entropy":
            return rows_of_permutation(shape)
        return shape.n if self.square else 1


def case_of(shape: Shape) -> Case:
    return Case(shape, min(K, shape.n), TEMPERATURE)


def rows_of_permutation(shape: Shape) -> int:
    return shape.n if shape.n <= WHOLE else K


def entries() -> list[Entry]:
    """All of them, operator by operator."""
    return [*_operators(), *_perturbed(), *_matrices(), *_losses(), *_sampling()]


# ---- operators of so.methods() -----------------------------------------------------------------


def _operators() -> Iterator[Entry]:
    for row in so.methods():
        for operator, call in _CALLS.get(row.operator, {row.operator: None}).items():
            if call is None:
                raise LookupError(f"the map does not know how to call {row.operator}")
            yield Entry(operator, row.name, row.cost, partial(call, row.name))
    yield Entry("laplace_sum", "laplace", "O((n + m) log(n + m))", _laplace_sum)
    for name in DENSITIES:
        yield Entry("calibrate_temperature", name, "O(n)", partial(_calibrate, name), False)


def _methods(operator: str) -> list[str]:
    return [row.name for row in so.methods() if row.operator == operator]


def _cost(operator: str, method: str) -> str:
    return next(r.cost for r in so.methods() if (r.operator, r.name) == (operator, method))


def _topk(operator: str, method: str, case: Case) -> Operator:
    function = getattr(so, operator)
    return lambda x: function(x, case.k, method=method, temperature=case.temperature)


def _ordering(operator: str, method: str, case: Case) -> Operator:
    function = getattr(so, operator)
    return lambda x: function(x, method=method, temperature=case.temperature)


def _permutation(method: str, case: Case) -> Operator:
    k = None if rows_of_permutation(case.shape) == case.shape.n else K
    options: dict[str, Any] = {"method": method, "temperature": case.temperature}
    return lambda x: so.soft_permutation(x, k=k, descending=True, **options)


def _quantile(method: str, case: Case) -> Operator:
    q = quartiles()
    return lambda x: so.soft_quantile(x, q, method=method, temperature=case.temperature)


def quartiles() -> Tensor:
    return torch.tensor([0.25, 0.5, 0.75])


def _fsum(method: str, case: Case) -> Operator:
    points = points_of(case)
    return lambda x: so.fsum(x, points, method=method, temperature=case.temperature)


def points_of(case: Case) -> Tensor:
    return torch.linspace(-2, 2, POINTS).expand(case.shape.rows, POINTS).contiguous()


def _fsum_inverse(method: str, case: Case) -> Operator:
    levels = levels_of(case) * case.shape.n
    return lambda x: so.fsum_inverse(x, levels, method=method, temperature=case.temperature)


def levels_of(case: Case) -> Tensor:
    """Parts of n."""
    return torch.linspace(0.05, 0.95, POINTS).expand(case.shape.rows, POINTS).contiguous()


def _laplace_sum(case: Case) -> Operator:
    targets = points_of(case)
    return lambda x: so.laplace_sum(x, targets, temperature=case.temperature)


def _calibrate(method: str, case: Case) -> Operator:
    return lambda x: so.calibrate_temperature(x, case.k, method=method)


def _permutation_loss(method: str, case: Case) -> Operator:
    target, options = places(case), {"method": method, "temperature": case.temperature}
    return lambda x: so.losses.permutation_cross_entropy(x, target, **options)


def places(case: Case) -> Tensor:
    """A place for every score, right for most of them: targets are noisy orders."""
    noise = torch.randn(case.shape.rows, case.shape.n, generator=torch.Generator().manual_seed(1))
    return (case.scores() + 0.1 * noise).argsort(-1).argsort(-1)


#: How the operators of the registry are called: what the map calls it, and the call.
_CALLS: dict[str, dict[str, Any]] = {
    "soft_topk": {"soft_topk": partial(_topk, "soft_topk")},
    "log_soft_topk": {"log_soft_topk": partial(_topk, "log_soft_topk")},
    "soft_rank": {"soft_rank": partial(_ordering, "soft_rank")},
    "soft_sort": {"soft_sort": partial(_ordering, "soft_sort")},
    "soft_permutation": {"soft_permutation": _permutation},
    "soft_quantile": {
        "soft_quantile": _quantile,
        "soft_median": partial(_ordering, "soft_median"),
    },
    "fsum": {"fsum": _fsum},
    "fsum_inverse": {"fsum_inverse": _fsum_inverse},
    "permutation_cross_entropy": {"permutation_cross_entropy": _permutation_loss},
}


# ---- operators without a choice of methods -----------------------------------------------------


def _perturbed() -> Iterator[Entry]:
    def topk(case: Case) -> Operator:
        return lambda x: so.perturbed_topk(x, case.k, samples=SAMPLES)

    def permutation(case: Case) -> Operator:
        k = rows_of_permutation(case.shape)
        return lambda x: so.perturbed_permutation(x, k=k, samples=SAMPLES)

    method, cost = f"{SAMPLES} samples", f"O({SAMPLES} n log n)"
    yield Entry("perturbed_topk", method, cost, topk)
    yield Entry("perturbed_permutation", method, cost, permutation)


def _matrices() -> Iterator[Entry]:
    def sinkhorn(case: Case) -> Operator:
        return lambda x: so.sinkhorn(x, temperature=1.0)

    def gumbel(case: Case) -> Operator:
        return lambda x: so.gumbel_sinkhorn(x, temperature=1.0)

    yield Entry("sinkhorn", "sinkhorn", "O(n²)", sinkhorn, square=True)
    yield Entry("gumbel_sinkhorn", "sinkhorn", "O(n²)", gumbel, square=True)


def inputs_of(entry: Entry, case: Case) -> Tensor:
    """The scores, or an n×n matrix of them for every row."""
    if not entry.square:
        return case.scores()
    shape, generator = case.shape, torch.Generator().manual_seed(0)
    return torch.randn(shape.rows, shape.n, shape.n, generator=generator)


# ---- losses ------------------------------------------------------------------------------------

_EVEN = (1 / K,) * K
_CLASSES = ("SmoothTopKLoss", "TopKEntropyLoss", "TopKHingeLoss", "TruncatedTopKEntropyLoss")
RANKING = (
    "NDCGLoss",
    "ListwiseCE",
    "MRRLoss",
    "SpearmanLoss",
    "NeuralNDCGLoss",
    "PrecisionAtK",
    "RecallAtK",
)
_AT_K = ("PrecisionAtK", "RecallAtK")
_BINARY = (*_AT_K, "MRRLoss", "SmoothAPLoss", "SmoothRecallLoss")
LOGISTIC = ("ApproxNDCGLoss", "SmoothAPLoss", "SmoothRecallLoss")
#: Losses of the scores themselves, and their costs.
OF_SCORES = {
    "ListMLELoss": "O(n log n)",
    "ListNetLoss": "O(n)",
    "PairwiseLoss": "O(n²)",
    "LambdaLoss": "O(n²)",
}

#: Losses of a whole batch, all scores of which are predictions of one number each.
_ROBUST = ("QuantileLoss", "RankHuberLoss", "TrimmedLoss")

#: The classes of so.losses, and what the map calls them where it is another name.
LOSSES = (
    "TopKCrossEntropyLoss",
    *_CLASSES,
    "FenchelYoungLoss",
    "PerturbedFenchelYoungLoss",
    "PermutationCrossEntropyLoss",  # permutation_cross_entropy
    *RANKING,
    *LOGISTIC,
    *OF_SCORES,
    *_ROBUST,
    "MultiKLoss",
)


def _losses() -> Iterator[Entry]:
    for name in _mass_methods():
        yield Entry("TopKCrossEntropyLoss", name, _mass_cost(name), partial(_top_k_loss, name))
    for name in _CLASSES:
        yield Entry(name, f"k = {K}", "O(n)", partial(_class_loss, name))
    for name in DENSITIES:
        yield Entry("FenchelYoungLoss", name, "O(n)", partial(_fenchel_young, name))
    cost = f"O({SAMPLES} n log n)"
    yield Entry("PerturbedFenchelYoungLoss", f"{SAMPLES} samples", cost, _perturbed_fenchel_young)
    # All of them are sums over soft ranks: one with every method, the others with the default.
    for method in _methods("soft_rank"):
        cost = _cost("soft_rank", method)
        yield Entry(RANKING[0], method, cost, partial(_ranking_loss, RANKING[0], method))
    for name in RANKING[1:]:
        operator = "soft_topk" if name in _AT_K else "soft_rank"
        cost = _cost(operator, "laplace")
        yield Entry(name, "laplace", cost, partial(_ranking_loss, name, "laplace"))
    for name in LOGISTIC:
        cost = _cost("soft_rank", "logistic")
        yield Entry(name, "logistic", cost, partial(_ranking_loss, name, "logistic"))
    for name, cost in OF_SCORES.items():
        yield Entry(name, "scores", cost, partial(_loss_of_scores, name))
    for name in _ROBUST:
        yield Entry(name, "laplace", "O(n)", partial(_robust_loss, name))
    yield Entry("MultiKLoss", "laplace", "O(n)", _multi_k_loss)


def _mass_methods() -> list[str]:
    """Those that can say how surely a class is among the first k."""
    served = ("log_soft_topk", "soft_permutation", "soft_topk")
    return list(dict.fromkeys(name for operator in served for name in _methods(operator)))


def _mass_cost(method: str) -> str:
    served = ("log_soft_topk", "soft_permutation", "soft_topk")
    return next(_cost(operator, method) for operator in served if method in _methods(operator))


def target_of(case: Case) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randint(case.shape.n, (case.shape.rows,), generator=generator)


def hot_target(case: Case) -> Tensor:
    """The K largest of scores with noise; for Cauchy's loss none may be quite 0 or 1."""
    noise = torch.randn(case.shape.rows, case.shape.n, generator=torch.Generator().manual_seed(1))
    return so.soft_topk(case.scores() + noise, case.k, method="cauchy", temperature=0.1)


def relevance_of(case: Case) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    grades = torch.randint(5, (case.shape.rows, case.shape.n), generator=generator)
    return grades.float()


def predicted(case: Case) -> Tensor:
    """What a regression should have found: the scores with noise, and a tenth of it wild."""
    generator = torch.Generator().manual_seed(1)
    noise = torch.randn(case.shape.rows, case.shape.n, generator=generator)
    wild = torch.rand(noise.shape, generator=generator) < 0.1
    return case.scores() + torch.where(wild, 100 * noise, noise)


def _robust_loss(name: str, case: Case) -> Operator:
    target, loss = predicted(case), getattr(so.losses, name)()
    return lambda x: loss(x, target)


def _multi_k_loss(case: Case) -> Operator:
    """Of a decoder that does nothing: the choices and the squares alone."""
    ks = (case.k, min(4 * case.k, case.shape.n))
    target, loss = predicted(case), so.losses.MultiKLoss(ks, temperature=case.temperature)
    return lambda x: loss(lambda code: code, x, target)


def _top_k_loss(method: str, case: Case) -> Operator:
    options: dict[str, Any] = {"method": method, "temperature": case.temperature}
    target, loss = target_of(case), so.losses.TopKCrossEntropyLoss(_EVEN, **options)
    return lambda x: loss(x, target)


def _class_loss(name: str, case: Case) -> Operator:
    target, loss = target_of(case), getattr(so.losses, name)(case.k)
    return lambda x: loss(x, target)


def _fenchel_young(density: str, case: Case) -> Operator:
    target = hot_target(case)
    loss = so.losses.FenchelYoungLoss(None, density, temperature=case.temperature)
    return lambda x: loss(x, target)


def _perturbed_fenchel_young(case: Case) -> Operator:
    target = so.hard.topk(case.scores(), case.k)
    loss = so.losses.PerturbedFenchelYoungLoss(case.k, samples=SAMPLES)
    return lambda x: loss(x, target)


def _ranking_loss(name: str, method: str, case: Case) -> Operator:
    options: dict[str, Any] = {"method": method, "temperature": case.temperature}
    relevance = relevance_of(case)
    if name in _BINARY:
        relevance = (relevance > 3).float()
    loss = getattr(so.losses, name)(*([case.k] if name in _AT_K else []), **options)
    return lambda x: loss(x, relevance)


def _loss_of_scores(name: str, case: Case) -> Operator:
    relevance, loss = relevance_of(case), getattr(so.losses, name)()
    return lambda x: loss(x, relevance)


# ---- sampling ----------------------------------------------------------------------------------


def _sampling() -> Iterator[Entry]:
    for design in so.sampling.designs():
        name = design.name
        yield Entry("KHot.sample", name, design.cost, partial(_draw, name), gradient=False)
        if design.log_prob:
            yield Entry("KHot.log_prob", name, design.cost, partial(_log_prob, name))
        if design.fixed_size:
            yield Entry("KHot.rsample", name, "O(n)", partial(_relaxed_draw, name))


def _law(x: Tensor, case: Case, design: str) -> so.distributions.KHot:
    return so.distributions.KHot(case.k, logits=x, design=design)


def _draw(design: str, case: Case) -> Operator:
    return lambda x: _law(x, case, design).sample()


def _relaxed_draw(design: str, case: Case) -> Operator:
    return lambda x: _law(x, case, design).rsample()


def _log_prob(design: str, case: Case) -> Operator:
    value = _law(case.scores(), case, design).sample()
    return lambda x: _law(x, case, design).log_prob(value)

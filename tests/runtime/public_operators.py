"""Everything public that takes a tensor of scores, each as a function of them alone.

The scores are (3, 5), between 0 and 1 since some are probabilities.
"""

from functools import partial

import torch

import softorder as so

SHAPE = (3, 5)

_CLASSES = torch.tensor([1, 0, 2])
_RELEVANT = torch.tensor([[0.0, 1, 1, 0, 1], [1, 0, 0, 1, 1], [1, 1, 0, 0, 0]])
_PLACES = torch.tensor([[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [1, 0, 2, 4, 3]])
_CHOSEN = torch.tensor([[1.0, 1, 0, 0, 0], [0, 1, 1, 0, 0], [0, 0, 0, 1, 1]])

# without "pareto_adjusted", which is "pareto" a hundred times
_DESIGNS = [row.name for row in so.sampling.designs() if row.name != "pareto_adjusted"]


def _by_method():
    """Every family of methods of every operator; of the densities two: with and without kernels."""
    given = {"soft_topk": (2,), "log_soft_topk": (2,), "soft_quantile": (0.3,)}
    given |= dict.fromkeys(("fsum", "fsum_inverse"), (torch.tensor([0.7, 0.2]),))
    for row in so.methods():
        if row.name in ("normal", "cauchy", "uniform"):
            continue
        if row.operator == "permutation_cross_entropy":
            operator, arguments = so.losses.permutation_cross_entropy, (_PLACES,)
        else:
            operator, arguments = getattr(so, row.operator), given.get(row.operator, ())
        yield f"{row.operator}, {row.name}", partial(_then, operator, *arguments, method=row.name)


def _then(operator, *arguments_and_scores, **options):
    """The operator of the scores, which come last, and of its other arguments."""
    *arguments, scores = arguments_and_scores
    return operator(scores, *arguments, **options)


def _losses():
    losses = so.losses
    ordered = "SpearmanLoss", "ListwiseCE", "NDCGLoss", "MRRLoss", "NeuralNDCGLoss", "SmoothAPLoss"
    scored = "ListMLELoss", "ListNetLoss", "PairwiseLoss", "LambdaLoss", "SmoothRecallLoss"
    for name in (*ordered, *scored):
        yield name, partial(_then, getattr(losses, name)(), _RELEVANT)
    for name in ("PrecisionAtK", "RecallAtK"):
        yield name, partial(_then, getattr(losses, name)(2), _RELEVANT)
    for name in ("SmoothTopKLoss", "TopKHingeLoss", "TopKEntropyLoss", "TruncatedTopKEntropyLoss"):
        yield name, partial(_then, getattr(losses, name)(2), _CLASSES)
    yield "TopKCrossEntropyLoss", partial(_then, losses.top_k_cross_entropy, _CLASSES, [0.5, 0.5])
    yield "FenchelYoungLoss", partial(_then, losses.fenchel_young, _CHOSEN, 2)


def _layers():
    gate, attention = so.nn.KHotGate(None, 2).eval(), so.nn.functional.topk_attention
    yield "SoftTopK", so.nn.SoftTopK(2)
    yield "SoftRank", so.nn.SoftRank()
    yield "SoftSort", so.nn.SoftSort()
    yield "SoftPermutation", so.nn.SoftPermutation()
    yield "SoftQuantile", so.nn.SoftQuantile(0.5)
    yield "KHotGate", lambda x: gate(_CHOSEN, logits=x)
    yield "soft_neighbours", lambda x: so.nn.functional.soft_neighbours(x, _RELEVANT, 2)
    yield "nearest_neighbours", lambda x: so.nn.functional.nearest_neighbours(x, _RELEVANT, 2)[0]
    yield "topk_attention", lambda x: attention(x, _RELEVANT, _CHOSEN, 2)


def _laws():
    def generator():
        return torch.Generator().manual_seed(0)

    def law(x, design="conditional_poisson"):
        return so.distributions.KHot(2, logits=x, design=design)

    for name in _DESIGNS:
        yield (
            f"sample, {name}",
            lambda x, name=name: so.sampling.sample(x, design=name, generator=generator()),
        )
    yield "KHot.mean", lambda x: law(x).mean
    yield "KHot.log_prob", lambda x: law(x).log_prob(_CHOSEN)
    yield "KHot.entropy", lambda x: law(x).entropy()
    yield "khot_kl", lambda x: so.nn.functional.khot_kl(law(x))
    for name in ("straight_through", "second_order", "relaxed", "simple"):
        estimator = getattr(so.estimators, name)
        yield name, lambda x, estimator=estimator: estimator(law(x), generator=generator())
    yield (
        "score_function",
        lambda x: so.estimators.score_function(
            law(x), lambda draw: draw.cumsum(-1).sum(-1), (2,), generator=generator()
        ),
    )


def _others():
    yield "hard.topk", lambda x: so.hard.topk(x, 2)
    yield "hard.rank", so.hard.rank
    yield "hard.sort", so.hard.sort
    yield "hard.permutation", so.hard.permutation
    yield "hard.quantile", lambda x: so.hard.quantile(x, 0.3)
    yield "soft_median", so.soft_median
    yield "soft_sort, within", partial(_then, so.soft_sort, within=True)
    yield "topk", lambda x: so.topk(x, 2).values
    yield "kthvalue", lambda x: so.kthvalue(x, 2).values
    yield "sort", lambda x: so.sort(x).values
    yield "argsort", so.argsort
    yield "max", lambda x: so.max(x, 1).values
    yield "median", lambda x: so.median(x, 1).values
    yield "simplex", so.projections.simplex
    yield "capped_simplex", lambda x: so.projections.capped_simplex(x, 2)
    yield "box_section", lambda x: so.projections.box_section(x, 0.0, 1.0, 2.0)
    yield "calibrate_temperature", lambda x: so.calibrate_temperature(x, 2)
    yield "topk_accuracy", lambda x: so.metrics.topk_accuracy(x, _CLASSES, 2)
    for name in ("ndcg", "mrr", "average_precision", "precision", "recall", "hit_rate"):
        yield f"metrics.{name}", partial(_then, getattr(so.metrics, name), _RELEVANT, 2)


#: Those that draw.
RANDOM = {f"sample, {name}" for name in _DESIGNS} | {
    "straight_through",
    "second_order",
    "relaxed",
    "simple",
    "score_function",
}

OPERATORS = dict(pair for part in (_by_method, _losses, _layers, _laws, _others) for pair in part())

"""Differentiable top-k, ranking and sorting for PyTorch.

>>> import torch, softorder as so
>>> so.soft_topk(torch.tensor([3.0, 1.0, 2.0]), k=2, temperature=0.5).sum()
tensor(2.)
>>> so.soft_rank(torch.tensor([3.0, 1.0, 2.0]), temperature=0.01)
tensor([3., 1., 2.])
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType

from softorder import (
    densities,
    distributed,
    distributions,
    estimators,
    losses,
    metrics,
    networks,
    nn,
    relaxations,
    sampling,
)
from softorder import hard as hard
from softorder.ops import (
    calibrate_temperature,
    fsum,
    fsum_inverse,
    gumbel_sinkhorn,
    laplace_sum,
    log_soft_topk,
    perturb,
    perturbed_permutation,
    perturbed_topk,
    sinkhorn,
    soft_median,
    soft_permutation,
    soft_quantile,
    soft_rank,
    soft_sort,
    soft_topk,
)
from softorder.relaxations import Sinkhorn
from softorder.relaxations._base import methods

try:
    __version__ = version("softorder")
except PackageNotFoundError:  # used from a source tree
    __version__ = "0.0.0"

__all__ = [
    "Sinkhorn",
    "__version__",
    "calibrate_temperature",
    "densities",
    "distributed",
    "distributions",
    "estimators",
    "fsum",
    "fsum_inverse",
    "gumbel_sinkhorn",
    "hard",
    "laplace_sum",
    "log_soft_topk",
    "losses",
    "methods",
    "metrics",
    "networks",
    "nn",
    "perturb",
    "perturbed_permutation",
    "perturbed_topk",
    "relaxations",
    "sampling",
    "sinkhorn",
    "soft_median",
    "soft_permutation",
    "soft_quantile",
    "soft_rank",
    "soft_sort",
    "soft_topk",
]


def __getattr__(name: str) -> ModuleType:
    """`so.sklearn` is loaded when it is first used: scikit-learn is an extra."""
    if name == "sklearn":
        return import_module("softorder.sklearn")
    raise AttributeError(f"module 'softorder' has no attribute {name!r}")

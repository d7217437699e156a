"""The operators."""

from softorder.ops.calibration import calibrate_temperature
from softorder.ops.fsum import fsum, fsum_inverse
from softorder.ops.laplace_sum import laplace_sum
from softorder.ops.permutation import soft_permutation
from softorder.ops.perturb import perturb
from softorder.ops.perturbed import perturbed_permutation, perturbed_topk
from softorder.ops.quantile import soft_median, soft_quantile
from softorder.ops.rank import soft_rank
from softorder.ops.sinkhorn import gumbel_sinkhorn, sinkhorn
from softorder.ops.sort import soft_sort
from softorder.ops.topk import log_soft_topk, soft_topk
from softorder.ops.torch_shaped import (
    argmax,
    argmin,
    argsort,
    kthvalue,
    max,
    median,
    min,
    sort,
    topk,
)

__all__ = [
    "argmax",
    "argmin",
    "argsort",
    "calibrate_temperature",
    "fsum",
    "fsum_inverse",
    "gumbel_sinkhorn",
    "kthvalue",
    "laplace_sum",
    "log_soft_topk",
    "max",
    "median",
    "min",
    "perturb",
    "perturbed_permutation",
    "perturbed_topk",
    "sinkhorn",
    "soft_median",
    "soft_permutation",
    "soft_quantile",
    "soft_rank",
    "soft_sort",
    "soft_topk",
    "sort",
    "topk",
]

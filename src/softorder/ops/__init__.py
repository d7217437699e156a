"""The operators."""

from softorder.ops.balance import gumbel_sinkhorn, sinkhorn
from softorder.ops.calibration import calibrate_temperature
from softorder.ops.fsums import fsum, fsum_inverse
from softorder.ops.laplace_sums import laplace_sum
from softorder.ops.permutation import soft_permutation
from softorder.ops.perturbation import perturb
from softorder.ops.perturbed import perturbed_permutation, perturbed_topk
from softorder.ops.quantile import soft_median, soft_quantile
from softorder.ops.rank import soft_rank
from softorder.ops.sort import soft_sort
from softorder.ops.topk import log_soft_topk, soft_topk

__all__ = [
    "calibrate_temperature",
    "fsum",
    "fsum_inverse",
    "gumbel_sinkhorn",
    "laplace_sum",
    "log_soft_topk",
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
]

"""Operators on rows of different lengths, one behind another: values (total,) and offsets.

Row i is values[offsets[i]:offsets[i+1]]; rows may be empty. Nothing is padded where the method is a
density: memory is that of the values. The same functions serve jagged nested tensors, which the
operators without `ragged` take as they are.

>>> import torch, softorder as so
>>> values, offsets = torch.tensor([3.0, 1.0, 2.0, 5.0, 4.0]), torch.tensor([0, 3, 3, 5])
>>> so.ragged.soft_topk(values, offsets, 1, temperature=0.1).numpy().round(3)
array([0.997, 0.   , 0.003, 0.997, 0.003], dtype=float32)
"""

from softorder.ragged import hard
from softorder.ragged.calibration import calibrate_temperature
from softorder.ragged.fsums import fsum, fsum_inverse
from softorder.ragged.soft import (
    log_soft_topk,
    permutation_cross_entropy,
    soft_median,
    soft_quantile,
    soft_rank,
    soft_sort,
    soft_topk,
)

__all__ = [
    "calibrate_temperature",
    "fsum",
    "fsum_inverse",
    "hard",
    "log_soft_topk",
    "permutation_cross_entropy",
    "soft_median",
    "soft_quantile",
    "soft_rank",
    "soft_sort",
    "soft_topk",
]

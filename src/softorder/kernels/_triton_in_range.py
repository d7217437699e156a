"""Scores near the largest number, in Triton's language: rows and τ times one power of two.

As formulas.py does it in plain torch; here a program finds the factor of its rows itself.
"""

# mypy: ignore-errors
# The functions are in the language of Triton, which only looks like Python.

import torch
import triton
import triton.language as tl

from softorder.kernels import formulas

_FAR_64 = tl.constexpr(formulas.far_from_zero(torch.float64))
_FAR_32 = tl.constexpr(formulas.far_from_zero(torch.float32))
_FACTOR_64 = tl.constexpr(formulas.FACTORS[torch.float64])
_FACTOR_32 = tl.constexpr(formulas.FACTORS[torch.float32])


@triton.jit
def factor_for(most):
    """What rows of scores up to ±most are to be multiplied by, mostly 1."""
    if most.dtype == tl.float64:
        return tl.where(most > _FAR_64, _FACTOR_64, 1.0).to(tl.float64)
    else:
        return tl.where(most > _FAR_32, _FACTOR_32, 1.0).to(most.dtype)


@triton.jit
def inverse(temperature, factor, dtype: tl.constexpr):
    """1/τ in those units, always finite."""
    most: tl.constexpr = 1.7e308 if dtype == tl.float64 else 3.4e38
    return tl.minimum(1.0 / (temperature * factor), most).to(dtype)

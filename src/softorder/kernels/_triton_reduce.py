"""Reductions of the last axis of a tile."""

# mypy: ignore-errors
# The functions are in the language of Triton, which only looks like Python.

import triton
import triton.language as tl


@triton.jit
def count(where):
    """How many are true in each row."""
    return tl.sum(where.to(tl.int32), 1)


@triton.jit
def total(where, values):
    """The sum of the values at those places."""
    return tl.sum(tl.where(where, values, 0.0), 1)


@triton.jit
def any_row(where):
    """Whether it is true in a row."""
    return tl.max(where.to(tl.int32), 0) > 0

"""The goals: what each operator must reach, beside what it does, at two SIMD levels.

goal.py      what a goal is: two calls and a limit for their ratio
topk.py      soft top-k against softmax; formats, dim, per-row k, masks
orders.py    rank, sort and permutation
others.py    losses, sampling, nearest neighbours
picture.py   the goals as dots beside their marks
suite.py     what `softorder bench goals` does
"""

from benchmarks.goals.suite import names, run

__all__ = ["names", "run"]

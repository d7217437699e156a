"""The uniform density as a Euclidean projection onto {0 <= p <= 1, sum p = k}.

Every split of the row into zeros, free entries and ones is tried; the nearest feasible point wins.
"""

from itertools import product

import numpy as np


def soft_topk(scores, k, temperature):
    target = np.asarray(scores, dtype=np.float64) / temperature
    candidates = (
        _candidate(target, k, np.array(s)) for s in product((0, 1, 2), repeat=target.size)
    )
    feasible = [p for p in candidates if p is not None]
    return min(feasible, key=lambda p: np.sum((p - target) ** 2))


def _candidate(target, k, split):
    """The best point with the entries marked 0 at zero, those marked 2 at one, the rest free."""
    p = np.where(split == 2, 1.0, 0.0)
    free = split == 1
    missing = k - p.sum()
    if free.any():
        p[free] = target[free] + (missing - target[free].sum()) / free.sum()
        missing = k - p.sum()
    feasible = abs(missing) < 1e-9 and p.min() >= -1e-12 and p.max() <= 1 + 1e-12
    return p if feasible else None

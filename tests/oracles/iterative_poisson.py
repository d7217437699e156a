"""The chain of iterative Poisson sampling (Pervez et al. 2023), over all subsets."""

from itertools import product
from math import prod

import numpy as np


def rescaled(probs, total):
    """Probabilities with that sum: all scaled down, or what they lack of 1 is."""
    probs = np.asarray(probs)
    if total <= probs.sum():
        return probs * (total / probs.sum())
    return 1 - (1 - probs) * ((len(probs) - total) / (len(probs) - probs.sum()))


def law(probs, k, rounds):
    """{subset: probability} after so many rounds."""
    states = {(0,) * len(probs): 1.0}
    for _ in range(rounds):
        after = {}
        for x, chance in states.items():
            for y, step in _steps(x, probs, k):
                after[y] = after.get(y, 0.0) + chance * step
        states = after
    return states


def _steps(x, probs, k):
    """What may become of x in one round."""
    missing = k - sum(x)
    if missing == 0:
        return [(x, 1.0)]
    few = missing > 0
    units = [i for i, value in enumerate(x) if value == (0 if few else 1)]
    chances = rescaled([probs[i] if few else 1 - probs[i] for i in units], abs(missing))
    steps = []
    for turned in product((False, True), repeat=len(units)):
        y = list(x)
        for i, turn in zip(units, turned, strict=True):
            y[i] = 1 - y[i] if turn else y[i]
        step = prod(c if turn else 1 - c for c, turn in zip(chances, turned, strict=True))
        steps.append((tuple(y), step))
    return steps

"""The limit of temperature to zero for one row, step by step."""

import math


def topk(scores, k):
    """Every group of equal scores takes what is left of k, shared equally, at most one each."""
    result, left = [0.0] * len(scores), k
    for value in sorted(set(scores), reverse=True):
        group = [i for i, score in enumerate(scores) if score == value]
        share = min(1.0, left / len(group))
        for i in group:
            result[i] = share
        left = max(0.0, left - len(group))
    return result


def quantile(scores, q):
    """The score that the q-th part of the row lies below; between two, their middle."""
    ordered, place = sorted(scores), q * len(scores)
    low = ordered[max(math.ceil(place) - 1, 0)]
    high = ordered[min(math.floor(place), len(scores) - 1)]
    return (low + high) / 2


def permutation(scores):
    """Row j holds the j-th smallest; equal scores share their rows equally."""
    ordered = sorted(scores)
    share = {value: 1 / ordered.count(value) for value in ordered}
    return [[share[x] * (x == value) for x in scores] for value in ordered]

"""Projections onto permutahedra, written from Blondel et al. (2020), section 4: one row at a time.

The l2 and KL projections of z onto the hull of the orders of w are s - v, s the sorted z, where v
solves an isotonic problem. Its solution is constant on blocks, on which it is a mean of s - w, or a
difference of logsumexps of s and w. Blocks that are out of order are joined.
"""

import torch


def blocks(s, w, value):
    """Where the solution is constant: pairs (first, end). s and w descend."""
    found = []
    for i in range(len(s)):
        found.append((i, i + 1))
        while len(found) > 1 and _below(s, w, value, *found[-2:]):
            (first, _), (_, end) = found[-2:]
            found[-2:] = [(first, end)]
    return found


def _below(s, w, value, left, right):
    return value(s[slice(*left)], w[slice(*left)]) <= value(s[slice(*right)], w[slice(*right)])


def mean(s, w):
    return (s - w).mean()


def entropic(s, w):
    return torch.logsumexp(s, 0) - torch.logsumexp(w, 0)


def projection(s, w, value):
    """s - v, in order."""
    return torch.cat(
        [s[a:b] - value(s[a:b], w[a:b]) for a, b in blocks(s.detach(), w.detach(), value)]
    )


def soft_rank(x, strength, regularization):
    """Ascending."""
    places = torch.arange(len(x), 0, -1, dtype=x.dtype)
    s, order = (x / strength).sort(descending=True)
    if regularization == "l2":
        ranks = projection(s, places, mean)
    else:
        ranks = projection(s, places.log(), entropic).exp()
    return torch.zeros_like(x).scatter(0, order, ranks)


def soft_sort(x, strength, regularization):
    """Ascending: minus the descending sort of -x."""
    places = torch.arange(len(x), 0, -1, dtype=x.dtype) / strength
    s = (-x).sort(descending=True).values
    return -projection(places, s, mean if regularization == "l2" else entropic)

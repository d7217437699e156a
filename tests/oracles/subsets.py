"""Laws of subsets, by listing all of them, or by the plain recursion over the units."""

from itertools import combinations, pairwise, permutations
from math import prod

import numpy as np
from scipy.integrate import quad
from scipy.special import expit


def vectors(n, k):
    """All 0/1 vectors with k ones."""
    rows = [[float(i in chosen) for i in range(n)] for chosen in combinations(range(n), k)]
    return np.array(rows).reshape(-1, n)


def conditional_poisson(logits, k):
    """e^<θ,x> of every subset, normalised, and the logarithm of the sum."""
    logits = np.asarray(logits)
    scores = np.array([logits[x > 0].sum() for x in vectors(len(logits), k)])
    total = np.logaddexp.reduce(scores)
    return np.exp(scores - total), total


def sampford(probs, k):
    """Sampford 1967: the odds of those drawn, times the sum of what they lack of 1."""
    probs = np.asarray(probs)
    weights = []
    for x in vectors(len(probs), k) > 0:
        drawn = probs[x]
        weights.append(prod(drawn / (1 - drawn)) * (1 - drawn).sum())
    return np.array(weights) / sum(weights)


def pareto(probs, k):
    """The density that unit i is the last one in, integrated over its place, for every subset."""
    logits = np.log(probs) - np.log1p(-np.asarray(probs))

    def density(s, x):
        above = expit(logits + s)
        last = sum(
            above[i] * (1 - above[i]) * prod(above[j] for j in np.flatnonzero(x) if j != i)
            for i in np.flatnonzero(x)
        )
        return last * prod(1 - above[j] for j in np.flatnonzero(x == 0))

    rows = vectors(len(probs), k)
    return np.array([quad(density, -60, 60, args=(x,), limit=400, points=[0])[0] for x in rows])


def successive(weights, k):
    """Draws in proportion to the weights, without replacement: a sum over the orders."""
    return _draw_by_draw(len(weights), k, lambda left, _: np.where(left, np.asarray(weights), 0.0))


def brewer(probs, k):
    """Brewer 1975, as Tillé 2006 states it, over all orders of drawing."""
    probs = np.asarray(probs)

    def chances(left, drawn):
        rest, missing = probs[left].sum(), k - drawn
        weight = probs * (rest - probs) / (rest - missing * probs) if missing > 1 else probs
        return np.where(left, weight, 0.0)

    return _draw_by_draw(len(probs), k, chances)


def _draw_by_draw(n, k, chances):
    total = dict.fromkeys(combinations(range(n), k), 0.0)
    for order in permutations(range(n), k):
        left, chance = np.ones(n, dtype=bool), 1.0
        for drawn, unit in enumerate(order):
            weight = chances(left, drawn)
            chance *= weight[unit] / weight.sum()
            left[unit] = False
        total[tuple(sorted(order))] += chance
    return np.array(list(total.values()))


def log_elementary(logits, k):
    """log of the sum of e^<θ,x> over |x| = k: e_k of the first i units from that of i - 1."""
    table = np.full(k + 1, -np.inf)
    table[0] = 0.0
    for theta in logits:
        table[1:] = np.logaddexp(table[1:], table[:-1] + theta)
    return table[k]


# ---- designs that decide unit by unit -----------------------------------------------------------


def poisson(probs):
    """Every unit by itself: {the units drawn: its probability}, over all sizes."""
    law = {(): 1.0}
    for unit, p in enumerate(probs):
        law = {
            (*drawn, *taken): chance * share
            for drawn, chance in law.items()
            for taken, share in (((unit,), p), ((), 1 - p))
        }
    return law


def systematic(probs):
    """Madow 1949: who is hit by teeth at U, U + 1, ..., for every interval of U with one answer."""
    ends = np.concatenate([[0.0], np.cumsum(probs)])
    cuts = np.unique(np.concatenate([[0.0, 1.0], np.ceil(ends) - ends]))
    law = {}
    for low, high in pairwise(cuts):
        crossed = np.floor(ends + (low + high) / 2)
        drawn = tuple(np.flatnonzero(np.diff(crossed)).tolist())
        law[drawn] = law.get(drawn, 0.0) + high - low
    return law


def _fights(state, one, other):
    """Deville & Tillé 1998: (probability, survivor, who is in) of a fight of two (unit, π)."""
    chance, drawn = state
    (i, a), (j, b) = one, other
    if a + b <= 1:
        first = a / (a + b) if a + b > 0 else 1.0
        yield (chance * first, drawn), (i, a + b)
        yield (chance * (1 - first), drawn), (j, a + b)
    else:
        first = (1 - b) / (2 - a - b) if a + b < 2 else 1.0
        yield (chance * first, (*drawn, i)), (j, a + b - 1)
        yield (chance * (1 - first), (*drawn, j)), (i, a + b - 1)


def _collected(states):
    law = {}
    for (chance, drawn), (unit, p) in states:
        found = tuple(sorted((*drawn, unit) if p > 0.5 else drawn))
        law[found] = law.get(found, 0.0) + chance
    return law


def pivotal_ordered(probs):
    """The survivor fights the next unit."""
    states = [((1.0, ()), (0, probs[0]))]
    for challenger in enumerate(probs[1:], 1):
        states = [s for state, unit in states for s in _fights(state, unit, challenger)]
    return _collected(states)


def pivotal(probs):
    """A tournament: of units in random order, each of the first half fights one of the second."""
    law = {}
    orders = list(permutations(enumerate(probs)))
    for order in orders:
        for drawn, chance in _tournament((1.0, ()), list(order)):
            law[drawn] = law.get(drawn, 0.0) + chance / len(orders)
    return law


def _tournament(state, units):
    if len(units) == 1:
        yield from _collected([(state, units[0])]).items()
        return
    half = (len(units) + 1) // 2
    rounds = [(state, [])]
    for place in range(half):
        if place + half >= len(units):  # nobody to fight
            rounds = [(s, [*on, units[place]]) for s, on in rounds]
            continue
        rounds = [
            (after, [*on, survivor])
            for s, on in rounds
            for after, survivor in _fights(s, units[place], units[place + half])
        ]
    for after, survivors in rounds:
        yield from _tournament(after, survivors)

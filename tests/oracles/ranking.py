"""Ranking losses and metrics of one list, pair by pair and order by order, from their papers."""

import itertools
import math

import numpy as np


def _sigmoid(u):
    return 1 / (1 + math.exp(-u)) if u > -700 else 0.0


def _best(gains, k=None):
    return sum(g / math.log2(2 + p) for p, g in enumerate(sorted(gains, reverse=True)[:k]))


# ---- losses ------------------------------------------------------------------------------------


def neural_ndcg(scores, relevance, temperature, k=None):
    """NeuralNDCG (2021), equations 3 to 6: NeuralSort's matrix, scaled, times the gains."""
    s, n = np.asarray(scores, float), len(scores)
    distances = np.abs(s[:, None] - s[None, :]).sum(1)
    rows = [((n + 1 - 2 * j) * s - distances) / temperature for j in range(1, n + 1)]
    matrix = np.exp([row - row.max() for row in rows])
    for _ in range(2_000):
        matrix /= matrix.sum(1, keepdims=True)
        matrix /= matrix.sum(0, keepdims=True)
    gains = 2.0 ** np.asarray(relevance, float) - 1
    found = sum(g / math.log2(2 + j) for j, g in enumerate((matrix @ gains)[:k]))
    return found / _best(gains, k)


def approx_ndcg(scores, relevance, temperature):
    """Qin et al. (2010): positions by sums of sigmoids, α = 1/τ."""
    found = 0.0
    for i, (x, y) in enumerate(zip(scores, relevance, strict=True)):
        others = [z for j, z in enumerate(scores) if j != i]
        place = 1 + sum(_sigmoid((z - x) / temperature) for z in others)
        found += (2**y - 1) / math.log2(1 + place)
    return found / _best([2**y - 1 for y in relevance])


def order_probability(scores, order):
    """Plackett and Luce: one place after the other."""
    left, p = list(order), 1.0
    while left:
        p *= math.exp(scores[left[0]]) / sum(math.exp(scores[i]) for i in left)
        left.pop(0)
    return p


def consistent_probability(scores, relevance):
    """That no element comes before one of higher relevance: all orders, one by one."""
    total = 0.0
    for order in itertools.permutations(range(len(scores))):
        grades = [relevance[i] for i in order]
        if grades == sorted(grades, reverse=True):
            total += order_probability(scores, order)
    return total


def partial_likelihood(scores, relevance, ties, k=None):
    """-log of Cox's partial likelihood, with Efron's or Breslow's denominators, from textbooks.

    Grades are the times of events, the highest first; the lowest one is left out. Of a grade that
    k cuts, the numerator is the expectation over its orders.
    """
    loss, placed = 0.0, 0
    for grade in sorted(set(relevance), reverse=True)[:-1]:
        group = [x for x, y in zip(scores, relevance, strict=True) if y == grade]
        risk = [x for x, y in zip(scores, relevance, strict=True) if y <= grade]
        d = len(group)
        judged = d if k is None else min(max(k - placed, 0), d)
        for step in range(judged):
            part = step / d if ties == "efron" else 0.0
            total = sum(map(math.exp, risk)) - part * sum(map(math.exp, group))
            loss += math.log(total)
        loss -= judged / d * sum(group)
        placed += d
    return loss


def list_net(scores, relevance, proportional):
    law = [math.exp(x) for x in scores]
    wanted = list(relevance) if proportional else [math.exp(y) for y in relevance]
    return -sum(y / sum(wanted) * math.log(p / sum(law)) for y, p in zip(wanted, law, strict=True))


def pairs(relevance):
    n = range(len(relevance))
    return [(i, j) for i in n for j in n if relevance[i] > relevance[j]]


def pairwise(scores, relevance, temperature, kind):
    costs = []
    for i, j in pairs(relevance):
        u = (scores[i] - scores[j]) / temperature
        costs.append(math.log(1 + math.exp(-u)) if kind == "logistic" else max(0.0, 1 - u))
    return sum(costs) / len(costs)


def lambda_loss(scores, relevance, temperature, weights, k=None, mu=10.0):
    """Wang et al. (2018), section 5; beyond k a discount is worth nothing."""
    order = sorted(range(len(scores)), key=lambda i: -scores[i])
    place = {i: 1 + order.index(i) for i in order}
    gains = [2**y - 1 for y in relevance]
    best = _best(gains, k)
    last = math.inf if k is None else k

    def worth(p):
        return 1 / math.log2(1 + p) if p <= last else 0.0

    def bound(p):
        return 1 / math.log2(1 + p)

    loss = 0.0
    for i, j in pairs(relevance):
        if min(place[i], place[j]) > last:
            continue
        delta = abs(place[i] - place[j])
        gap = abs(gains[i] - gains[j]) / best
        swap = gap * abs(worth(place[i]) - worth(place[j]))
        apart = gap * (bound(delta) - bound(delta + 1))
        weight = {
            "ndcg1": gains[i] / best * worth(place[i]),
            "ndcg2": apart,
            "lambdarank": swap,
            "ndcg2++": swap + mu * apart,
        }[weights]
        loss -= weight * math.log2(_sigmoid((scores[i] - scores[j]) / temperature))
    return loss


def _soft_rank(scores, i, among, temperature):
    return 1 + sum(_sigmoid((scores[j] - scores[i]) / temperature) for j in among if j != i)


def smooth_ap(scores, relevance, temperature):
    """Brown et al. (2020), equation 6."""
    every = range(len(scores))
    relevant = [i for i in every if relevance[i] > 0]
    parts = [
        _soft_rank(scores, i, relevant, temperature) / _soft_rank(scores, i, every, temperature)
        for i in relevant
    ]
    return sum(parts) / len(parts)


def smooth_recall(scores, relevance, temperature, ks, edge):
    """Patel et al. (2022), equations 5 to 7."""
    every = range(len(scores))
    relevant = [i for i in every if relevance[i] > 0]
    ranks = [_soft_rank(scores, i, every, temperature) for i in relevant]
    inside = [_sigmoid((k - rank) / edge) for k in ks for rank in ranks]
    return sum(inside) / len(inside)


# ---- metrics: the mean over all orders of equal scores -------------------------------------------


def _orders(scores):
    """All orders in which no score comes before a larger one."""
    values = sorted(set(scores), reverse=True)
    groups = [[i for i, x in enumerate(scores) if x == value] for value in values]
    for parts in itertools.product(*(itertools.permutations(group) for group in groups)):
        yield [i for part in parts for i in part]


def expected(metric, scores, relevance, k):
    values = [metric([relevance[i] for i in order], k) for order in _orders(scores)]
    return sum(values) / len(values)


def ndcg(relevance, k):
    found = sum(y / math.log2(2 + p) for p, y in enumerate(relevance[:k]))
    return found / _best(relevance, k)


def mrr(relevance, k):
    return next((1 / (1 + p) for p, y in enumerate(relevance[:k]) if y > 0), 0.0)


def average_precision(relevance, k):
    hits = [p for p, y in enumerate(relevance[:k]) if y > 0]
    precisions = [(1 + found) / (1 + p) for found, p in enumerate(hits)]
    every = sum(y > 0 for y in relevance)
    return sum(precisions) / (every if k is None else min(every, k))


def precision(relevance, k):
    return sum(y > 0 for y in relevance[:k]) / (len(relevance) if k is None else k)


def recall(relevance, k):
    return sum(y > 0 for y in relevance[:k]) / sum(y > 0 for y in relevance)


def hit_rate(relevance, k):
    return float(any(y > 0 for y in relevance[:k]))

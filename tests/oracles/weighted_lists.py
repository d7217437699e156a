"""Ranking losses of one list whose elements have weights, element by element and pair by pair."""

import math

import numpy as np
from scipy import stats

from tests.oracles.ranking import _best, _sigmoid


def pairwise(x, y, w, kind="logistic"):
    total = mass = 0.0
    for i in range(len(x)):
        for j in range(len(x)):
            if y[i] > y[j]:
                u = x[i] - x[j]
                cost = math.log(1 + math.exp(-u)) if kind == "logistic" else max(0.0, 1 - u)
                total, mass = total + w[i] * w[j] * cost, mass + w[i] * w[j]
    return total / mass


def list_net(x, y, w, proportional):
    z = sum(a * math.exp(s) for s, a in zip(x, w, strict=True))
    wanted = [a * (r if proportional else math.exp(r)) for r, a in zip(y, w, strict=True)]
    return -sum(a * math.log(math.exp(s) / z) for s, a in zip(x, wanted, strict=True)) / sum(wanted)


def partial_likelihood(x, y, w, ties):
    """Cox's, with weights of cases: Efron's share of a tie has its mean weight."""
    loss = 0.0
    kept = [i for i in range(len(x)) if w[i] > 0]
    for grade in sorted({y[i] for i in kept}, reverse=True)[:-1]:
        group = [i for i in kept if y[i] == grade]
        risk = sum(w[i] * math.exp(x[i]) for i in kept if y[i] <= grade)
        own = sum(w[i] * math.exp(x[i]) for i in group)
        d, mean = len(group), sum(w[i] for i in group) / len(group)
        for step in range(d):
            loss += mean * math.log(risk - (step / d * own if ties == "efron" else 0.0))
        loss -= sum(w[i] * x[i] for i in group)
    return loss


def _rank(x, w, i, among=None):
    """Where it stands, if everything is there as often as its weight says."""
    among = range(len(x)) if among is None else among
    return 0.5 + sum(w[j] * _sigmoid(x[j] - x[i]) for j in among)


def smooth_ap(x, y, w):
    relevant = [i for i in range(len(x)) if y[i] > 0]
    found = sum(w[i] * _rank(x, w, i, relevant) / _rank(x, w, i) for i in relevant)
    return found / sum(w[i] for i in relevant)


def smooth_recall(x, y, w, k):
    relevant = [i for i in range(len(x)) if y[i] > 0]
    found = sum(w[i] * _sigmoid(k - _rank(x, w, i)) for i in relevant)
    return found / sum(w[i] for i in relevant)


def approx_ndcg(x, y, w):
    gains = [a * (2**r - 1) for r, a in zip(y, w, strict=True)]
    ones = [1.0] * len(x)
    found = sum(g / math.log2(1 + _rank(x, ones, i)) for i, g in enumerate(gains))
    return found / _best(gains)


def lambda_rank(x, y, w):
    """What the exchange of two places changes in the weighted NDCG."""
    gains = [a * (2**r - 1) for r, a in zip(y, w, strict=True)]
    place = stats.rankdata([-s for s in x])
    loss = 0.0
    for i in range(len(x)):
        for j in range(len(x)):
            if gains[i] > gains[j]:
                swap = abs(1 / math.log2(1 + place[i]) - 1 / math.log2(1 + place[j]))
                loss -= (gains[i] - gains[j]) * swap * math.log2(_sigmoid(x[i] - x[j]))
    return loss / _best(gains)


# ---- hard: what the smooth metrics become -------------------------------------------------------


def _order(x):
    return sorted(range(len(x)), key=lambda i: -x[i])


def ndcg(x, y, w, k=None):
    gains = [a * r for r, a in zip(y, w, strict=True)]
    found = sum(gains[i] / math.log2(2 + p) for p, i in enumerate(_order(x)[:k]))
    return found / _best(gains, k)


def mrr(x, y, w):
    found = [w[i] / (1 + p) for p, i in enumerate(_order(x)) if y[i] > 0]
    return max(found) / max(a for a, r in zip(w, y, strict=True) if r > 0)


def precision(x, y, w, k):
    top = _order(x)[:k]
    mass = sum(w[i] for i in top) + k - len(top)
    return sum(w[i] for i in top if y[i] > 0) / mass


def recall(x, y, w, k):
    top = _order(x)[:k]
    every = sum(a for a, r in zip(w, y, strict=True) if r > 0)
    return sum(w[i] for i in top if y[i] > 0) / every


def spearman(x, y, w):
    ranks = stats.rankdata(x), stats.rankdata(y)
    covariance = np.cov(*ranks, aweights=w)
    return covariance[0, 1] / math.sqrt(covariance[0, 0] * covariance[1, 1])

"""Entropic transport as in the paper: a cost matrix, two marginals; Sinkhorn's iterations."""

import math

import numpy as np
import torch


def problem(scores, k, anchors=None):
    """Costs (rows, n, m), and the marginals of Xie et al. 2020, appendix B; n anchors if k = n."""
    n = scores.shape[-1]
    anchors = torch.arange(min(k + 1, n), dtype=scores.dtype) if anchors is None else anchors
    cost = (scores.unsqueeze(-1) - anchors) ** 2
    nu = torch.full_like(anchors, 1 / n)
    nu[-1] = 1 - (len(anchors) - 1) / n
    return cost, torch.full_like(scores, 1 / n), nu


def sinkhorn(scores, k, epsilon, iterations, zeta=None, anchors=None):
    """Γ (rows, n, m) after that many iterations in the log domain, from potentials ζ of anchors."""
    cost, mu, nu = problem(scores, k, anchors)
    zeta = torch.zeros_like(cost[:, 0]) if zeta is None else zeta
    for _ in range(iterations):
        xi = epsilon * (mu.log() - torch.logsumexp((zeta.unsqueeze(1) - cost) / epsilon, 2))
        zeta = epsilon * (nu.log() - torch.logsumexp((xi.unsqueeze(2) - cost) / epsilon, 1))
    xi = epsilon * (mu.log() - torch.logsumexp((zeta.unsqueeze(1) - cost) / epsilon, 2))
    return torch.exp((xi.unsqueeze(2) + zeta.unsqueeze(1) - cost) / epsilon)


def sinkhorn_extended(scores, thresholds, epsilon, iterations):
    """The same for one row in extended precision, which the cost over a small ε needs.

    From the potentials that put the indifference point of anchors j and j + 1 at thresholds[j].
    """
    scores, thresholds = (np.asarray(v, dtype=np.longdouble) for v in (scores, thresholds))
    n, k = len(scores), len(thresholds)
    anchors = np.arange(k + 1, dtype=np.longdouble)
    kernel = -((scores[:, None] - anchors) ** 2) / epsilon
    nu = np.array([1] * k + [n - k], dtype=np.longdouble)
    zeta = (anchors**2 - 2 * np.append(0, np.cumsum(thresholds))) / epsilon
    for _ in range(iterations):
        xi = -_logsumexp(kernel + zeta, 1)
        zeta = np.log(nu) - _logsumexp(kernel + xi[:, None], 0)
    xi = -_logsumexp(kernel + zeta, 1)
    return np.exp(kernel + zeta + xi[:, None]).astype(np.float64)


def _logsumexp(value, axis):
    top = value.max(axis, keepdims=True)
    return np.log(np.exp(value - top).sum(axis)) + top.squeeze(axis)


def hard_top_plan(scores, k):
    """Γ* of the two anchors 0 and 1: the k smallest scores go to 0."""
    n = scores.shape[-1]
    lowest = scores.argsort(-1).argsort(-1) < k
    return torch.stack([lowest, ~lowest], -1).to(scores.dtype) / n


def bias_bound(scores, k, epsilon):
    """Theorem 2: ε (ln n + ln 2)/(n (x_(k+1) - x_(k)))."""
    ordered = scores.sort(-1).values
    gap = ordered[..., k] - ordered[..., k - 1]
    n = scores.shape[-1]
    return epsilon * (math.log(n) + math.log(2)) / (n * gap)

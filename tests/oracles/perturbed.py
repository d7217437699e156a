"""Means of choices of perturbed scores by quadrature over the smallest key that is chosen.

P(the k largest keys are those of the set A, and that of j is the least of them) is

    ∫ f_j(t) Π_{i in A, i ≠ j} (1 - F_i(t)) Π_{i not in A} F_i(t) dt

with the laws of the keys; everything else is a sum over sets, or over orders for places. All of it
is differentiable by autograd.
"""

from itertools import combinations, pairwise

import torch

_NORMAL = torch.distributions.Normal(0.0, 1.0)
_SPAN = {"normal": (-12.0, 12.0), "gumbel": (-6.0, 45.0)}


def _cdf(noise, z):
    if noise == "normal":
        return 0.5 * torch.special.erfc(-z / 2**0.5)
    return torch.exp(-torch.exp(-z))


def _pdf(noise, z):
    if noise == "normal":
        return torch.exp(_NORMAL.log_prob(z))
    return torch.exp(-z - torch.exp(-z))


def sets(x, k, sigma, noise):
    """The probability of every set of k positions, as a dict."""
    n = x.shape[-1]
    low, high = _SPAN[noise]
    sigma = torch.as_tensor(sigma, dtype=x.dtype)
    start = (x.min() + low * sigma).detach()
    stop = (x.max() + high * sigma).detach()
    t = torch.linspace(0, 1, 40_001, dtype=x.dtype) * (stop - start) + start
    z = (t - x.unsqueeze(-1)) / sigma
    below, density = _cdf(noise, z), _pdf(noise, z) / sigma
    found = {}
    for chosen in combinations(range(n), k):
        total = torch.zeros((), dtype=x.dtype)
        for last in chosen:
            product = density[last]
            for i in range(n):
                if i != last:
                    product = product * ((1 - below[i]) if i in chosen else below[i])
            total = total + torch.trapezoid(product, t)
        found[chosen] = total
    return found


def topk(x, k, sigma, noise):
    """P(i is among the k largest)."""
    chances = sets(x, k, sigma, noise)
    return torch.stack(
        [sum(chance for chosen, chance in chances.items() if i in chosen) for i in range(len(x))]
    )


def places(x, k, sigma, noise):
    """P(i is the m-th largest): what the m largest have that the m - 1 largest have not."""
    masses = [topk(x, m, sigma, noise) for m in range(1, k + 1)]
    return torch.stack([masses[0], *(b - a for a, b in pairwise(masses))])


def positions(x, k, sigma, noise):
    """P(i is the m-th, from the left, of the k largest)."""
    rows = [[torch.zeros((), dtype=x.dtype)] * len(x) for _ in range(k)]
    for chosen, chance in sets(x, k, sigma, noise).items():
        for m, i in enumerate(chosen):
            rows[m][i] = rows[m][i] + chance
    return torch.stack([torch.stack(row) for row in rows])

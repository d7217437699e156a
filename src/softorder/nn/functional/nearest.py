"""The k nearest templates, exactly, with matrix products doing most of the work.

With q and t relative to a common centre, |q - t|² = |q|² + |t|² - 2qt, which costs one matrix
product but cancels: its rounding error is at most γ(|q| + |t|)², γ = (features + 10) ε. So

    lower(q, t) = |q|² + |t|² - 2qt - γ(|q| + |t|)² ≤ |q - t|².

A shortlist holds the templates with the least lower bounds; their distances are then computed from
the differences. If the k-th of these is below the largest bound on the list, no template outside
can be nearer, and the answer is proven. Where it is not (ties, points far from the centre), all the
distances of that query are computed from the differences.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Distances = Callable[[Tensor, Tensor], Tensor]  #: a table (Q, T), computed from the differences
_SPARE = 16  #: templates on the shortlist besides the k


def nearest(
    queries: Tensor, templates: Tensor, k: int, distances: Distances, block: int
) -> tuple[Tensor, Tensor]:
    """(Q, k) euclidean distances and indices, the nearest first."""
    listed = k + _SPARE
    # A lowered precision of matrix products has another error than the one above.
    if len(templates) < 4 * listed or torch.get_float32_matmul_precision() != "highest":
        return scan(queries, templates, k, distances, block)
    names, least = _shortlist(queries.detach(), templates.detach(), listed, block)
    lengths = _to_listed(queries, templates, names, distances, block)
    best, chosen = lengths.topk(k, largest=False)
    indices = names.gather(1, chosen)
    rounding = 1 + (queries.shape[1] + 10) * torch.finfo(best.dtype).eps
    open_ = ~(least > (rounding * best.detach()[:, -1]).square())  # also if either is NaN
    if open_.any():
        rows = (open_.nonzero().squeeze(1),)
        again, names = scan(queries[open_], templates, k, distances, block)
        best, indices = best.index_put(rows, again), indices.index_put(rows, names)
    return best, indices


def scan(
    queries: Tensor, templates: Tensor, k: int, distances: Distances, block: int
) -> tuple[Tensor, Tensor]:
    """All the distances, a block of templates at a time."""
    best = queries.new_empty(len(queries), 0)
    indices = _no_names(queries)
    for start in range(0, len(templates), block):
        table = distances(queries, templates[start : start + block])
        best, indices = _merge(best.to(table.dtype), indices, table, start, k)
    return best, indices


def _shortlist(
    queries: Tensor, templates: Tensor, listed: int, block: int
) -> tuple[Tensor, Tensor]:
    """Indices (Q, listed) of the least lower bounds, and the largest of these of every query."""
    dtype = torch.float64 if torch.float64 in (queries.dtype, templates.dtype) else torch.float32
    gamma = (queries.shape[1] + 10) * torch.finfo(dtype).eps
    centre = templates.to(dtype).mean(0)
    q = queries.to(dtype) - centre
    q_norm = q.norm(dim=1, keepdim=True)
    left = torch.cat([2 * q, 2 * gamma * q_norm], 1)
    bounds, indices = q.new_empty(len(q), 0), _no_names(queries)
    for start in range(0, len(templates), block):
        t = templates[start : start + block].to(dtype) - centre
        t_norm = t.norm(dim=1, keepdim=True)
        right = torch.cat([t, t_norm], 1)
        table = torch.addmm((1 - gamma) * t_norm.square().T, left, right.T, alpha=-1)
        bounds, indices = _merge(bounds, indices, table, start, listed)
    return indices, bounds[:, -1] + (1 - gamma) * q_norm.squeeze(1).square()


def _merge(
    best: Tensor, indices: Tensor, table: Tensor, start: int, k: int
) -> tuple[Tensor, Tensor]:
    """The k least of what was found before and a table of more, ascending.

    Those of the table are looked for first: what is put beside others, and copied, is small.
    """
    least, chosen = table.topk(min(k, table.shape[1]), largest=False)
    values = torch.cat([best, least], 1)
    names = torch.cat([indices, chosen + start], 1)
    least, chosen = values.topk(min(k, values.shape[1]), largest=False)
    return least, names.gather(1, chosen)


def _to_listed(
    queries: Tensor, templates: Tensor, names: Tensor, distances: Distances, block: int
) -> Tensor:
    """Distances (Q, listed), from the differences; block² features are gathered at a time."""
    rows = max(1, block**2 // (names.shape[1] * queries.shape[1]))
    parts = zip(queries.split(rows), names.split(rows), strict=True)
    return torch.cat([distances(q.unsqueeze(1), templates[n]).squeeze(1) for q, n in parts])


def _no_names(queries: Tensor) -> Tensor:
    return torch.empty(len(queries), 0, dtype=torch.long, device=queries.device)

"""Nearest neighbours, softly to learn from them and exactly to use them."""

from __future__ import annotations

import torch
from torch import Tensor

from softorder import _check
from softorder._auto import Temperature
from softorder.nn.functional.nearest import nearest
from softorder.ops import soft_topk

DISTANCES = ("euclidean", "squared")


def soft_neighbours(
    queries: Tensor,
    templates: Tensor,
    k: float | Tensor,
    *,
    method: str | object = "laplace",
    temperature: Temperature = 1.0,
    distance: str = "euclidean",
    mask: Tensor | None = None,
) -> Tensor:
    """How much each template is one of the k nearest to each query: `so.soft_topk` of -distance.

    Args:
        queries: (Q, features).
        templates: (T, features).
        k: how many neighbours, as in `so.soft_topk`.
        method: as in `so.soft_topk`.
        temperature: as in `so.soft_topk`, in units of the distance.
        distance: "euclidean", or "squared" for its square.
        mask: boolean, broadcasts to (Q, T); False takes no part.

    Returns:
        (Q, T) numbers in [0, 1]; rows sum to k.

    Paper: SOFT top-k (Xie et al. 2020), appendix C.

    >>> import torch, softorder as so
    >>> templates = torch.tensor([[0.0], [1.0], [5.0]])
    >>> weights = so.nn.functional.soft_neighbours(
    ...     torch.tensor([[0.2], [4.0]]), templates, 1, temperature=0.05
    ... )
    >>> weights.numpy().round(2)
    array([[1., 0., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    scores = -distances(queries, templates, distance)
    return soft_topk(scores, k, method=method, temperature=temperature, mask=mask)


def nearest_neighbours(
    queries: Tensor,
    templates: Tensor,
    k: int,
    *,
    distance: str = "euclidean",
    block: int = 4096,
) -> tuple[Tensor, Tensor]:
    """Distances and indices of the k nearest templates, the nearest first.

    Exact: every distance is the root of a sum of squared differences, without the cancellation of
    |q|² - 2qt + |t|²; that formula only says, by bounds on its error, which templates cannot be
    among the nearest. At most block × block distances exist at a time.

    Args:
        queries: (Q, features).
        templates: (T, features).
        k: how many, at most T.
        distance: "euclidean", or "squared" for its square.
        block: how many queries meet how many templates at once.

    Returns:
        (Q, k) distances, and (Q, k) indices into templates.

    >>> import torch, softorder as so
    >>> templates = torch.tensor([[0.0], [1.0], [5.0]])
    >>> so.nn.functional.nearest_neighbours(torch.tensor([[4.0]]), templates, 2)
    (tensor([[1., 3.]]), tensor([[2, 1]]))
    """
    _check.count("k", k, least=1)
    _check.count("block", block, least=1)
    _check.neighbours.same_features(queries, templates)
    _check.neighbours.enough(k, len(templates))
    _check.choice("distance", distance, DISTANCES)
    parts = [nearest(part, templates, k, _euclidean, block) for part in queries.split(block)]
    if not parts:
        return queries.new_empty(0, k), torch.empty(0, k, dtype=torch.long, device=queries.device)
    found, indices = (torch.cat(part) for part in zip(*parts, strict=True))
    return found.square() if distance == "squared" else found, indices


def distances(queries: Tensor, templates: Tensor, distance: str) -> Tensor:
    """The table (Q, T) of distances."""
    _check.neighbours.same_features(queries, templates)
    _check.choice("distance", distance, DISTANCES)
    table = _euclidean(queries, templates)
    return table.square() if distance == "squared" else table


def _euclidean(queries: Tensor, templates: Tensor) -> Tensor:
    """From the differences. cdist has its own autocast rule, and no half precision on the CPU."""
    dtype = torch.promote_types(queries.dtype, templates.dtype)
    if dtype != torch.float64:
        dtype = torch.float32
    return torch.cdist(
        queries.to(dtype), templates.to(dtype), compute_mode="donot_use_mm_for_euclid_dist"
    )

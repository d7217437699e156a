from __future__ import annotations

from softorder.nn._ordering import Ordering
from softorder.ops import soft_rank


class SoftRank(Ordering):
    """`so.soft_rank` as a layer.

    >>> import torch, softorder as so
    >>> layer = so.nn.SoftRank(temperature=0.1)
    >>> layer
    SoftRank(method='laplace', temperature=0.1, dim=-1, descending=False)
    >>> layer(torch.tensor([3.0, 1.0, 2.0]))
    tensor([3.0000, 1.0000, 2.0000])
    """

    operator = staticmethod(soft_rank)

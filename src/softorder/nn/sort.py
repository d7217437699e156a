from __future__ import annotations

from softorder.nn._ordering import Ordering
from softorder.ops import soft_sort


class SoftSort(Ordering):
    """`so.soft_sort` as a layer.

    >>> import torch, softorder as so
    >>> so.nn.SoftSort(temperature=0.01, descending=True)(torch.tensor([3.0, 1.0, 2.0]))
    tensor([3., 2., 1.])
    """

    operator = staticmethod(soft_sort)

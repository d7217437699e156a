from __future__ import annotations

from typing import Any

from softorder import _check
from softorder.nn._ordering import Ordering
from softorder.ops import soft_permutation


class SoftPermutation(Ordering):
    """`so.soft_permutation` as a layer: the options of `so.nn.SoftRank`, and k.

    >>> import torch, softorder as so
    >>> layer = so.nn.SoftPermutation(k=2, temperature=0.01, descending=True)
    >>> layer(torch.tensor([3.0, 1.0, 2.0])).numpy().round(3)
    array([[1., 0., 0.],
           [0., 0., 1.]], dtype=float32)
    """

    operator = staticmethod(soft_permutation)
    options = ("k", *Ordering.options)

    def __init__(self, *, k: int | None = None, **options: Any) -> None:
        super().__init__(**options)
        _check.whole_k(k)
        self.k = k

"""The operators as layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from torch import Tensor

from softorder import _check
from softorder.nn._tempered import Tempered
from softorder.ops import (
    log_soft_topk,
    soft_permutation,
    soft_quantile,
    soft_rank,
    soft_sort,
    soft_topk,
)

_Operator = Callable[..., Tensor]


class _Layer(Tempered):
    """An operator with its options, which are attributes of the layer."""

    options: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        operator: _Operator,
        method: str | object,
        temperature: float | Tensor,
        learnable_temperature: bool,
    ) -> None:
        super().__init__(operator.__name__, method, temperature, learnable_temperature)
        self._operator = operator

    def forward(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        options = {name: getattr(self, name) for name in self.options}
        return self._operator(scores, mask=mask, **options)

    def extra_repr(self) -> str:
        return self.describe(*self.options)


class SoftTopK(_Layer):
    """`so.soft_topk`, or `so.log_soft_topk` with log=True, as a layer.

    A learnable temperature is stored as its logarithm, the parameter `log_temperature`, so that no
    step of an optimiser can make it negative.

    >>> import torch, softorder as so
    >>> layer = so.nn.SoftTopK(2, temperature=0.5, learnable_temperature=True)
    >>> layer
    SoftTopK(k=2, method='laplace', temperature=0.5, ...)
    >>> layer(torch.tensor([3.0, 1.0, 2.0])).sum()
    tensor(2., grad_fn=<SumBackward0>)
    """

    options = ("k", "method", "temperature", "dim", "largest")
    numbers = ("k", *_Layer.numbers)

    def __init__(
        self,
        k: float | Tensor,
        *,
        method: str | object = "laplace",
        temperature: float | Tensor = 1.0,
        dim: int | tuple[int, ...] | None = -1,
        largest: bool = True,
        learnable_temperature: bool = False,
        log: bool = False,
    ) -> None:
        _check.flag("log", log)
        operator = log_soft_topk if log else soft_topk
        super().__init__(operator, method, temperature, learnable_temperature)
        _check.k_alone(k)
        _check.flag("largest", largest)
        self.k = k
        self.dim = dim
        self.largest = largest

    @property
    def log(self) -> bool:
        return self._operator is log_soft_topk

    def extra_repr(self) -> str:
        return self.describe(*self.options, log=self.log)


class _Ordering(_Layer):
    """Of all scores: one constructor for rank, sort and permutation."""

    options: ClassVar[tuple[str, ...]] = ("method", "temperature", "dim", "descending")
    operator: ClassVar[_Operator]  #: a staticmethod

    def __init__(
        self,
        *,
        method: str | object = "laplace",
        temperature: float | Tensor = 1.0,
        dim: int | tuple[int, ...] | None = -1,
        descending: bool = False,
        learnable_temperature: bool = False,
    ) -> None:
        super().__init__(self.operator, method, temperature, learnable_temperature)
        _check.flag("descending", descending)
        self.dim = dim
        self.descending = descending


class SoftRank(_Ordering):
    """`so.soft_rank` as a layer.

    >>> import torch, softorder as so
    >>> layer = so.nn.SoftRank(temperature=0.1)
    >>> layer
    SoftRank(method='laplace', temperature=0.1, dim=-1, descending=False)
    >>> layer(torch.tensor([3.0, 1.0, 2.0]))
    tensor([3.0000, 1.0000, 2.0000])
    """

    operator = staticmethod(soft_rank)


class SoftSort(_Ordering):
    """`so.soft_sort` as a layer.

    >>> import torch, softorder as so
    >>> so.nn.SoftSort(temperature=0.01, descending=True)(torch.tensor([3.0, 1.0, 2.0]))
    tensor([3., 2., 1.])
    """

    operator = staticmethod(soft_sort)


class SoftPermutation(_Ordering):
    """`so.soft_permutation` as a layer: the options of `so.nn.SoftRank`, and k.

    >>> import torch, softorder as so
    >>> layer = so.nn.SoftPermutation(k=2, temperature=0.01, descending=True)
    >>> layer(torch.tensor([3.0, 1.0, 2.0])).numpy().round(3)
    array([[1., 0., 0.],
           [0., 0., 1.]], dtype=float32)
    """

    operator = staticmethod(soft_permutation)
    options = ("k", *_Ordering.options)
    numbers = ("k", *_Ordering.numbers)

    def __init__(self, *, k: int | None = None, **options: Any) -> None:
        super().__init__(**options)
        _check.whole_k(k)
        self.k = k


class SoftQuantile(_Layer):
    """`so.soft_quantile` as a layer.

    >>> import torch, softorder as so
    >>> so.nn.SoftQuantile(0.5, temperature=0.01)(torch.tensor([3.0, 1.0, 2.0]))
    tensor(2.)
    """

    options = ("q", "method", "temperature", "dim", "keepdim")
    numbers = ("q", *_Layer.numbers)

    def __init__(
        self,
        q: float | Tensor,
        *,
        method: str | object = "laplace",
        temperature: float | Tensor = 1.0,
        dim: int | tuple[int, ...] | None = -1,
        keepdim: bool = False,
        learnable_temperature: bool = False,
    ) -> None:
        super().__init__(soft_quantile, method, temperature, learnable_temperature)
        _check.q_alone(q)
        _check.flag("keepdim", keepdim)
        self.q = q
        self.dim = dim
        self.keepdim = keepdim

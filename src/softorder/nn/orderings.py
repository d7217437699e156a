"""The operators as layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from torch import Tensor

from softorder import _check
from softorder import hard as limits
from softorder._auto import Temperature
from softorder.nn._counted import Counted
from softorder.nn._tempered import Tempered
from softorder.ops import (
    log_soft_topk,
    soft_permutation,
    soft_quantile,
    soft_rank,
    soft_sort,
    soft_topk,
)
from softorder.ops._forms import number_of_scores
from softorder.ops._interpolation import INTERPOLATIONS

_Operator = Callable[..., Tensor]
_SOFT = ("method", "temperature", "within")  # options that the hard operator does without


class _Layer(Tempered):
    """An operator with its options, which are attributes of the layer.

    Every such layer has, beside the arguments of its operator:

    Args:
        learnable_temperature: make it a parameter, stored as its logarithm.
        hard: the value of the hard operator with the gradient of the soft one, as in the operator.
        hard_inference: in eval mode call the hard operator instead: soft in training, exact in use.
    """

    options: ClassVar[tuple[str, ...]]
    limit: ClassVar[_Operator]  #: a staticmethod: the hard operator

    def __init__(
        self,
        operator: _Operator,
        method: str | object,
        temperature: Temperature,
        learnable_temperature: bool,
        hard: bool,
        hard_inference: bool,
    ) -> None:
        super().__init__(operator.__name__, method, temperature, learnable_temperature)
        _check.flag("hard", hard)
        _check.flag("hard_inference", hard_inference)
        self._operator = operator
        self.hard = hard
        self.hard_inference = hard_inference

    def forward(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        return self._called(scores, mask, self._options(scores))

    def _called(self, scores: Tensor, mask: Tensor | None, options: dict[str, Any]) -> Tensor:
        if self.hard_inference and not self.training:
            return self._limit(scores, mask, {n: v for n, v in options.items() if n not in _SOFT})
        if self.hard:
            options["hard"] = True
        return self._operator(scores, mask=mask, **options)

    def _options(self, scores: Tensor) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.options}

    def _limit(self, scores: Tensor, mask: Tensor | None, options: dict[str, Any]) -> Tensor:
        return self.limit(scores, mask=mask, **options)

    def extra_repr(self) -> str:
        return self.describe(*self.options, **self._switches())

    def _switches(self) -> dict[str, bool]:
        return {"hard": self.hard, "hard_inference": self.hard_inference}


class SoftTopK(Counted, _Layer):
    """`so.soft_topk`, or `so.log_soft_topk` with log=True, as a layer.

    A learnable temperature is stored as its logarithm, the parameter `log_temperature`, so that no
    step of an optimiser can make it negative. A learnable k of n scores is n σ(θ + logit(k₀/n)),
    with the k₀ that was given and the parameter θ = `logit_k`, 0 at the start: it begins at k₀,
    stays between 0 and n, and `layer.k_now(n)` tells it. temperature="auto" is found in the first
    call, one number for all rows, and kept.

    Args:
        k: as in `so.soft_topk`; where it is learnable, what it starts from.
        method: as in `so.soft_topk`.
        temperature: as in `so.soft_topk`.
        dim: as in `so.soft_topk`.
        largest: as in `so.soft_topk`.
        learnable_temperature: make it a parameter.
        learnable_k: make it a parameter.
        log: the logarithm of p.
        hard: `so.hard.topk` with the gradient of p (not with log).
        hard_inference: in eval mode `so.hard.topk`, or its logarithm: 0 and -inf.

    >>> import torch, softorder as so
    >>> layer = so.nn.SoftTopK(2, temperature=0.5, learnable_temperature=True)
    >>> layer
    SoftTopK(k=2, method='laplace', temperature=0.5, ...)
    >>> layer(torch.tensor([3.0, 1.0, 2.0])).sum()
    tensor(2., grad_fn=<SumBackward0>)
    >>> layer = so.nn.SoftTopK(2, temperature="auto", learnable_k=True, hard_inference=True)
    >>> _ = layer(torch.tensor([3.0, 1.0, 2.0, 0.5]))
    >>> round(layer.temperature.item(), 3), round(layer.k_now(4).item(), 3)
    (0.293, 2.0)
    >>> layer.eval()(torch.tensor([3.0, 1.0, 2.0, 0.5])).detach()
    tensor([1., 0., 1., 0.])
    """

    limit = staticmethod(limits.topk)
    options = ("k", "method", "temperature", "dim", "largest")
    numbers = ("k", *_Layer.numbers)

    def __init__(
        self,
        k: float | Tensor,
        *,
        method: str | object = "laplace",
        temperature: Temperature = 1.0,
        dim: int | tuple[int, ...] | None = -1,
        largest: bool = True,
        learnable_temperature: bool = False,
        learnable_k: bool = False,
        log: bool = False,
        hard: bool = False,
        hard_inference: bool = False,
    ) -> None:
        _check.flag("log", log)
        if log:
            _check.off("hard", hard, "with log=True")
        operator = log_soft_topk if log else soft_topk
        super().__init__(operator, method, temperature, learnable_temperature, hard, hard_inference)
        _check.k_alone(k)
        _check.flag("largest", largest)
        self.k = k
        self.dim = dim
        self.largest = largest
        self._learn_k(learnable_k)

    def _options(self, scores: Tensor) -> dict[str, Any]:
        options = super()._options(scores)
        if self.logit_k is not None:
            options["k"] = self.k_now(number_of_scores(scores, self.dim))
        return options

    def _limit(self, scores: Tensor, mask: Tensor | None, options: dict[str, Any]) -> Tensor:
        chosen = super()._limit(scores, mask, options)
        return chosen.log() if self.log else chosen

    @property
    def log(self) -> bool:
        return self._operator is log_soft_topk

    def extra_repr(self) -> str:
        learnable = {"learnable_k": self.logit_k is not None, "log": self.log}
        return self.describe(*self.options, **learnable, **self._switches())


class _Ordering(_Layer):
    """Of all scores: one constructor for rank, sort and permutation."""

    options: ClassVar[tuple[str, ...]] = ("method", "temperature", "dim", "descending")
    operator: ClassVar[_Operator]  #: a staticmethod

    def __init__(
        self,
        *,
        method: str | object = "laplace",
        temperature: Temperature = 1.0,
        dim: int | tuple[int, ...] | None = -1,
        descending: bool = False,
        learnable_temperature: bool = False,
        hard: bool = False,
        hard_inference: bool = False,
    ) -> None:
        super().__init__(
            self.operator, method, temperature, learnable_temperature, hard, hard_inference
        )
        _check.flag("descending", descending)
        self.dim = dim
        self.descending = descending


class SoftRank(_Ordering):
    """`so.soft_rank` as a layer.

    Args:
        method: as in `so.soft_rank`.
        temperature: as in `so.soft_rank`; "auto" is found in the first call and kept.
        dim: as in `so.soft_rank`.
        descending: as in `so.soft_rank`.
        learnable_temperature: make it a parameter, stored as its logarithm.
        hard: the value of the hard operator with the gradient of the soft one.
        hard_inference: in eval mode the hard operator, `so.hard.rank`.

    >>> import torch, softorder as so
    >>> layer = so.nn.SoftRank(temperature=0.1)
    >>> layer
    SoftRank(method='laplace', temperature=0.1, dim=-1, descending=False)
    >>> layer(torch.tensor([3.0, 1.0, 2.0]))
    tensor([3.0000, 1.0000, 2.0000])
    """

    operator = staticmethod(soft_rank)
    limit = staticmethod(limits.rank)


class SoftSort(_Ordering):
    """`so.soft_sort` as a layer: the options of `so.nn.SoftRank`, and within.

    Args:
        within: True for values in the range of the scores, as in `so.soft_sort`.
        **options: those of `so.nn.SoftRank`.

    >>> import torch, softorder as so
    >>> so.nn.SoftSort(temperature=0.01, descending=True)(torch.tensor([3.0, 1.0, 2.0]))
    tensor([3., 2., 1.])
    >>> so.nn.SoftSort(within=True)(torch.zeros(3))
    tensor([0., 0., 0.])
    """

    operator = staticmethod(soft_sort)
    limit = staticmethod(limits.sort)
    options = (*_Ordering.options, "within")

    def __init__(self, *, within: bool = False, **options: Any) -> None:
        super().__init__(**options)
        _check.flag("within", within)
        self.within = within

    def extra_repr(self) -> str:
        return self.describe(*_Ordering.options, within=self.within, **self._switches())


class SoftPermutation(_Ordering):
    """`so.soft_permutation` as a layer: the options of `so.nn.SoftRank`, and k.

    >>> import torch, softorder as so
    >>> layer = so.nn.SoftPermutation(k=2, temperature=0.01, descending=True)
    >>> layer(torch.tensor([3.0, 1.0, 2.0])).numpy().round(3)
    array([[1., 0., 0.],
           [0., 0., 1.]], dtype=float32)
    """

    operator = staticmethod(soft_permutation)
    limit = staticmethod(limits.permutation)
    options = ("k", *_Ordering.options)
    numbers = ("k", *_Ordering.numbers)

    def __init__(self, *, k: int | None = None, **options: Any) -> None:
        super().__init__(**options)
        _check.whole_k(k)
        self.k = k


class SoftQuantile(_Layer):
    """`so.soft_quantile` as a layer: its arguments, and the switches of `so.nn.SoftRank`.

    Weights of the scores come with the call, `layer(scores, mask, weights)`.

    Args:
        q: a number, a list of them or a tensor, as in `so.soft_quantile`.
        method: as in `so.soft_quantile`.
        temperature: as in `so.soft_quantile`; "auto" is found in the first call and kept.
        dim: as in `so.soft_quantile`.
        keepdim: as in `so.soft_quantile`.
        interpolation: as in `so.soft_quantile`.
        within: as in `so.soft_quantile`.
        learnable_temperature: make it a parameter, stored as its logarithm.
        hard: the value of the hard operator with the gradient of the soft one.
        hard_inference: in eval mode the hard operator, `so.hard.quantile`.

    >>> import torch, softorder as so
    >>> so.nn.SoftQuantile(0.5, temperature=0.01)(torch.tensor([3.0, 1.0, 2.0]))
    tensor(2.)
    >>> layer = so.nn.SoftQuantile([0.0, 0.25], temperature=1e-4, interpolation="linear")
    >>> layer(torch.tensor([3.0, 1.0, 2.0]))
    tensor([1.0000, 1.5000])
    """

    limit = staticmethod(limits.quantile)
    options = ("q", "method", "temperature", "dim", "keepdim", "interpolation", "within")
    numbers = ("q", *_Layer.numbers)

    def __init__(
        self,
        q: float | Tensor | Sequence[float],
        *,
        method: str | object = "laplace",
        temperature: Temperature = 1.0,
        dim: int | tuple[int, ...] | None = -1,
        keepdim: bool = False,
        interpolation: str = "inverse",
        within: bool = False,
        learnable_temperature: bool = False,
        hard: bool = False,
        hard_inference: bool = False,
    ) -> None:
        super().__init__(
            soft_quantile, method, temperature, learnable_temperature, hard, hard_inference
        )
        _check.choice("interpolation", interpolation, INTERPOLATIONS)
        _check.quantiles.within(within, interpolation)
        q = _check.quantiles.as_tensor(q)
        _check.q_alone(q)
        _check.flag("keepdim", keepdim)
        self.q = q
        self.dim = dim
        self.keepdim = keepdim
        self.interpolation = interpolation
        self.within = within

    def forward(
        self, scores: Tensor, mask: Tensor | None = None, weights: Tensor | None = None
    ) -> Tensor:
        options = self._options(scores)
        return self._called(scores, mask, options | {"weights": weights})

    def extra_repr(self) -> str:
        return self.describe(*self.options[:-1], within=self.within, **self._switches())

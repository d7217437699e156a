"""A temperature that is asked for by its effect."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from softorder import _check


@dataclass(frozen=True)
class Auto:
    """A temperature that the scores decide: the one at which a stated share stays undecided.

    `temperature="auto"` is `so.Auto()`. An operator finds the temperature anew in every call, by
    `so.calibrate_temperature` of the scores that it got; no gradient passes through it. Twice the
    scores have twice the temperature, so that their scale no longer matters. A layer finds one
    number in its first call, and keeps it as a buffer, in its state dict.

    It costs some 25 soft operators of the same rows, in float64 and without a gradient, and a hard
    one. In a layer, once.

    Args:
        softness: between 0 (hard) and 1 (nothing decided), as in `so.calibrate_temperature`: of
            the choice of k, or of the ranks where there is no k.
        shared: False gives every row a temperature of its own, so that rows do not know of each
            other; True one number to all rows of a call, whose mean softness is as stated.

    >>> import torch, softorder as so
    >>> scores = torch.randn(2, 1000, generator=torch.Generator().manual_seed(0))
    >>> p = so.soft_topk(scores, 10, temperature="auto")
    >>> outside = 10 - p.topk(10).values.sum(-1)
    >>> outside.numpy().round(2)  # a tenth of 10, where temperature=1.0 leaves 9.1 of it
    array([0.99, 0.99], dtype=float32)
    >>> wide = so.soft_topk(100 * scores, 10, temperature=so.Auto(softness=0.1))
    >>> torch.allclose(p, wide, atol=1e-4)
    True
    """

    softness: float = 0.1
    shared: bool = False

    def __post_init__(self) -> None:
        _check.between("softness", self.softness)
        _check.flag("shared", self.shared)

    def keep(self, found: Tensor) -> float | Tensor:
        """What is told the temperature that was found, and hands it on."""
        return found


Temperature = float | Tensor | str | Auto  #: what operators take for one


def wanted(temperature: object) -> bool:
    """Whether the scores are to decide."""
    return isinstance(temperature, (str, Auto))


def settings(temperature: object) -> Auto:
    """What was asked for."""
    if isinstance(temperature, str):
        _check.auto(temperature)
        return Auto()
    assert isinstance(temperature, Auto)
    return temperature

"""Newton's steps that are taken back when they went too far."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

_OVERSHOT = 0.5  # of the slope that a step began with: it is taken back


class Trial(NamedTuple):
    """Rows on their way: the trial is base + share · step."""

    base: Tensor
    step: Tensor
    share: Tensor
    slope: Tensor  # of the semi-dual along the step, at the base

    @property
    def z(self) -> Tensor:
        return self.base + self.share * self.step

    def rows(self, which: Tensor) -> Trial:
        return Trial(*(value[which] for value in self))

    @staticmethod
    def at(base: Tensor) -> Trial:
        """Where everything begins."""
        nought = torch.zeros_like(base[:, :1])
        return Trial(base, base, nought, nought)

    @staticmethod
    def plain(base: Tensor, step: Tensor) -> Trial:
        """A step that is never too long."""
        one = torch.ones_like(base[:, :1])
        return Trial(base, step, one, -torch.inf * one)


def next_trial(trial: Trial, residual: Tensor, step: Tensor) -> Trial:
    """This step from the trial; or, when the trial went too far, a shorter one to it.

    The slope at its end tells. Unlike a comparison of objectives it does not suffer from rounding.
    """
    slope, end = ((residual * s).sum(-1, keepdim=True) for s in (step, trial.step))
    overshot = end > -_OVERSHOT * trial.slope
    shorter = (trial.slope / (trial.slope - end)).clamp(0.1, 0.5) * trial.share
    return Trial(
        torch.where(overshot, trial.base, trial.z),
        torch.where(overshot, trial.step, step),
        torch.where(overshot, shorter, 1.0),
        torch.where(overshot, trial.slope, slope),
    )

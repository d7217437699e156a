"""Temperatures that change as training goes on: soft at first, hard in the end."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from softorder import _check
from softorder._auto import Auto
from softorder.nn._numbers import Numbered
from softorder.nn._tempered import Tempered

__all__ = ["Cosine", "Exponential", "Linear", "Schedule", "Scheduler"]


@dataclass(frozen=True)
class Schedule(ABC):
    """A temperature for every step: `schedule(step)` is what an operator takes as one.

    From start at step 0 to end at step `steps`, and end from there on. With softness=True these are
    degrees of softness, between 0 and 1, and the temperature of a step is `so.Auto(softness)`: how
    hard a choice is then does not depend on the scale of the scores, which training changes, too.

    Args:
        start: the first temperature, > 0, or softness, between 0 and 1.
        end: the last one.
        steps: how many steps it takes from one to the other.
        softness: whether start and end are degrees of softness.
    """

    start: float
    end: float
    steps: int
    softness: bool = False

    def __post_init__(self) -> None:
        _check.flag("softness", self.softness)
        for name in ("start", "end"):
            (_check.between if self.softness else _check.positive)(name, getattr(self, name))
        _check.count("steps", self.steps, least=1)

    def __call__(self, step: float) -> float | Auto:
        """The temperature of that step, from 0."""
        _check.at_least("step", step, 0)
        value = self.end if step >= self.steps else self._at(step / self.steps)
        return Auto(value) if self.softness else value

    @abstractmethod
    def _at(self, share: float) -> float:
        """The value after this share of the steps."""


class Linear(Schedule):
    """(1 - s) start + s end, where s is the share of the steps that are done.

    >>> import softorder as so
    >>> schedule = so.schedules.Linear(1.0, 0.2, steps=4)
    >>> [round(schedule(step), 2) for step in range(6)]
    [1.0, 0.8, 0.6, 0.4, 0.2, 0.2]
    """

    def _at(self, share: float) -> float:
        return (1 - share) * self.start + share * self.end


class Cosine(Schedule):
    """end + (start - end) (1 + cos πs)/2: slow at both ends.

    >>> import softorder as so
    >>> schedule = so.schedules.Cosine(1.0, 0.2, steps=4)
    >>> [round(schedule(step), 2) for step in range(5)]
    [1.0, 0.88, 0.6, 0.32, 0.2]
    """

    def _at(self, share: float) -> float:
        return self.end + (self.start - self.end) * (1 + math.cos(math.pi * share)) / 2


class Exponential(Schedule):
    """start^(1-s) end^s: every step takes the same part away. The usual one for a temperature.

    >>> import softorder as so
    >>> schedule = so.schedules.Exponential(1.0, 0.01, steps=4)
    >>> [round(schedule(step), 3) for step in range(5)]
    [1.0, 0.316, 0.1, 0.032, 0.01]
    >>> so.schedules.Exponential(0.5, 0.05, steps=10, softness=True)(10)
    Auto(softness=0.05, shared=False)
    """

    def _at(self, share: float) -> float:
        return self.start ** (1 - share) * self.end**share


class Scheduler:
    """Sets the temperature of layers by a schedule, as torch's schedulers set learning rates.

    The temperature of step 0 is set at once, the next one by every `step()`. A temperature that is
    a tensor is filled in place, so that compiled code sees it without being compiled anew; a number
    is replaced. In softness, a layer finds its temperature in the call that follows each step.

    Args:
        layers: a module, or a list of them: all layers and losses of this library in them, at any
            depth. A learnable temperature cannot be scheduled.
        schedule: a `Schedule`, or any function from steps, from 0, to temperatures.

    >>> import torch, softorder as so
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 8), so.nn.SoftTopK(2))
    >>> scheduler = so.schedules.Scheduler(model, so.schedules.Exponential(1.0, 0.01, steps=100))
    >>> for _ in range(50):
    ...     scheduler.step()  # after optimiser.step()
    >>> round(model[1].temperature, 3), scheduler.state_dict()
    (0.1, {'last_step': 50})
    """

    def __init__(self, layers: nn.Module | Sequence[nn.Module], schedule: Any) -> None:
        _check.schedules.modules(layers)
        roots = [layers] if isinstance(layers, nn.Module) else list(layers)
        _check.schedules.callable_(schedule)
        found = {id(m): m for root in roots for m in root.modules() if _has_temperature(m)}
        self._layers: list[Any] = list(found.values())
        _check.schedules.some(self._layers)
        learnable = [m for m in self._layers if getattr(m, "log_temperature", None) is not None]
        _check.schedules.none_learnable(learnable)
        self.schedule = schedule
        self.last_step = 0
        self._set()

    def step(self) -> None:
        """To the temperature of the next step."""
        self.last_step += 1
        self._set()

    def get_last_temperature(self) -> float | Tensor | Auto:
        """What was set last."""
        return self.schedule(self.last_step)

    def state_dict(self) -> dict[str, int]:
        """Where it is. The schedule itself is an argument, and not part of it."""
        return {"last_step": self.last_step}

    def load_state_dict(self, state_dict: dict[str, int]) -> None:
        """Goes on from there: the layers have the temperature of that step at once."""
        _check.schedules.state(state_dict)
        self.last_step = state_dict["last_step"]
        self._set()

    def _set(self) -> None:
        value = self.schedule(self.last_step)
        for layer in self._layers:
            name = "fixed_temperature" if isinstance(layer, Tempered) else "temperature"
            kept = getattr(layer, name)
            if isinstance(kept, Tensor) and not isinstance(value, Auto) and _settled(layer):
                _check.temperature_alone(value)
                with torch.no_grad():
                    kept.copy_(torch.as_tensor(value))
            else:
                layer.temperature = value


def _has_temperature(module: nn.Module) -> bool:
    return isinstance(module, Tempered) or (
        isinstance(module, Numbered) and "temperature" in module.numbers
    )


def _settled(layer: nn.Module) -> bool:
    """Whether the temperature is not one that is still to be found."""
    return not isinstance(layer, Tempered) or layer.calibrated

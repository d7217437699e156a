"""What a schedule sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import nn


def modules(layers: object) -> None:
    """A module, or several in a list or a tuple."""
    several = layers if isinstance(layers, (list, tuple)) else [layers]
    for one in several:
        if not isinstance(one, nn.Module):
            raise TypeError(
                f"layers must be a module or a list of modules, but got {type(one).__name__}"
            )


def callable_(schedule: object) -> None:
    """A function of the step."""
    if not callable(schedule):
        raise TypeError(
            "schedule must be a function from steps to temperatures, such as "
            f"so.schedules.Cosine(...), but got {type(schedule).__name__}"
        )


def some(layers: Sequence[object]) -> None:
    """There is a temperature to set."""
    if not layers:
        raise ValueError("layers must hold a layer with a temperature, but got none")


def none_learnable(layers: Sequence[object]) -> None:
    """A temperature belongs to the optimiser or to the schedule."""
    if layers:
        names = ", ".join(type(layer).__name__ for layer in layers)
        raise ValueError(
            f"layers must have temperatures that are not learnable, but got {names} with "
            "learnable_temperature=True: an optimiser sets these"
        )


def state(given: object) -> None:
    """What `state_dict` returned."""
    if not isinstance(given, Mapping) or set(given) != {"last_step"}:
        raise ValueError(f"state_dict must hold last_step only, but got {given!r}")
    step = given["last_step"]
    if not isinstance(step, int) or isinstance(step, bool) or step < 0:
        raise ValueError(f"last_step must be an int >= 0, but got {step!r}")

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from softorder import _check
from softorder._auto import Auto, Temperature, settings, wanted
from softorder.nn._numbers import Numbered
from softorder.ops._method import method_of


class Tempered(Numbered):
    """A layer around an operator: its options, and a temperature that may be learnable.

    A learnable temperature is stored as its logarithm, the parameter `log_temperature`, so that no
    step of an optimiser can make it negative. Any other is `fixed_temperature`, one of the numbers
    of the layer. "auto", or `so.Auto(softness=...)`, is found from the scores of the first call,
    one number for all rows, and stays: `calibrated` tells whether that has happened.
    """

    numbers: ClassVar[tuple[str, ...]] = ("fixed_temperature", "calibrated")
    fixed_temperature: float | Tensor | None  #: None where it is learnable
    calibrated: bool = True

    def __init__(
        self,
        operator: str,
        method: str | object,
        temperature: Temperature,
        learnable_temperature: bool,
    ) -> None:
        super().__init__()
        auto = settings(temperature) if wanted(temperature) else None
        start: Any = 1.0 if auto else temperature
        _check.temperature_alone(start)
        _check.flag("learnable_temperature", learnable_temperature)
        method_of(operator, method)
        self.method = method
        self.log_temperature: nn.Parameter | None = None
        self.fixed_temperature = None if learnable_temperature else start
        self._auto = auto
        if learnable_temperature:
            start = torch.as_tensor(start, dtype=torch.get_default_dtype())
            self.log_temperature = nn.Parameter(torch.log(start.detach()))
        if auto is not None:
            self._wait(auto)

    @property
    def temperature(self) -> Any:
        """The temperature now; what it is to be found by, as long as it is not."""
        if not self.calibrated and self._auto is not None:
            return _Kept(self._auto, self)
        if self.log_temperature is not None:
            return self.log_temperature.exp()
        assert self.fixed_temperature is not None
        return self.fixed_temperature

    @temperature.setter
    def temperature(self, value: Any) -> None:
        if wanted(value):
            self._wait(settings(value))
            return
        _check.temperature_alone(value)
        if self.log_temperature is None:
            self.fixed_temperature = value
        else:
            with torch.no_grad():
                self.log_temperature.copy_(torch.as_tensor(value).log())
        self._known()

    def _wait(self, auto: Auto) -> None:
        """For the scores of the next call."""
        self._auto = auto
        if self.log_temperature is None:
            # a buffer from the start: what copies, moves or broadcasts buffers knows of it
            self.fixed_temperature = torch.tensor(torch.nan)
        self.calibrated = False

    def _known(self) -> None:
        if not self.calibrated:
            self.calibrated = True

    def _settle(self, found: Tensor) -> float | Tensor:
        """Keeps what the first call has found, and returns it as all the others will see it."""
        with torch.no_grad():
            if self.log_temperature is not None:
                self.log_temperature.copy_(found.log())
            else:
                assert isinstance(self.fixed_temperature, Tensor)
                self.fixed_temperature.copy_(found)
        self._known()
        known: float | Tensor = self.temperature
        return known

    def set_extra_state(self, state: dict[str, Any]) -> None:
        super().set_extra_state(state)
        if "calibrated" not in state:  # saved with a temperature that was given
            self._known()

    def describe(self, *names: str, **switches: bool) -> str:
        """The values of these attributes, and the switches that are on, as arguments."""
        learnable = self.log_temperature is not None
        switches = {"learnable_temperature": learnable, **switches}
        shown = [f"{name}={_shown(getattr(self, name))}" for name in names]
        return ", ".join(shown + [f"{name}=True" for name, on in switches.items() if on])


class _Kept(Auto):
    """What a layer hands to its operator, to be told the temperature that it finds."""

    layer: Tempered

    def __init__(self, auto: Auto, layer: Tempered) -> None:
        super().__init__(auto.softness, shared=True)
        object.__setattr__(self, "layer", layer)

    def keep(self, found: Tensor) -> float | Tensor:
        return self.layer._settle(found)

    def __repr__(self) -> str:
        return f"Auto(softness={self.softness})"


def _shown(value: object) -> str:
    if not isinstance(value, Tensor):
        return repr(value)
    value = value.detach()
    return str(round(value.item(), 6) if value.numel() == 1 else value)

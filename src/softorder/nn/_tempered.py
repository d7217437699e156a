from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from softorder import _check
from softorder.nn._numbers import Numbered
from softorder.ops._method import method_of


class Tempered(Numbered):
    """A layer around an operator: its options, and a temperature that may be learnable.

    A learnable temperature is stored as its logarithm, the parameter `log_temperature`, so that no
    step of an optimiser can make it negative. Any other is `fixed_temperature`, one of the numbers
    of the layer.
    """

    numbers: ClassVar[tuple[str, ...]] = ("fixed_temperature",)
    fixed_temperature: float | Tensor | None  #: None where it is learnable

    def __init__(
        self,
        operator: str | None,
        method: str | object,
        temperature: float | Tensor,
        learnable_temperature: bool,
    ) -> None:
        super().__init__()
        _check.temperature_alone(temperature)
        _check.flag("learnable_temperature", learnable_temperature)
        if operator is not None:  # otherwise there is nothing that a method would have to serve
            method_of(operator, method)
        self.method = method
        self.log_temperature: nn.Parameter | None = None
        self.fixed_temperature = None if learnable_temperature else temperature
        if learnable_temperature:
            start = torch.as_tensor(temperature, dtype=torch.get_default_dtype())
            self.log_temperature = nn.Parameter(torch.log(start.detach()))

    @property
    def temperature(self) -> float | Tensor:
        """The temperature now."""
        if self.log_temperature is not None:
            return self.log_temperature.exp()
        assert self.fixed_temperature is not None
        return self.fixed_temperature

    @temperature.setter
    def temperature(self, value: float | Tensor) -> None:
        _check.temperature_alone(value)
        if self.log_temperature is None:
            self.fixed_temperature = value
        else:
            with torch.no_grad():
                self.log_temperature.copy_(torch.as_tensor(value).log())

    def describe(self, *names: str, **switches: bool) -> str:
        """The values of these attributes, and the switches that are on, as arguments."""
        learnable = self.log_temperature is not None
        switches = {"learnable_temperature": learnable, **switches}
        shown = [f"{name}={_shown(getattr(self, name))}" for name in names]
        return ", ".join(shown + [f"{name}=True" for name, on in switches.items() if on])


def _shown(value: object) -> str:
    if not isinstance(value, Tensor):
        return repr(value)
    value = value.detach()
    return str(round(value.item(), 6) if value.numel() == 1 else value)

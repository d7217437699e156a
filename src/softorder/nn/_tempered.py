from __future__ import annotations

import torch
from torch import Tensor, nn

from softorder import _check
from softorder.ops._method import method_of


class Tempered(nn.Module):
    """A layer around an operator: its options, and a temperature that may be learnable.

    A learnable temperature is stored as its logarithm, the parameter `log_temperature`, so that no
    step of an optimiser can make it negative.
    """

    def __init__(
        self,
        operator: str,
        method: str | object,
        temperature: float | Tensor,
        learnable_temperature: bool,
    ) -> None:
        super().__init__()
        _check.temperature_alone(temperature)
        method_of(operator, method)
        self.method = method
        self.log_temperature: nn.Parameter | None = None
        self._temperature = temperature
        if learnable_temperature:
            start = torch.as_tensor(temperature, dtype=torch.get_default_dtype())
            self.log_temperature = nn.Parameter(torch.log(start))

    @property
    def temperature(self) -> float | Tensor:
        """The temperature now."""
        return self._temperature if self.log_temperature is None else self.log_temperature.exp()

    @temperature.setter
    def temperature(self, value: float | Tensor) -> None:
        _check.temperature_alone(value)
        if self.log_temperature is None:
            self._temperature = value
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

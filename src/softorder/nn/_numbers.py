from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn


class Numbered(nn.Module):
    """A module that takes its numbers along: with `.to`, into its state dict and out of it.

    A class names its numbers; what one of them is assigned decides how it is kept. A tensor is a
    buffer, an `nn.Parameter` a parameter, and anything else (a number, or None) is part of the
    extra state, so that a temperature that was annealed comes back with the weights. A parameter
    stays one, which an optimiser may hold: what is assigned to it becomes its value. A number comes
    back as what it was saved, a tensor or not. State dicts without an extra state fit, too: the
    numbers then stay as they are.
    """

    numbers: ClassVar[tuple[str, ...]] = ()

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.numbers:
            super().__setattr__(name, value)
            return
        parameter = self._parameters.get(name)
        if parameter is not None and not isinstance(value, nn.Parameter):
            with torch.no_grad():
                parameter.copy_(torch.as_tensor(value))
            return
        for kept in (self.__dict__, self._buffers, self._parameters):
            kept.pop(name, None)
        if isinstance(value, Tensor) and not isinstance(value, nn.Parameter):
            self.register_buffer(name, value)
        else:
            super().__setattr__(name, value)

    def get_extra_state(self) -> dict[str, float | None]:
        return {name: self.__dict__[name] for name in self.numbers if name in self.__dict__}

    def set_extra_state(self, state: dict[str, float | None]) -> None:
        unknown = sorted(state.keys() - set(self.numbers))
        if unknown:
            raise ValueError(
                f"the state of {type(self).__name__} must hold {', '.join(self.numbers)} only, "
                f"got {', '.join(unknown)}"
            )
        for name, value in state.items():
            setattr(self, name, value)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        plain = state_dict.get(f"{prefix}_extra_state", {})
        for name in self.numbers:
            saved = state_dict.get(prefix + name)
            if saved is not None and name in self.__dict__:
                setattr(self, name, torch.empty_like(saved))
            elif name in plain and name in self._buffers:
                setattr(self, name, plain[name])
        super()._load_from_state_dict(state_dict, prefix, *args)
        missing, key = args[2], f"{prefix}_extra_state"
        if key in missing:
            missing.remove(key)

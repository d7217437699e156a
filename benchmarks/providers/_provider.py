"""What a provider is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

Operator = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Provider:
    """Somebody who solves cases: `bind(case)` is a function of the scores alone."""

    key: str  # short, for the command line
    name: str
    bind: Callable[[Any], Operator]  # of a case of the suite
    density: str = ""  # of softorder's own

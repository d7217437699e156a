"""What a part of the measurements is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.cases import Case
from benchmarks.providers import Provider


@dataclass(frozen=True)
class Part:
    """Several ways to compute the same, or nearly: a row of panels."""

    name: str  #: before the colon in the name of an arm
    about: str  #: the rest of the title of its panels
    case: Callable[[int], Case]  #: of n
    dtype: torch.dtype
    ours: Mapping[str, Provider]  #: by name
    published: Mapping[str, Provider]  #: the papers' own algorithms, in plain torch
    error: Callable[[Tensor, Case], float] | None = None  #: of a result: how far its sums are off
    error_label: str = "|Σ p - k|"

    @property
    def providers(self) -> dict[str, Provider]:
        return {**self.ours, **self.published}

    def arms(self) -> Iterator[str]:
        return (f"{self.name}: {name}" for name in self.providers)

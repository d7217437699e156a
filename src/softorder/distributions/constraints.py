from __future__ import annotations

from torch import Tensor
from torch.distributions.constraints import Constraint


class KHotVector(Constraint):
    """Vectors of 0 and 1 with at least `least` and at most `most` ones."""

    is_discrete = True
    event_dim = 1

    def __init__(self, least: Tensor | int, most: Tensor | int) -> None:
        self.least, self.most = least, most
        super().__init__()

    def check(self, value: Tensor) -> Tensor:
        binary = ((value == 0) | (value == 1)).all(-1)
        ones = value.sum(-1)
        return binary & (ones >= self.least) & (ones <= self.most)

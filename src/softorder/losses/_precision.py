from __future__ import annotations

import torch
from torch import Tensor

_NARROW = (torch.float16, torch.bfloat16)


def dtype_of_loss(scores: Tensor) -> torch.dtype:
    """That of the scores; under autocast at least float32, as in the losses of torch."""
    narrow = scores.dtype in _NARROW and torch.is_autocast_enabled(scores.device.type)
    return torch.float32 if narrow else scores.dtype

"""What can be seen of tensors at the moment of the call."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch._C import _are_functorch_transforms_active, _len_torch_dispatch_stack
from torch.autograd import forward_ad
from torch.compiler import is_compiling

_PLAIN = (Tensor, torch.nn.Parameter)
_is_batch = torch._C._functorch.is_legacy_batchedtensor  # of autograd's is_grads_batched


def eager() -> bool:
    """Whether calls run at once on plain tensors: no tracing, torch.func, forward mode or modes."""
    return not (
        is_compiling()
        or _are_functorch_transforms_active()
        or forward_ad._current_level >= 0
        or _len_torch_dispatch_stack()
    )


def plain(*values: Tensor) -> bool:
    """Whether these are CPU tensors whose memory is what they say: no subclasses, no batches."""
    for value in values:
        if type(value) not in _PLAIN or not value.is_cpu or value.is_neg() or _is_batch(value):
            return False
    return True


def finite(scores: Tensor) -> bool:
    """Whether every score is finite. A sum tells it sooner, unless it overflows."""
    scores = scores.detach()
    return math.isfinite(scores.sum().item()) or bool(scores.isfinite().all())

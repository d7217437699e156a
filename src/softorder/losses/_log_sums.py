"""log Σ exp along a row, with derivatives of all orders.

torch.logcumsumexp takes its derivative in logarithms of the upstream, which makes the second one
wrong and loses digits of the first.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, pad

_BLOCK = 16


def nothing(like: Tensor) -> float:
    """Stands for log 0: finite, so that its derivatives are 0."""
    return torch.finfo(like.dtype).min / 4


def log_add(a: Tensor, b: Tensor) -> Tensor:
    """log(e^a + e^b), never by a difference that cancels."""
    if torch.is_grad_enabled() and (a.requires_grad or b.requires_grad):
        first = a >= b  # of equals only one may be the larger, or second derivatives are lost
        high, low = torch.where(first, a, b), torch.where(first, b, a)
    else:
        high, low = torch.maximum(a, b), torch.minimum(a, b)
    return high - logsigmoid(high - low)


def log_sums_behind(s: Tensor) -> Tensor:
    """log Σ_{q>=p} e^s_q for every place p: in blocks, then over the blocks, in O(n)."""
    n, missing = s.shape[-1], -s.shape[-1] % _BLOCK
    if n <= _BLOCK:
        return _doubling(s)
    blocks = pad(s, (0, missing), value=nothing(s)).unflatten(-1, (-1, _BLOCK))
    inner = _doubling(blocks)
    behind = pad(log_sums_behind(inner[..., 0])[..., 1:], (0, 1), value=nothing(s))
    return log_add(inner, behind.unsqueeze(-1)).flatten(-2)[..., :n]


def _doubling(s: Tensor) -> Tensor:
    """The same for a few places, by doubling steps."""
    step = 1
    while step < s.shape[-1]:
        s = torch.cat([log_add(s[..., :-step], s[..., step:]), s[..., -step:]], -1)
        step *= 2
    return s

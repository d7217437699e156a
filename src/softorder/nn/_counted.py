from __future__ import annotations

import torch
from torch import Tensor, nn

from softorder import _axis, _check
from softorder.nn._tempered import Tempered


class Counted(Tempered):
    """A layer with a k that may be learnable.

    A learnable k is n σ(θ + logit(k₀/n)) of n scores, with the k₀ that was given and the parameter
    θ = `logit_k`, which starts at 0: so k starts at k₀ whatever n is, and no step of an optimiser
    can take it out of (0, n). ∂k/∂θ = k (1 - k/n). Both are in the state dict.
    """

    k: float | Tensor  #: k₀
    logit_k: nn.Parameter | None

    def _learn_k(self, learnable_k: bool) -> None:
        _check.flag("learnable_k", learnable_k)
        self.logit_k = None
        if learnable_k:
            _check.positive_k(self.k)
            like = torch.as_tensor(self.k, dtype=torch.get_default_dtype())
            self.logit_k = nn.Parameter(torch.zeros_like(like))

    def k_now(self, n: int) -> float | Tensor:
        """k as it is now, for n scores."""
        if self.logit_k is None:
            return self.k
        _check.inner_k(self.k, n)
        start = _axis.per_row(self.k, self.logit_k)
        return n * torch.sigmoid(self.logit_k.to(start.dtype) + torch.log(start / (n - start)))

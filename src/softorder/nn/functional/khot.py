"""khot_kl."""

from __future__ import annotations

import math

from torch import Tensor, zeros_like
from torch.distributions import kl_divergence

from softorder import _check
from softorder.distributions import KHot

_KINDS = ("exact", "softmax")


def khot_kl(law: KHot, kind: str = "exact") -> Tensor:
    """How far codes are from uniform ones, summed over the groups: the KL term of an autoencoder.

    Args:
        law: of shape (..., groups, n), with one whole k.
        kind: "exact" is KL(law ‖ uniform on the subsets of size k) = log C(n, k) - H(law), for
            designs with an entropy. "softmax" is the term of the paper, for all designs:
            KL(softmax(logits) ‖ uniform on n) = Σ s log s + log n.

    Returns:
        (...), in nats.

    Paper: k-hot sampling, section 4; Wijk et al. 2025.

    >>> import torch, softorder as so
    >>> law = so.distributions.KHot(2, logits=torch.tensor([[2.0, 0.0, 0.0, 0.0]]))
    >>> so.nn.functional.khot_kl(law), so.nn.functional.khot_kl(law, "softmax")
    (tensor(0.3278), tensor(0.4680))
    """
    _check.choice("kind", kind, _KINDS)
    if kind == "softmax":
        logs = law.logits.log_softmax(-1)
        return (logs.exp() * logs).sum((-1, -2)) + law.logits.shape[-2] * math.log(logs.shape[-1])
    uniform_law = KHot(law.k, logits=zeros_like(law.logits), design=law.design)
    return kl_divergence(law, uniform_law).sum(-1)

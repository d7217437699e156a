from __future__ import annotations

from typing import NamedTuple

from torch import Tensor, nn

from softorder import _check
from softorder._auto import Temperature
from softorder.distributions import KHot
from softorder.nn.gate import Estimator, KHotGate
from softorder.sampling import Design


class KHotCode(NamedTuple):
    """What an encoder made of an input."""

    code: Tensor  #: (..., groups·n), k ones in each group
    law: KHot  #: of the groups, (..., groups, n)


class KHotHead(nn.Module):
    """The last layer of a k-hot encoder: features to groups of k-hot vectors.

    A linear layer makes the logits of `groups` laws `so.distributions.KHot` of n units each; in
    training a code is drawn and carries a gradient, in eval mode the k largest are taken.

    Args:
        features: of the input.
        n: units of a group.
        k: ones in a group.
        groups: how many.
        estimator: as in `so.nn.KHotGate`.
        design: as in `so.nn.KHotGate`, but by default the one whose exact KL, which autoencoders
            want of the law, costs least.
        method: as in `so.distributions.KHot`.
        temperature: as in `so.nn.KHotGate`.

    Paper: k-hot sampling, section 4: variational autoencoders.

    >>> import torch, softorder as so
    >>> _ = torch.manual_seed(0)
    >>> head = so.nn.KHotHead(features=8, n=10, k=5, groups=3)
    >>> code, law = head(torch.randn(4, 8))
    >>> code.shape, code.sum(-1)
    (torch.Size([4, 30]), tensor([15., 15., 15., 15.], grad_fn=<SumBackward1>))
    >>> so.nn.functional.khot_kl(law).shape
    torch.Size([4])
    """

    def __init__(
        self,
        features: int,
        n: int,
        k: int,
        *,
        groups: int = 1,
        estimator: Estimator = "straight_through",
        design: str | type[Design] = "conditional_poisson",
        method: str | object | None = None,
        temperature: Temperature = 1.0,
        learnable_temperature: bool = False,
    ) -> None:
        super().__init__()
        _check.count("features", features, least=1)
        _check.count("n", n, least=1)
        _check.count("k", k, least=1, most=n)
        _check.count("groups", groups, least=1)
        self.groups = groups
        self.linear = nn.Linear(features, groups * n)
        self.gate = KHotGate(
            None,
            k,
            estimator=estimator,
            design=design,
            method=method,
            temperature=temperature,
            learnable_temperature=learnable_temperature,
        )

    def forward(self, x: Tensor) -> KHotCode:
        logits = self.linear(x).unflatten(-1, (self.groups, -1))
        code = self.gate.mask(logits=logits)
        return KHotCode(code.flatten(-2), self.gate.law(logits))

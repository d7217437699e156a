"""A variational autoencoder whose code is k-hot."""

from __future__ import annotations

from torch import Tensor, nn

import softorder as so
from experiments.feature_selection.training import dense
from experiments.khot_methods import options
from experiments.khot_vae.config import Code


class Autoencoder(nn.Module):
    """Dense layers around `so.nn.KHotHead`."""

    def __init__(self, pixels: int, hidden: tuple[int, int], code: Code, method: str) -> None:
        super().__init__()
        first, second = hidden
        self.encoder = nn.Sequential(dense(pixels, first, second), nn.ReLU())
        drawing = options(method)
        self.head = so.nn.KHotHead(second, code.n, code.k, groups=code.groups, **drawing)
        self.decoder = dense(code.groups * code.n, second, first, pixels)

    def forward(self, x: Tensor) -> Tensor:
        """The loss of every image: its cross-entropy, and the prior term of the paper, which is the
        same for all laws, whether or not their own divergence is known. Of several vectors it is
        the mean, as in the public code of Wijk et al. (2025), whom the paper follows."""
        found = self.head(self.encoder(x))
        wrong = nn.functional.binary_cross_entropy_with_logits(
            self.decoder(found.code), x, reduction="none"
        )
        prior = so.nn.functional.khot_kl(found.law, "softmax") / self.head.groups
        return wrong.sum(-1) + prior

"""The losses, each of lists with padding."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.nn import functional

import softorder as so
from experiments.movielens.config import BPR, POINTWISE

Criterion = Callable[[Tensor, Tensor, Tensor], Tensor]  #: of scores, relevances, mask


def criterion(arm: str, temperature: float) -> Criterion:
    return _MAKERS[arm](temperature)


def _pointwise(temperature: float) -> Criterion:
    """Liked or not: the binary cross-entropy of every film by itself."""

    def loss(scores: Tensor, relevance: Tensor, mask: Tensor) -> Tensor:
        liked = (relevance > 0).to(scores.dtype)
        each = functional.binary_cross_entropy_with_logits(
            scores / temperature, liked, reduction="none"
        )
        return each[mask].mean()

    return loss


_L = so.losses
_MAKERS: dict[str, Callable[[float], Criterion]] = {
    POINTWISE: _pointwise,
    BPR: lambda t: _L.PairwiseLoss(temperature=t),
    "hinge": lambda t: _L.PairwiseLoss("hinge", temperature=t),
    "softmax": lambda t: _L.ListNetLoss(target="proportional", temperature=t),
    "ListMLE": lambda t: _L.ListMLELoss(temperature=t),
    "LambdaLoss": lambda t: _L.LambdaLoss(temperature=t),
    "ApproxNDCG": lambda t: _L.ApproxNDCGLoss(temperature=t),
    "NDCG": lambda t: _L.NDCGLoss(gain="exponential", temperature=t),
    "NeuralNDCG": lambda t: _L.NeuralNDCGLoss(temperature=t),
    "smooth AP": lambda t: _L.SmoothAPLoss(method="laplace", temperature=t),
    "recall@k": lambda t: _L.SmoothRecallLoss(
        (5, 10, 20), edge=3.0, method="laplace", temperature=t
    ),
}

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from softorder import _check
from softorder.nn._choices import best
from softorder.nn._tempered import Tempered
from softorder.ops import soft_topk
from softorder.ops._straight import with_value


class Tokens(NamedTuple):
    """What `so.nn.TokenSelection` leaves of (batch, L, features)."""

    tokens: Tensor  #: (batch, L or k, features), times their weights
    weights: Tensor  #: (batch, L or k), in [0, 1]
    places: Tensor  #: (batch, L or k): where in the sequence they stood, ascending

    def attn_mask(self) -> Tensor:
        """log weights, (batch, 1, 1, L or k): added to the scores of an attention to these tokens,
        it takes each of them as far as it was chosen."""
        # a weight of exactly 0 has a derivative of 0 this way, and stays out all the same
        tiny = torch.finfo(self.weights.dtype).tiny
        return self.weights.clamp(min=tiny).log()[:, None, None, :]


class TokenSelection(Tempered):
    """Keeps k of the L tokens of a sequence, and learns which: what follows is shorter.

    A scorer gives each token a number s, and p = `so.soft_topk(s, k)`. In training all tokens stay,
    each times its p, and p goes to the attention that follows as a mask,

        softmax(scores + log p) = p ⊙ e^scores / Σ p ⊙ e^scores,

    whose limit τ → 0 is the attention to the k best alone. In eval mode these are gathered: k
    tokens, in the order of the sequence, and L - k never computed again. The derivative reaches the
    scorer through p, d ⊙ (v - <q,v>) as in `so.soft_topk`.

    Args:
        features: of a token.
        k: how many are kept, an int; of shorter sequences all.
        scorer: a module from (batch, L, features) to (batch, L, 1); nn.Linear(features, 1) if None.
        method: as in `so.soft_topk`.
        temperature: as in `so.soft_topk`, in units of s.
        hard: weights of exactly 0 and 1 in training, with the derivative of p (straight-through).
        hard_inference: gather k tokens in eval mode; False leaves it as in training.
        learnable_temperature: as in `so.nn.SoftTopK`.

    >>> import torch, softorder as so
    >>> _ = torch.manual_seed(0)
    >>> select = so.nn.TokenSelection(8, k=3, temperature=0.1)
    >>> x = torch.randn(2, 10, 8)
    >>> kept = select(x)
    >>> kept.tokens.shape, kept.weights.sum(-1).detach().round(decimals=4)
    (torch.Size([2, 10, 8]), tensor([3., 3.]))
    >>> select.eval()(x).tokens.shape
    torch.Size([2, 3, 8])
    """

    numbers = ("k", *Tempered.numbers)

    def __init__(
        self,
        features: int,
        k: int,
        *,
        scorer: nn.Module | None = None,
        method: str | object = "laplace",
        temperature: float | Tensor = 1.0,
        hard: bool = False,
        hard_inference: bool = True,
        learnable_temperature: bool = False,
    ) -> None:
        super().__init__("soft_topk", method, temperature, learnable_temperature)
        _check.count("features", features, least=1)
        _check.count("k", k, least=1)
        _check.flag("hard", hard)
        _check.flag("hard_inference", hard_inference)
        self.features = features
        self.k = k
        self.hard = hard
        self.hard_inference = hard_inference
        self.scorer = nn.Linear(features, 1) if scorer is None else scorer

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tokens:
        """Of (batch, L, features); where the mask (batch, L) is False, a token is padding."""
        _check.layers.tokens(x, self.features, mask)
        scores = self.scorer(x)
        _check.layers.token_scores(scores, x)
        scores = scores.squeeze(-1)
        k = min(self.k, x.shape[1])
        if self.hard_inference and not self.training:
            return _gathered(x, scores, k, mask)
        options: dict[str, Any] = {
            "method": self.method,
            "temperature": self.temperature,
            "mask": mask,
        }
        weights = soft_topk(scores, k, **options)
        if self.hard:
            weights = with_value(_present(best(_open(scores, mask), k), mask), weights)
        places = torch.arange(x.shape[1], device=x.device).expand(scores.shape)
        return Tokens(x * weights.unsqueeze(-1).to(x.dtype), weights, places)

    def extra_repr(self) -> str:
        switches = {"hard": self.hard, "hard_inference": self.hard_inference}
        return self.describe("features", "k", "method", "temperature", **switches)


def _gathered(x: Tensor, scores: Tensor, k: int, mask: Tensor | None) -> Tokens:
    places = _open(scores, mask).topk(k).indices.sort().values
    present = None if mask is None else mask.gather(1, places)
    weights = _present(torch.ones_like(scores[:, :k]), present)
    kept = x.gather(1, places.unsqueeze(-1).expand(-1, -1, x.shape[-1]))
    return Tokens(kept * weights.unsqueeze(-1).to(x.dtype), weights, places)


def _open(scores: Tensor, mask: Tensor | None) -> Tensor:
    return scores if mask is None else scores.masked_fill(~mask, -torch.inf)


def _present(weights: Tensor, mask: Tensor | None) -> Tensor:
    return weights if mask is None else weights * mask

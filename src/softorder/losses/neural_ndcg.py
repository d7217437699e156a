"""NeuralNDCG: the gains in a soft order, place by place."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from softorder import _axis, _check
from softorder.losses._gains import GAINS, best_sum, discounts, gains, missing
from softorder.losses._lists import RankingLoss
from softorder.ops._method import method_of


class NeuralNDCGLoss(RankingLoss):
    """1 - NeuralNDCG@k: the discounted gains of a softly sorted list.

        NeuralNDCG = (1/N) Σ_{j<=k} (P g)_j/log2(1 + j)      P = so.soft_permutation(scores)

    with the gains g, P in descending order, and N the value of the best order. Where `NDCGLoss`
    puts a soft rank into the discount, this one puts soft gains into the places, so that no place
    is given away twice. As τ → 0 both are 1 - sklearn's ndcg_score, for distinct scores.

    With a density P is not formed. Its row j holds the shares between two thresholds t, so that

        (P g)_j = G(t_j) - G(t_{j-1})      G(t) = Σ_i g_i F((t - x_i)/τ)

    is a difference of weighted F-sums: O(n log n) time and O(n) memory for "laplace", "uniform",
    "logistic" and "normal". method="neuralsort" is the paper's own form: the matrix of NeuralSort,
    scaled to be doubly stochastic by Sinkhorn's iteration, here to its limit, where the paper's
    two variants, with P and with its transpose, are the same. That costs O(n³).

    Args:
        k: how many places are judged, or None for all.
        gain: "exponential" for 2^relevance - 1, as in the paper, or "linear".
        **options: `method`, which has to serve soft_permutation; `temperature`, `dim`, `reduction`
            and `learnable_temperature` as in `SpearmanLoss`.

    Paper: NeuralNDCG (Pobrotyn & Białobrzeski 2021).

    >>> import torch, softorder as so
    >>> scores, relevance = torch.tensor([3.0, 1.0, 2.0]), torch.tensor([3, 2, 0])
    >>> for method in ("laplace", "neuralsort"):
    ...     criterion = so.losses.NeuralNDCGLoss(method=method, temperature=0.1)
    ...     print(round(criterion(scores, relevance).item(), 4))
    0.045
    0.0442
    """

    operators = ("soft_permutation",)
    numbers = ("k", *RankingLoss.numbers)

    def __init__(self, k: int | None = None, *, gain: str = "exponential", **options: Any) -> None:
        super().__init__(**options)
        if k is not None:
            _check.count("k", k, least=1)
        _check.choice("gain", gain, GAINS)
        self.k = k
        self.gain = gain

    def _losses(self, x: Tensor, wanted: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
        gain = gains(wanted, self.gain).detach()
        n = x.shape[-1]
        k = n if self.k is None else min(self.k, n)
        method, tau = method_of(self.operators[0], self.method), _axis.per_row(self.temperature, x)
        ordered = method.permuted(x, gain, tau, True, k)
        found = (ordered * discounts(k, ordered)).sum(-1).to(x.dtype)
        return missing(found, best_sum(gain, self.k))

    def extra_repr(self) -> str:
        return f"k={self.k}, {super().extra_repr()}, gain={self.gain!r}"

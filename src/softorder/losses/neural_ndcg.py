"""NeuralNDCG: the gains in a soft order, place by place."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from softorder import _axis, _check
from softorder.kernels._recomputed import recomputed
from softorder.losses._gains import GAINS, best_sum, discounts, gains, missing
from softorder.losses._lists import RankingLoss
from softorder.ops import soft_permutation
from softorder.ops._method import method_of
from softorder.relaxations.balanced import balanced

_DOUBLY_STOCHASTIC = "rows_and_columns_sum_to_one"  # a law that a method may break


class NeuralNDCGLoss(RankingLoss):
    """1 - NeuralNDCG@k: the discounted gains of a softly sorted list.

        NeuralNDCG = (1/N) Σ_{j<=k} (P g)_j/log2(1 + j)      P = so.soft_permutation(scores)

    with the gains g, P in descending order, and N the value of the best order. Where `NDCGLoss`
    puts a soft rank into the discount, this one puts soft gains into the places, so that no place
    is given away twice. As τ → 0 both are 1 - sklearn's ndcg_score, for distinct scores. `weights`
    of elements multiply their gains, as there.

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

    def _losses(
        self, x: Tensor, wanted: Tensor, present: Tensor, weights: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        gain = gains(wanted, self.gain, weights).detach()
        n = x.shape[-1]
        k = n if self.k is None else min(self.k, n)
        tau = _axis.per_row(self.temperature, x)
        found = recomputed(partial(self._found, k=k), x, tau, gain)
        return missing(found, best_sum(gain, self.k))

    def _found(self, x: Tensor, tau: Tensor, gain: Tensor, k: int) -> Tensor:
        ordered = self._ordered(x, tau, gain.double(), k)
        return (ordered * discounts(k, ordered)).sum(-1).to(x.dtype)

    def _ordered(self, x: Tensor, tau: Tensor, gain: Tensor, k: int) -> Tensor:
        """The first k of P g."""
        method, g = method_of(self.operators[0], self.method), gain.unsqueeze(-2)
        if _DOUBLY_STOCHASTIC not in method.breaks.get(self.operators[0], ()):
            return method.permuted(x, g, tau, True, k).squeeze(-2)
        p = soft_permutation(x.double(), method=self.method, temperature=tau, descending=True)
        return (g @ _scaled(p)[..., :k, :].mT).squeeze(-2)

    def extra_repr(self) -> str:
        return f"k={self.k}, {super().extra_repr()}, gain={self.gain!r}"


def _scaled(p: Tensor) -> Tensor:
    """P_ji e^-(u_j + v_i), with columns that sum to 1, too: the limit of Sinkhorn's iteration.

    A share that underflows is none, and what takes no part has rows of its own.
    """
    logits = p.clamp(min=torch.finfo(p.dtype).tiny).log()
    one = torch.ones((), dtype=p.dtype, device=p.device).expand(p.shape[:-2])
    return balanced(logits, one, tolerance=1e-12, max_iterations=1000)[0]

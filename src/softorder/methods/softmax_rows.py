"""Row-softmax methods: every row of a soft permutation is a softmax over the scores.

Rows sum to 1, columns need not: an element may be wanted for several places, or for none.
"""

from __future__ import annotations

import math
from types import MappingProxyType

import torch
from torch import Tensor

from softorder.kernels import ordering, row_softmax
from softorder.kernels.threshold_torch import inverse
from softorder.methods import fused
from softorder.methods._base import register
from softorder.methods.finite import MatrixMethod


class RowSoftmaxMethod(MatrixMethod):
    """P_j = softmax_i(L_ji/τ), with the logits L of a family."""

    operators = ("soft_topk", "soft_rank", "soft_sort", "soft_permutation")
    family: str  #: what the compiled kernel calls it

    smoothness = "once, kinks at ties"
    cost = MappingProxyType(
        {
            "soft_topk": "O(n k)",
            "soft_rank": "O(n²)",
            "soft_sort": "O(n²)",
            "soft_permutation": "O(n k)",
        }
    )

    def _rows(
        self, x: Tensor, live: Tensor | None, temperature: Tensor, descending: bool, k: int
    ) -> Tensor:
        if k == 0:
            return x.unsqueeze(-2)[..., :0, :]
        if not fused.usable(row_softmax.rows, x, temperature):
            return self._plain_rows(x, live, temperature, descending, k)

        def plain(x: Tensor, temperature: Tensor) -> Tensor:
            x = x if live is None else torch.where(live, x, 0.0)
            return self._plain_rows(x, live, temperature, descending, k)

        if live is not None:
            x = torch.where(live, x, -math.inf if descending else math.inf)
        options = self.family, k
        return fused.run(row_softmax.rows, x, temperature, descending, plain, *options)

    def _plain_rows(
        self, x: Tensor, live: Tensor | None, temperature: Tensor, descending: bool, k: int
    ) -> Tensor:
        n = x.shape[-1]
        order = ordering.sort(x if live is None else torch.where(live, x, torch.inf)).order
        place = torch.arange(k, device=x.device).expand(*x.shape[:-1], k)
        count = torch.full_like(x[..., :1], n) if live is None else live.sum(-1, keepdim=True)
        if descending:
            place = count.long() - 1 - place
        logits = self._logits(x, live, order, place.clamp(0, n - 1), count.to(x.dtype))
        scale = inverse(temperature, logits.dtype).unsqueeze(-1)
        return _softmax(logits, live, scale, x.dtype)

    def _logits(
        self, x: Tensor, live: Tensor | None, order: Tensor, place: Tensor, count: Tensor
    ) -> Tensor:
        """L (..., k, n) for k ascending places. `order` sorts x; `count` of them are live."""
        raise NotImplementedError


_BROKEN_BY_BOTH = {
    "soft_topk": (
        "stays_between_zero_and_one",
        "order_is_preserved",
        "raising_a_score_helps_it_alone",
        "what_the_top_leaves_is_the_bottom",
        "too_few_available_are_all_taken",
        "k_n_takes_everything",
    ),
    "soft_rank": ("ranks_follow_the_scores", "doubled_scores_double_their_ranks"),
    "soft_sort": ("raising_a_score_lowers_nothing",),
    "soft_permutation": ("rows_and_columns_sum_to_one",),
}


class SoftSort(RowSoftmaxMethod):
    """Row j prefers the scores near the j-th of them:

        P_ji = softmax_i(-|x_(j) - x_i|/τ)

    Unimodal: as τ → 0, and for distinct scores at every τ, the largest entry of row j is that of
    the j-th score.

    What it breaks: columns do not sum to 1, since scores in a crowd are near many places. So a
    top-k mask may exceed 1, or give less to a higher score, and does not take everything at k = n;
    ranks sum to n(n+1)/2, but need not follow the scores. Raising a score makes it lighter in the
    rows that it leaves, so that sorted values may fall.

    Paper: SoftSort (Prillo & Eisenschlos 2020).
    """

    name = family = "softsort"
    paper = "SoftSort (Prillo & Eisenschlos 2020)"
    breaks = MappingProxyType(_BROKEN_BY_BOTH)

    def _logits(
        self, x: Tensor, live: Tensor | None, order: Tensor, place: Tensor, count: Tensor
    ) -> Tensor:
        anchors = x.gather(-1, order.gather(-1, place))
        gap = anchors.unsqueeze(-1) - x.unsqueeze(-2)
        return -torch.maximum(gap, -gap)  # |gap|, which inductor 2.13 differentiates wrongly here


class NeuralSort(RowSoftmaxMethod):
    """Row j, counted from the largest, weighs a score against its distances to all the others:

        P_ji = softmax_i(((n + 1 - 2j) x_i - Σ_l |x_i - x_l|)/τ)

    The sums of distances come from a sort: with p scores below x_i, whose sum is C_p, and T the sum
    of all, Σ_l |x_i - x_l| = (2p - n) x_i + T - 2 C_p.

    What it breaks: what SoftSort breaks, for the same reason. Moreover the logits grow with n, so
    that two copies of every score do not get the halves of one, and ranks may leave [1, n].

    Paper: NeuralSort (Grover et al. 2019).
    """

    name = family = "neuralsort"
    paper = "NeuralSort (Grover et al. 2019)"
    breaks = MappingProxyType(
        _BROKEN_BY_BOTH
        | {
            "soft_topk": (*_BROKEN_BY_BOTH["soft_topk"], "equal_scores_get_equal_shares"),
            "soft_rank": (*_BROKEN_BY_BOTH["soft_rank"], "ranks_are_places"),
        }
    )

    def _logits(
        self, x: Tensor, live: Tensor | None, order: Tensor, place: Tensor, count: Tensor
    ) -> Tensor:
        # Large parts of the logits cancel: in float64. A common shift of the scores shifts whole
        # rows of them: start from the smallest.
        x = x.double() - x.detach().gather(-1, order[..., :1])
        distances = _distances(
            x if live is None else torch.where(live, x, 0.0), order, count.double()
        )
        slope = (2 * place + 1 - count).unsqueeze(-1)
        return slope * x.unsqueeze(-2) - distances.unsqueeze(-2)


def _distances(x: Tensor, order: Tensor, count: Tensor) -> Tensor:
    """Σ_l |x_i - x_l| over the first `count` of the sorted scores, x being 0 behind them."""
    ordered = x.gather(-1, order)
    below = torch.arange(x.shape[-1], device=x.device)
    upto = ordered.cumsum(-1)
    sums = (2 * below - count) * ordered + upto[..., -1:] - 2 * (upto - ordered)
    return torch.empty_like(sums).scatter(-1, order, sums)


class StochasticNeuralSort(NeuralSort):
    """NeuralSort of scores to which independent Gumbel noise is added, anew in every call.

    Without softening, the order of x + β g is a sample of the Plackett-Luce law with weights
    exp(x/β); so P is a relaxed sample, through which gradients flow to the scores (Grover et al.
    2019, section 5). Not registered by a name: pass an object as `method`.

    >>> import torch, softorder as so
    >>> from softorder.methods import StochasticNeuralSort
    >>> sampler = StochasticNeuralSort(generator=torch.Generator().manual_seed(0))
    >>> p = so.soft_permutation(torch.tensor([3.0, 1.0, 2.0]), method=sampler, temperature=0.1)
    >>> p.sum(-1).numpy().round(3)
    array([1., 1., 1.], dtype=float32)
    """

    name = "stochastic_neuralsort"

    def __init__(self, noise: float = 1.0, generator: torch.Generator | None = None) -> None:
        self.noise = noise
        self.generator = generator

    def _rows(
        self, x: Tensor, live: Tensor | None, temperature: Tensor, descending: bool, k: int
    ) -> Tensor:
        exponential = torch.empty_like(x).exponential_(generator=self.generator)
        gumbel = -exponential.log()
        return super()._rows(x + self.noise * gumbel, live, temperature, descending, k)


def _softmax(logits: Tensor, live: Tensor | None, scale: Tensor, dtype: torch.dtype) -> Tensor:
    """The softmax of scale × logits over what is live, however large the scale."""
    if live is None:
        z = (logits - logits.detach().amax(-1, keepdim=True)) * scale
        return torch.softmax(z.to(dtype), -1)
    live = live.unsqueeze(-2) | ~live.any(-1, keepdim=True).unsqueeze(-1)  # never nothing at all
    top = torch.where(live, logits.detach(), -torch.inf).amax(-1, keepdim=True)
    return torch.softmax(torch.where(live, (logits - top) * scale, -torch.inf).to(dtype), -1)


register(SoftSort(), aliases=("soft_sort", "soft-sort"))
register(NeuralSort(), aliases=("neural_sort", "neural-sort"))

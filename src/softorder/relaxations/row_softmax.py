"""Row-softmax methods: every row of a soft permutation is a softmax over the scores.

Rows sum to 1, columns need not: an element may be wanted for several places, or for none.
"""

from __future__ import annotations

from types import MappingProxyType

import torch
from torch import Tensor

from softorder import _check
from softorder._noise import gumbel
from softorder.kernels import row_softmax
from softorder.kernels.row_softmax import reference
from softorder.relaxations import fused
from softorder.relaxations._base import register
from softorder.relaxations.masses import log_masses_again
from softorder.relaxations.matrix import MatrixMethod


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

    def soft_permutation(
        self, scores: Tensor, temperature: Tensor, descending: bool, k: int
    ) -> Tensor:
        if k == 0:
            return scores.unsqueeze(-2)[..., :0, :]

        def plain(scores: Tensor, temperature: Tensor) -> Tensor:
            return reference.matrix(scores, temperature, descending, self.family, k)

        options = self.family, k
        return fused.run(row_softmax.rows, scores, temperature, descending, plain, *options)

    def log_masses(
        self, scores: Tensor, index: Tensor, ks: tuple[int, ...], temperature: Tensor
    ) -> Tensor:
        return log_masses_again(self, scores, index, ks, temperature)


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

    >>> import torch, softorder as so
    >>> scores = torch.tensor([2.0, 1.0, 0.0])
    >>> so.soft_sort(scores, method=so.relaxations.SoftSort(), temperature=0.1).numpy().round(3)
    array([0., 1., 2.], dtype=float32)
    """

    name = family = "softsort"
    good_for = "comparing with SoftSort: rows of softmaxes around the sorted scores"
    paper = "SoftSort (Prillo & Eisenschlos 2020)"
    breaks = MappingProxyType(_BROKEN_BY_BOTH)


class NeuralSort(RowSoftmaxMethod):
    """Row j, counted from the largest, weighs a score against its distances to all the others:

        P_ji = softmax_i(((n + 1 - 2j) x_i - Σ_l |x_i - x_l|)/τ)

    What it breaks: what SoftSort breaks, for the same reason. Moreover the logits grow with n, so
    that two copies of every score do not get the halves of one, and ranks may leave [1, n].

    Paper: NeuralSort (Grover et al. 2019).

    >>> import torch, softorder as so
    >>> scores = torch.tensor([2.0, 1.0, 0.0])
    >>> so.soft_sort(scores, method=so.relaxations.NeuralSort(), temperature=0.1).numpy().round(3)
    array([0., 1., 2.], dtype=float32)
    """

    name = family = "neuralsort"
    good_for = "comparing with NeuralSort: unimodal rows, one softmax each"
    paper = "NeuralSort (Grover et al. 2019)"
    breaks = MappingProxyType(
        _BROKEN_BY_BOTH
        | {
            "soft_topk": (*_BROKEN_BY_BOTH["soft_topk"], "equal_scores_get_equal_shares"),
            "soft_rank": (*_BROKEN_BY_BOTH["soft_rank"], "ranks_are_places"),
        }
    )


class StochasticNeuralSort(NeuralSort):
    """NeuralSort of scores to which independent Gumbel noise is added, anew in every call.

    Without softening, the order of x + β g is a sample of the Plackett-Luce law with weights
    exp(x/β); so P is a relaxed sample, through which gradients flow to the scores (Grover et al.
    2019, section 5). Not registered by a name: pass an object as `method`. Repeated scores,
    `scores.expand(5, *scores.shape)`, are several draws. `so.perturb` is the same for any method.

    Args:
        noise: β, the factor of the noise.
        generator: of random numbers.

    >>> import torch, softorder as so
    >>> from softorder.relaxations import StochasticNeuralSort
    >>> sampler = StochasticNeuralSort(generator=torch.Generator().manual_seed(0))
    >>> p = so.soft_permutation(torch.tensor([3.0, 1.0, 2.0]), method=sampler, temperature=0.1)
    >>> p.sum(-1).numpy().round(3)
    array([1., 1., 1.], dtype=float32)
    """

    name = "stochastic_neuralsort"
    good_for = "comparing with NeuralSort with Gumbel noise"

    def __init__(self, noise: float = 1.0, generator: torch.Generator | None = None) -> None:
        _check.at_least("noise", noise, 0)
        self.noise = noise
        self.generator = generator

    def soft_permutation(
        self, scores: Tensor, temperature: Tensor, descending: bool, k: int
    ) -> Tensor:
        scores = scores + self.noise * gumbel(scores.detach(), self.generator)
        return super().soft_permutation(scores, temperature, descending, k)


register(SoftSort(), aliases=("soft_sort", "soft-sort"))
register(NeuralSort(), aliases=("neural_sort", "neural-sort"))

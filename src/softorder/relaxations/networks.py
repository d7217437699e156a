"""Network methods: sorting and selection networks whose comparators swap in part."""

from __future__ import annotations

from types import MappingProxyType

from torch import Tensor

from softorder import _check, networks
from softorder.kernels import _native, network
from softorder.kernels.network import reference, topk
from softorder.kernels.network.comparators import COMPARATORS, COMPILED, PHI, named
from softorder.relaxations import fused
from softorder.relaxations._base import register
from softorder.relaxations.matrix import MatrixMethod

#: Kinds that are the networks of fewer wires when their last wires are idle.
_PADDED = ("pairwise", "splitter")

#: What the others break.
_PADDING = (
    "masked_out_elements_change_nothing",
    "minus_infinity_changes_nothing",
    "a_mask_may_differ_from_row_to_row",
    "padding_takes_no_gradient",
)

#: Kinds that select by the whole sort keep it.
_WHOLE, _FIRST_ROWS = ("odd_even", "bitonic_sort"), "first_rows_are_the_first_rows"


class NetworkMethod(MatrixMethod):
    """A comparator of values a and b on wires i < j leaves a' on i and b' on j,

        c = F((b - a)/τ)      a' = c a + (1 - c) b      b' = c b + (1 - c) a,

    and so is a doubly stochastic matrix; P is the product of those of all comparators, and doubly
    stochastic too. The first k rows come from a second pass from the last layer to the first
    (Petersen et al. 2022, section 3.1), on a selection network. F is one of

        logistic 1/(1 + e^-u)    cauchy atan(u)/π + 1/2    reciprocal u/(1 + 2|u|) + 1/2
        optimal  u + 1/2 for |u| ≤ 1/4, else 1 - 1/(16 u) or -1/(16 u)
        gaussian Φ(u)    logistic_phi 1/(1 + e^-φ(u)), φ(u) = u/(|u| + 1e-10)^λ

    cauchy, reciprocal and optimal are monotone: a' never falls when a or b rises. φ is the
    activation replacement trick: it draws large |u| nearer and small ones away from 0, where slopes
    are steep, up to 10^(10 λ)/4 at a tie.

    A soft top-k is the sum of k rows, descending, with the last one in part.

    What it breaks: the result depends on which score enters on which wire. So it does not follow a
    permutation of the scores, equal scores get different shares, even as τ → 0, and a top-k mask
    may give more to a lower score. Selecting the k largest is another network than selecting the
    rest; k rows are those of a full sort with "odd_even" and "bitonic_sort" only. At high
    temperature values are not in order, and P does not become even. Steep comparators enlarge
    rounding errors.

    A compiled kernel keeps the scores for the backward pass, and nothing else. Where the
    temperature learns, in torch.func, under torch.compile, and for other λ than 1/4 and 1/2, plain
    torch keeps O(n k) per layer. A soft top-k looks at k, to know which network; under vmap and
    torch.compile an operator does, that has first derivatives only.

    Names elsewhere: `so.networks` compares the kinds with those of diffsort and difftopk. The
    comparators are their distributions. Of their steepness s (inverse_temperature in difftopk's
    loss) the temperature is

        τ = 1/s    reciprocal 4/s    logistic_phi s^(-1/(1 - λ)), with λ their art_lambda

    and ε = 1e-10 is measured in τ here, in scores there. diffsort's matrix is the transpose of P,
    ascending. difftopk's has its last k columns: P is its transpose for descending=True, with the
    rows in reverse.

    Args:
        kind: of the network, see `so.networks`; None takes "splitter" to select up to 8 and
            "pairwise" otherwise. Without its last wires each of these is the network of fewer
            wires, so that padding changes nothing; with the others it does.
        comparator: "logistic", "cauchy", "reciprocal", "optimal", "gaussian" or "logistic_phi".
        art_lambda: λ of "logistic_phi", between 0 and 1, None for 1/4; no other comparator has it.

    Papers: Petersen et al. (2021, 2022 a, b).

    >>> import torch, softorder as so
    >>> from softorder.relaxations import NetworkMethod
    >>> scores, method = torch.tensor([3.0, 1.0, 2.0]), NetworkMethod("bitonic", "optimal")
    >>> so.soft_sort(scores, method=method, temperature=0.01).numpy().round(2)
    array([1., 2., 3.], dtype=float32)
    """

    name = "network"
    operators = ("soft_topk", "soft_sort", "soft_permutation")
    cost = MappingProxyType(
        {
            "soft_topk": "O(n k log n)",
            "soft_sort": "O(n log² n)",
            "soft_permutation": "O(n k log n), O(n² log² n) for all rows",
        }
    )
    breaks = MappingProxyType(
        {
            "soft_topk": (
                "order_is_preserved",
                "equal_scores_get_equal_shares",
                "all_equal_scores_get_k_over_n",
                "raising_a_score_helps_it_alone",
                "cold_limit_is_hard",
                "warm_limit_is_even",
                "what_the_top_leaves_is_the_bottom",
                "follows_a_permutation",
            ),
            "soft_sort": ("sorted_scores_ascend", "follows_a_permutation"),
            "soft_permutation": (
                "cold_limit_is_hard",
                "warm_limit_is_even",
                "first_rows_are_the_first_rows",
                "follows_a_permutation",
            ),
        }
    )
    smoothness = "smooth, or as its comparator"
    good_for = "comparing with difftopk and diffsort: sorting networks of soft comparators"
    paper = "Differentiable top-k (Petersen et al. 2022)"

    def __init__(
        self,
        kind: str | None = None,
        comparator: str = "cauchy",
        art_lambda: float | None = None,
    ) -> None:
        if kind is not None:
            _check.choice("kind", kind, networks.SELECTION_KINDS)
        _check.choice("comparator", comparator, COMPARATORS)
        if comparator != PHI:
            _check.unused("art_lambda", art_lambda, f"unless the comparator is {PHI!r}")
        elif art_lambda is not None:
            _check.between("art_lambda", art_lambda)
        self.kind = kind
        self.comparator = comparator
        self.art_lambda = art_lambda
        self.breaks = MappingProxyType(
            {operator: _broken(laws, kind) for operator, laws in self.breaks.items()}
        )

    looks_at_k = False

    def soft_topk(
        self, scores: Tensor, k: Tensor, temperature: Tensor, most: int | None = None
    ) -> Tensor:
        """The sum of the rows of the network that selects ⌈k⌉; rows of scores do not meet."""
        rows, options = scores.shape[:-1], (self.kind, named(self.comparator, self.art_lambda))
        k, temperature = k.expand(rows), temperature.expand(rows)
        if _check.unseen(scores, k, temperature):
            return topk.unseen(scores, k, temperature, *options)
        select: topk.Select = self._select
        if _check.eager() and options[1] in COMPILED and _native.serves(scores, temperature):
            select = topk.compiled(*options)
        return topk.topk(scores, k, temperature, select, _check.known_finite(scores))

    def _select(self, x: Tensor, weights: Tensor, temperature: Tensor, size: int) -> Tensor:
        """In float64, where steep comparators enlarge rounding errors that nobody sees."""
        kind = topk.kind_for(self.kind, size)
        method = NetworkMethod(kind, self.comparator, self.art_lambda)
        return method.weighted_rows(x.double(), weights.double(), temperature)

    def soft_sort(self, scores: Tensor, temperature: Tensor, descending: bool) -> Tensor:
        return self._run(scores, temperature, descending, scores.shape[-1], matrix=False)

    def soft_permutation(
        self, scores: Tensor, temperature: Tensor, descending: bool, k: int
    ) -> Tensor:
        if k == 0:
            return scores.unsqueeze(-2)[..., :0, :]
        return self._run(scores, temperature, descending, k, matrix=True)

    def _run(
        self, scores: Tensor, temperature: Tensor, descending: bool, k: int, matrix: bool
    ) -> Tensor:
        options = self.kind, named(self.comparator, self.art_lambda), k, matrix

        def plain(scores: Tensor, temperature: Tensor) -> Tensor:
            return reference.output(scores, temperature, descending, *options)

        return fused.run(network.run, scores, temperature, descending, plain, *options)


def _broken(laws: tuple[str, ...], kind: str | None) -> tuple[str, ...]:
    """What a network of this kind breaks, of the laws that the default breaks and of padding."""
    if kind in _WHOLE:
        laws = tuple(law for law in laws if law != _FIRST_ROWS)
    return laws if kind is None or kind in _PADDED else (*laws, *_PADDING)


register(NetworkMethod(), aliases=("diffsort", "difftopk", "sorting_network", "diffsortnets"))

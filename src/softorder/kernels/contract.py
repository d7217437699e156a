"""What every operator gives in the corners: the value, and derivatives of both orders.

One table for all of them, whatever the method, the kernel and the format. tests/laws/corners/ holds
every operator and method to each line, and docs/corners.md shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class Gives(Enum):
    """What a promise can be; the value is how the table says it."""

    NAN = "NaN"
    ZERO = "0"
    ONE = "1"
    MINUS_INFINITY = "-inf"
    WITHOUT = "as without"  #: the row without these scores, whose own part is 0, or the last place
    APPROACHED = "as far up"  #: where a score leads that grows without end
    HARD = "hard"  #: what `so.hard` gives
    EVEN = "even"  #: the same for all scores: k/n, 1/n, the middle place
    FLAT = "→ 0"  #: in scores; k and τ may still count, and what they change is finite
    AS_ZERO = "as at 0"  #: what scores of 0 in their place give
    FINITE = "finite"
    NUMBER = "no NaN"  #: finite as far as the format reaches, then an infinity


@dataclass(frozen=True)
class Promise:
    """Of a result, of its gradient, and of the gradient of that, in scores, k and τ alike."""

    value: Gives
    first: Gives
    second: Gives


@dataclass(frozen=True)
class Corner:
    """A kind of row, and what the operators promise for it.

    A method that breaks one of the laws in `unless` promises no more than that what it gives is
    finite; and so does, where the corner is `smooth`, one with kinks or jumps at ties.
    """

    name: str
    about: str
    promises: Mapping[str, Promise]
    unless: tuple[str, ...] = ()
    smooth: bool = False


TOPK = ("soft_topk", "log_soft_topk")
PLACES = ("soft_rank", "soft_permutation")
VALUES = ("soft_sort", "soft_quantile", "fsum_inverse")
LOSSES = ("permutation_cross_entropy", "top_k_cross_entropy")
OPERATORS = (*TOPK, *PLACES, *VALUES, "fsum", *LOSSES)  #: of which the table speaks


def _some(
    operators: tuple[str, ...], value: Gives, first: Gives, second: Gives
) -> dict[str, Promise]:
    """The same for all of these."""
    return dict.fromkeys(operators, Promise(value, first, second))


def _all(value: Gives, first: Gives, second: Gives) -> dict[str, Promise]:
    return _some(OPERATORS, value, first, second)


_G = Gives

CONTRACT = (
    Corner(
        "nan",
        "A score is NaN",
        _all(_G.NAN, _G.ZERO, _G.ZERO),
    ),
    Corner(
        "minus_infinity",
        "Scores at -inf, or masked out",
        _all(_G.WITHOUT, _G.WITHOUT, _G.WITHOUT),
    ),
    Corner(
        "plus_infinity",
        "A score at +inf",
        _all(_G.APPROACHED, _G.APPROACHED, _G.FINITE),
        unless=(
            "follows_a_permutation",
            "ignores_a_shift",
            "scales_with_scores_and_temperature",
            "works_at_huge_and_tiny_scales",  # a winner, however far, that goes on winning
        ),
    ),
    Corner(
        "largest",
        "Scores at plus and minus the largest finite number",
        {
            **_some(("soft_topk", *PLACES, *VALUES, "fsum"), _G.HARD, _G.FINITE, _G.FINITE),
            **_some(("log_soft_topk", *LOSSES), _G.HARD, _G.NUMBER, _G.NUMBER),
        },
        unless=("cold_limit_is_hard", "scales_with_scores_and_temperature"),
    ),
    Corner(
        "denormal",
        "Scores below the smallest normal number",
        _all(_G.AS_ZERO, _G.AS_ZERO, _G.FINITE),
        unless=("scales_with_scores_and_temperature",),
        smooth=True,
    ),
    Corner(
        "cold",
        "τ → 0",
        {
            **_some(("soft_topk", *PLACES, "fsum"), _G.HARD, _G.FLAT, _G.FINITE),
            **_some(VALUES, _G.HARD, _G.HARD, _G.FINITE),
            **_some(("log_soft_topk", *LOSSES), _G.HARD, _G.FINITE, _G.NUMBER),
        },
        unless=("cold_limit_is_hard",),
    ),
    Corner(
        "warm",
        "τ → ∞",
        {
            **_some((*TOPK, *PLACES, "fsum", *LOSSES), _G.EVEN, _G.FLAT, _G.FINITE),
            **_some(VALUES, _G.FINITE, _G.EVEN, _G.FINITE),
        },
        unless=(
            "warm_limit_is_even",
            "follows_a_permutation",
            "scales_with_scores_and_temperature",
        ),
    ),
    Corner(
        "nothing",
        "k = 0",
        {
            "soft_topk": Promise(_G.ZERO, _G.ZERO, _G.ZERO),
            "log_soft_topk": Promise(_G.MINUS_INFINITY, _G.ZERO, _G.ZERO),
        },
    ),
    Corner(
        "everything",
        "k = n",
        {
            "soft_topk": Promise(_G.ONE, _G.ZERO, _G.ZERO),
            "log_soft_topk": Promise(_G.ZERO, _G.ZERO, _G.ZERO),
        },
        unless=("k_n_takes_everything",),
    ),
    Corner(
        "gap",
        "A whole k between scores that are 100 τ and more apart",
        {
            "soft_topk": Promise(_G.HARD, _G.FINITE, _G.FINITE),
            "log_soft_topk": Promise(_G.HARD, _G.NUMBER, _G.NUMBER),
        },
        unless=("cold_limit_is_hard",),
    ),
)

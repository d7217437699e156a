"""The forms of entropic transport that papers use: how many anchors there are, and what they serve.

The anchors share one plan, so a form is an operator of its own and not only a cut of another.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Form(NamedTuple):
    """What the table of methods says of it."""

    cost: Mapping[str, str]  #: of the operators that it serves
    paper: str
    breaks: Mapping[str, tuple[str, ...]]
    good_for: str


_TWO = {"soft_topk": "O(n)", "log_soft_topk": "O(n)"}
_SORT = {"soft_rank": "O(n √(ε n))", "soft_sort": "O(n √(ε n))"}
_BREAKS_SORT = {
    "soft_rank": ("doubled_scores_double_their_ranks",),
    "soft_sort": ("raising_a_score_lowers_nothing",),
}
_FEWER_ANCHORS = "first_rows_are_the_first_rows"

#: "sinkhorn" is the family: each operator by the form that a paper has for it.
FORMS: Mapping[str, Form] = MappingProxyType(
    {
        "sinkhorn": Form(
            {**_TWO, **_SORT, "soft_permutation": "O(n k²)"},
            "SOFT top-k (Xie et al. 2020)",
            {
                **_BREAKS_SORT,
                "soft_permutation": (_FEWER_ANCHORS, "descending_rows_add_up_to_a_soft_topk"),
            },
            "entropic optimal transport: for each operator the form that a paper has",
        ),
        "sinkhorn_sort": Form(
            {**_SORT, "soft_permutation": "O(n²)"},
            "Sinkhorn sort (Cuturi et al. 2019)",
            _BREAKS_SORT,
            "Sinkhorn sort, with an anchor for every place",
        ),
        "sorted_soft": Form(
            {"soft_permutation": "O(n k²)"},
            "SOFT top-k (Xie et al. 2020)",
            {"soft_permutation": (_FEWER_ANCHORS,)},
            "sorted SOFT top-k, with k + 1 anchors",
        ),
        "soft": Form(
            _TWO,
            "SOFT top-k (Xie et al. 2020)",
            {},
            "SOFT top-k under its own name and ε: logistic with τ = ε/2",
        ),
    }
)

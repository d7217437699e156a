"""Which differences between methods are more than chance: tests on pairs, and on ranks.

Written out here, so that `softorder reproduce` needs no further package; the tests hold each
function against scipy.
"""

from experiments.statistics.paired import (
    LEVEL,
    Difference,
    holm,
    interval,
    midranks,
    paired,
    student_p,
    student_quantile,
    t_test,
    wilcoxon,
)
from experiments.statistics.ranks import (
    Ranking,
    cases_needed,
    concordance,
    friedman,
    nemenyi,
    ranking,
)

__all__ = [
    "LEVEL",
    "Difference",
    "Ranking",
    "cases_needed",
    "concordance",
    "friedman",
    "holm",
    "interval",
    "midranks",
    "nemenyi",
    "paired",
    "ranking",
    "student_p",
    "student_quantile",
    "t_test",
    "wilcoxon",
]

"""The statistics of experiments/, against scipy."""

import math
import random
from itertools import product

import pytest
from scipy import stats

from experiments import statistics as own


def _gaps(seed, n, ties):
    draw = random.Random(seed)
    shift = draw.choice([0.0, 0.5, 2.0])
    gaps = [draw.gauss(shift, 1) for _ in range(n)]
    return [float(round(2 * gap)) for gap in gaps] if ties else gaps


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 10, 99, 100])
def test_student_is_scipys(freedom):
    for t in (-3.0, 0.0, 0.1, 1.0, 2.5, 12.0):
        assert own.student_p(t, freedom) == pytest.approx(
            2 * stats.t.sf(abs(t), freedom), rel=1e-9, abs=1e-14
        )
    for probability in (0.5, 0.9, 0.975, 0.9995):
        quantile = own.student_quantile(probability, freedom)
        assert quantile == pytest.approx(stats.t.ppf(probability, freedom), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("n", [2, 3, 5, 10])
@pytest.mark.parametrize("seed", range(3))
def test_interval_and_t_test_are_scipys(n, seed):
    gaps = _gaps(seed, n, ties=False)
    assert own.t_test(gaps) == pytest.approx(stats.ttest_1samp(gaps, 0).pvalue, rel=1e-9)
    mean, half = own.interval(gaps)
    low, high = stats.t.interval(0.95, n - 1, mean, stats.sem(gaps))
    assert (mean - half, mean + half) == pytest.approx((low, high))


def test_gaps_without_spread_leave_no_doubt():
    assert own.t_test([2.0, 2.0, 2.0]) == 0
    assert own.t_test([0.0, 0.0, 0.0]) == 1
    assert math.isnan(own.t_test([2.0]))
    assert own.interval([2.0]) == (2.0, math.inf)


@pytest.mark.parametrize("n", [1, 2, 5, 8, 12])
@pytest.mark.parametrize("seed", range(4))
def test_wilcoxon_is_scipys(n, seed):
    gaps = _gaps(seed, n, ties=False)
    expected = stats.wilcoxon(gaps, method="exact").pvalue
    assert own.wilcoxon(gaps) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_wilcoxon_with_ties_and_zeros_is_the_sum_over_all_signs(seed):
    gaps = [gap for gap in _gaps(seed, 9, ties=True) if gap]
    ranks = stats.rankdata([abs(gap) for gap in gaps])
    middle = ranks.sum() / 2
    away = abs(sum(r for r, gap in zip(ranks, gaps, strict=True) if gap > 0) - middle)
    sums = [
        sum(r for r, s in zip(ranks, p, strict=True) if s)
        for p in product([0, 1], repeat=len(gaps))
    ]
    expected = sum(abs(total - middle) >= away - 1e-9 for total in sums) / len(sums)
    assert own.wilcoxon([*gaps, 0.0]) == pytest.approx(expected)
    assert own.wilcoxon([0.0, 0.0]) == 1


def test_few_seeds_cannot_be_significant_by_wilcoxon():
    assert own.wilcoxon([1.0] * 5) == pytest.approx(2 / 2**5)
    assert own.wilcoxon([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) == pytest.approx(2 / 2**6)


def test_holm_multiplies_and_never_falls():
    assert own.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert own.holm([0.6, 0.02, 0.5]) == pytest.approx([1.0, 0.06, 1.0])
    assert own.holm([]) == []


def test_pairs_are_made_of_the_seeds_that_both_have():
    found = own.paired({0: 3.0, 1: 5.0, 2: 4.5, 7: 100.0}, {0: 1.0, 1: 2.0, 2: 3.0, 3: -50.0})
    expected = stats.ttest_rel([3.0, 5.0, 4.5], [1.0, 2.0, 3.0])
    assert (found.seeds, found.t) == (3, pytest.approx(expected.pvalue))
    assert found.mean - found.half == pytest.approx(expected.confidence_interval().low)
    assert own.paired({0: 1.0}, {1: 1.0}).seeds == 0


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize(("cases", "methods"), [(5, 3), (10, 6), (22, 13)])
def test_friedman_is_scipys(cases, methods, ties):
    columns = [_gaps(100 + m, cases, ties) for m in range(methods)]
    rows = [own.midranks(case) for case in zip(*columns, strict=True)]
    assert rows[0] == pytest.approx(list(stats.rankdata([column[0] for column in columns])))
    expected = stats.friedmanchisquare(*columns).pvalue
    assert own.friedman(rows) == pytest.approx(expected, rel=1e-9)


def test_friedman_of_equal_methods_is_one():
    assert own.friedman([[1.5, 1.5], [1.5, 1.5]]) == 1


@pytest.mark.parametrize("methods", [2, 3, 5, 10, 29])
def test_nemenyi_has_the_quantile_of_the_studentized_range(methods):
    q = stats.studentized_range.ppf(0.95, methods, math.inf) / math.sqrt(2)
    expected = q * math.sqrt(methods * (methods + 1) / (6 * 12))
    assert own.nemenyi(methods, 12) == pytest.approx(expected, rel=1e-6)


def test_nemenyi_has_the_figures_of_demsars_table():
    """Table 5(a) there, q at 5 %."""
    for methods, q in {2: 1.960, 3: 2.343, 4: 2.569, 5: 2.728, 10: 3.164}.items():
        scale = math.sqrt(methods * (methods + 1) / 6)
        assert own.nemenyi(methods, 1) / scale == pytest.approx(q, abs=2e-3)


def test_a_ranking_joins_what_cannot_be_told_apart():
    cases = 12
    values = {
        "worst": [9.0 + i for i in range(cases)],
        "one": [1.0 + i + 0.01 * (-1) ** i for i in range(cases)],
        "two": [1.0 + i for i in range(cases)],
    }
    found = own.ranking(values, higher=False)
    assert list(found.ranks)[-1] == "worst"
    assert found.ranks == {"one": 1.5, "two": 1.5, "worst": 3.0}
    assert found.cases == cases
    assert found.p < 0.01
    assert found.alike == [("one", "two")]
    assert found.wilcoxon == [("one", "two")]
    assert next(iter(own.ranking(values, higher=True).ranks)) == "worst"


def test_methods_that_fail_are_last_together():
    values = {"good": [1.0, 2.0], "bad": [math.inf, 3.0], "worse": [math.inf, math.inf]}
    found = own.ranking(values, higher=False)
    assert found.ranks == {"good": 1.0, "bad": 2.25, "worse": 2.75}


@pytest.mark.parametrize("seed", range(5))
def test_concordance_gives_kendalls_tau(seed):
    ours, theirs = (
        {str(i): g for i, g in enumerate(_gaps(s, 8, False))} for s in (seed, seed + 50)
    )
    same, other = own.concordance(ours, theirs)
    tau = stats.kendalltau(list(ours.values()), list(theirs.values())).statistic
    assert (same - len(other)) / (same + len(other)) == pytest.approx(tau)
    assert all(theirs[a] < theirs[b] and ours[a] > ours[b] for a, b in other)

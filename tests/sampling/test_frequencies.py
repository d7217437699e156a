"""Frequencies of units, of pairs and of whole subsets, beside the probabilities that are stated.

Seeds are fixed. Were they not, each test would fail by chance with a probability of 10^-6: its
p-values are compared with 10^-6 divided by their number. About 200 tests stand here, the slow ones
included, so that all of them together would raise a false alarm in one of 5,000 runs.
"""

import math
import random
from itertools import combinations

import numpy as np
import pytest
import torch
from scipy import stats

import softorder as so
from softorder.sampling import find
from tests.oracles import subsets

_DESIGNS = [row.name for row in so.sampling.designs()]
_SCORED = [row.name for row in so.sampling.designs() if row.log_prob]
_FALSE_ALARM = 1e-6
_OFTEN = 20  # times that a thing has to be expected, and its opposite, for a chi-square
_TINY = 1e-12


# ---- problems ------------------------------------------------------------------------------------


def _problem(seed):
    """Free probabilities of a random number of units, with a whole sum k, and k."""
    choose, generator = random.Random(seed), torch.Generator().manual_seed(seed)
    n = choose.randint(3, 5)
    k = choose.randint(1, n - 1)
    scores = choose.choice((0.5, 2.0)) * torch.randn(n, generator=generator, dtype=torch.float64)
    return so.soft_topk(scores, k, method="logistic"), k


#: Beside the free units: some that are certain, impossible, or nearly so.
_ENDS = {
    "none": [],
    "certain": [0.0, 1.0],
    "nearly": [_TINY, 1 - _TINY],
}


def _with_ends(free, ends):
    probs = torch.cat([free, torch.tensor(_ENDS[ends], dtype=free.dtype)])
    return probs, round(probs.sum().item())


# ---- what is stated ------------------------------------------------------------------------------


def _law(design, probs, k):
    """{the units drawn: its probability}, without the design's own help where that can be."""
    probs = probs.numpy()
    if design in ("poisson", "systematic", "pivotal", "pivotal_ordered"):
        return getattr(subsets, design)(probs)
    sure = tuple(np.flatnonzero(probs == 1))
    free = np.flatnonzero((probs > 0) & (probs < 1))
    rows, chances = subsets.vectors(len(free), k - len(sure)), _fixed(design, probs[free], k, sure)
    drawn = [tuple(sorted((*sure, *free[x > 0].tolist()))) for x in rows]
    return dict(zip(drawn, chances, strict=True))


def _fixed(design, probs, k, sure):
    k -= len(sure)
    if design in ("brewer", "gumbel_topk", "sampford"):
        oracle = subsets.successive if design == "gumbel_topk" else getattr(subsets, design)
        return oracle(probs, k)
    made = find(design).from_probs(torch.from_numpy(probs), torch.tensor(k))
    return made.log_prob(torch.from_numpy(subsets.vectors(len(probs), k))).exp().numpy()


# ---- p-values ------------------------------------------------------------------------------------


def _of_counts(counts, chances, draws):
    """Of a table: Pearson's chi-square of what is common, a binomial test of the rest as one."""
    counts, expected = np.asarray(counts, float), draws * np.asarray(chances, float)
    common = expected >= _OFTEN
    yield stats.binomtest(
        int(counts[~common].sum()), draws, _chance(expected[~common], draws)
    ).pvalue
    if common.sum() > 1:
        inside = counts[common].sum() * expected[common] / expected[common].sum()
        yield stats.chisquare(counts[common], inside).pvalue


def _chance(expected, draws):
    return min(1.0, max(0.0, expected.sum() / draws))


def _of_means(values, mean, covariance):
    """Hotelling's chi-square of means whose covariance is known, and binomial tests of the rare."""
    draws, spread = len(values), np.diag(covariance)
    common = draws * spread >= _OFTEN
    for at in np.flatnonzero(~common):
        chance = min(1.0, max(0.0, mean[at]))
        yield stats.binomtest(int(values[:, at].sum()), draws, chance).pvalue
    off = (values.mean(0) - mean)[common]
    sizes, axes = np.linalg.eigh(covariance[np.ix_(common, common)])
    kept = draws * sizes >= _OFTEN  # the others are fixed, as the number of ones is, or rare
    if kept.any():
        statistic = draws * ((off @ axes[:, kept]) ** 2 / sizes[kept]).sum()
        yield stats.chi2.sf(statistic, kept.sum())


def _pairs(x):
    return np.stack([x[:, i] * x[:, j] for i, j in combinations(range(x.shape[1]), 2)], 1)


def _judge(x, law):
    """Every p-value of these draws: units, pairs, subsets."""
    n = x.shape[1]
    rows = np.array([[float(i in drawn) for i in range(n)] for drawn in law]).reshape(-1, n)
    chances = np.array([*law.values()])
    assert abs(chances.sum() - 1) < 1e-6
    for of in (np.asarray, _pairs):
        table = of(rows)
        mean = chances @ table
        covariance = table.T @ (chances[:, None] * table) - np.outer(mean, mean)
        yield from _of_means(of(x), mean, covariance)
    code = 2.0 ** np.arange(n)
    found = dict(zip(*np.unique(x @ code, return_counts=True), strict=True))
    counts = [found.pop(value, 0) for value in rows @ code]
    yield from _of_counts([*counts, sum(found.values())], [*chances, 0.0], len(x))


def _accept(p_values):
    p_values = list(p_values)
    assert min(p_values) * len(p_values) > _FALSE_ALARM, sorted(p_values)[:3]


# ---- tests ---------------------------------------------------------------------------------------


def _runs():
    """By default one problem of each design, with ends that are nearly certain."""
    for design in _DESIGNS:
        for number, ends in enumerate(_ENDS):
            first = "none" if design == "gumbel_topk" else "nearly"
            for seed in range(number, 12, len(_ENDS)):
                again = ends != first or seed >= len(_ENDS)
                yield pytest.param(design, seed, ends, marks=[pytest.mark.slow] * again)


def _designs(*quick):
    """All of them; by default these alone."""
    return [pytest.param(d, marks=[pytest.mark.slow] * (d not in quick)) for d in _DESIGNS]


@pytest.mark.parametrize(("design", "seed", "ends"), list(_runs()))
def test_units_pairs_and_subsets(design, seed, ends):
    probs, k = _with_ends(_problem(seed)[0], ends)
    if design == "gumbel_topk" and ends != "none":
        pytest.skip("nothing is certain in proportional draws")
    x = so.sampling.sample(probs, design=design, sample_shape=(20_000,), generator=_seeded(seed))
    _accept(_judge(x.numpy(), _law(design, probs, k)))


@pytest.mark.parametrize("design", _designs("pivotal", "pareto_corrected"))
def test_a_law_that_is_a_little_off_is_noticed(design):
    probs, k = _problem(3)
    x = so.sampling.sample(probs, design=design, sample_shape=(20_000,), generator=_seeded(3))
    law = _law(design, probs, k)
    most = max(law, key=law.get)
    wrong = {drawn: (p + 0.1 if drawn == most else p) / 1.1 for drawn, p in law.items()}
    with pytest.raises(AssertionError):
        _accept(_judge(x.numpy(), wrong))


@pytest.mark.parametrize("design", _SCORED)
@pytest.mark.parametrize(
    ("seed", "k"),
    [
        (2, 1.4),
        *(pytest.param(s, k, marks=pytest.mark.slow) for s, k in ((1, 2), (3, 3), (4, 2.7))),
    ],
)
def test_khot_draws_what_it_scores(design, seed, k):
    """Of logits, also for a k that is not whole: every subset by its own log_prob."""
    if k % 1 and not (find(design).exact or find(design).phantom):
        pytest.skip(f"{design} takes whole k")
    logits = torch.randn(5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    law = so.distributions.KHot(k, logits=logits, design=design)
    torch.manual_seed(seed)
    x = law.sample((20_000,)).numpy()
    sizes = range(6) if design == "poisson" else {math.floor(k), math.ceil(k)}
    rows = np.concatenate([subsets.vectors(5, size) for size in sizes])
    chances = law.log_prob(torch.from_numpy(rows)).exp().numpy()
    _accept(_judge(x, {tuple(np.flatnonzero(r)): p for r, p in zip(rows, chances, strict=True)}))


@pytest.mark.parametrize("design", _DESIGNS)
@pytest.mark.parametrize("k", [0, 6])
def test_khot_of_nothing_and_of_everything(design, k):
    logits = torch.randn(3, 6, generator=_seeded(0), dtype=torch.float64)
    if design == "poisson":
        law = so.distributions.KHot(probs=torch.full_like(logits, k / 6), design=design)
    else:
        law = so.distributions.KHot(k, logits=logits, design=design)
    x = law.sample((50,))
    assert (x == k / 6).all()


_PAIRED = [row.name for row in so.sampling.designs() if row.joint]


@pytest.mark.slow
@pytest.mark.parametrize("design", _PAIRED)
@pytest.mark.parametrize("n", [12, 40])
def test_units_and_pairs_of_long_rows(design, n):
    """Where subsets are too many to be listed, by what the design says of units and pairs."""
    k, draws = n // 3, 20_000
    scores = 1.5 * torch.randn(n, generator=_seeded(n), dtype=torch.float64)
    probs = so.soft_topk(scores, k, method="logistic")
    made = find(design).from_probs(probs, torch.tensor(k))
    x = made.sample((draws,), generator=_seeded(n)).numpy()
    pairs, units = made.joint().numpy(), made.inclusion().numpy()
    p_values = list(_of_means(x, units, pairs - np.outer(units, units)))
    together = x.T @ x
    for i, j in combinations(range(n), 2):
        p_values.append(stats.binomtest(int(together[i, j]), draws, pairs[i, j]).pvalue)
    _accept(p_values)


def test_systematic_draws_do_not_depend_on_rounding(monkeypatch):
    """The largest number below 1, added to a sum, is rounded up: it must not draw a unit more."""
    probs = torch.tensor([*[0.1] * 30, 0.0, 1.0, 0.0], dtype=torch.float64)
    design = so.sampling.Systematic(probs, torch.tensor(4))
    for level in (0.0, 1 - 2.0**-53, 0.5):
        monkeypatch.setattr(
            design, "_uniform", lambda shape, _, at=level: probs.new_full(shape, at)
        )
        x = design.sample((2,))
        assert ((x == 0) | (x == 1)).all()
        assert (x.sum(-1) == 4).all()
        assert (x[:, probs == 0] == 0).all()


def _seeded(seed):
    return torch.Generator().manual_seed(seed)


# ---- the same draws from the same seed -----------------------------------------------------------


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize("design", _DESIGNS)
def test_draws_do_not_depend_on_the_number_of_threads(design, threads):
    """Of a generator, and of torch's own; enough units that every thread has work."""
    rows, n = (200, 60) if design in ("brewer", "pivotal_ordered") else (8, 2000)
    logits = torch.randn(rows, n, generator=_seeded(1))
    found = []
    for count in (1, 2, 4):
        threads(count)
        probs = so.soft_topk(logits, 20, method="logistic")
        given = so.sampling.sample(probs, design=design, sample_shape=(3,), generator=_seeded(2))
        torch.manual_seed(3)
        found.append((given, so.distributions.KHot(20, logits=logits, design=design).sample((3,))))
    for given, drawn in found[1:]:
        assert torch.equal(given, found[0][0])
        assert torch.equal(drawn, found[0][1])

"""What every design promises, and the exact laws of those that have one."""

import numpy as np
import pytest
import torch
from scipy import stats
from torch.autograd import gradcheck

import softorder as so
from softorder.sampling import Design, find, register
from tests.oracles import subsets

_DESIGNS = [row.name for row in so.sampling.designs()]
_EXACT = [row.name for row in so.sampling.designs() if row.exact]
_FIXED = [row.name for row in so.sampling.designs() if row.fixed_size]
_SCORED = ["conditional_poisson", "pareto", "pareto_adjusted", "pareto_corrected", "sampford"]
_ERROR_RATE = 1e-6  # of each statistical test, if the seeds were not fixed


def _generator(seed=0):
    return torch.Generator().manual_seed(seed)


def _probs(n, k, scale=1.0, seed=1, rows=(), dtype=torch.float64):
    scores = scale * torch.randn(*rows, n, dtype=torch.float64, generator=_generator(seed))
    return so.soft_topk(scores, k, method="logistic").to(dtype)


def _deviations(x, probs):
    """How many standard errors the frequencies are off."""
    error = (probs * (1 - probs) / len(x)).sqrt()
    return (x.double().mean(0) - probs).abs() / error


# ---- every design -------------------------------------------------------------------------------


@pytest.mark.parametrize("design", _DESIGNS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_shapes_and_dtypes(design, dtype):
    probs = torch.tensor([0.5, 0.25, 0.75, 0.5], dtype=dtype).expand(3, 1, 4)
    x = so.sampling.sample(probs, design=design, sample_shape=(2, 5), generator=_generator())
    assert x.shape == (2, 5, 3, 1, 4)
    assert x.dtype == dtype
    assert ((x == 0) | (x == 1)).all()
    if find(design).fixed_size:
        assert (x.sum(-1) == 2).all()


@pytest.mark.parametrize("design", _DESIGNS)
def test_any_axis(design):
    probs = _probs(6, 2, rows=(3,))
    rows = so.sampling.sample(probs, design=design, sample_shape=(4,), generator=_generator())
    columns = so.sampling.sample(
        probs.T, design=design, sample_shape=(4,), dim=0, generator=_generator()
    )
    assert torch.equal(rows.transpose(-1, -2), columns)


@pytest.mark.parametrize("design", _DESIGNS)
def test_a_generator_makes_draws_reproducible(design):
    probs = _probs(30, 10, rows=(4,))
    draws = [
        so.sampling.sample(probs, design=design, sample_shape=(3,), generator=_generator(seed))
        for seed in (0, 0, 1)
    ]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


@pytest.mark.parametrize("design", _DESIGNS)
def test_what_is_certain_is_drawn_and_what_is_impossible_is_not(design):
    probs = torch.tensor([1.0, 0.0, 0.5, 0.5, 0.0, 1.0, 1e-30, 0.25, 0.75], dtype=torch.float64)
    if design == "gumbel_topk":  # draws in proportion to probs: nothing is certain
        probs = torch.where(probs == 1, 0.0, probs)
        probs[-1] += 0.0
    x = so.sampling.sample(probs, design=design, sample_shape=(2000,), generator=_generator())
    assert (x[:, probs == 0] == 0).all()
    assert (x[:, probs == 1] == 1).all()


@pytest.mark.parametrize("design", _DESIGNS)
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_no_choice_at_all(design, value):
    probs = torch.full((2, 5), value)
    x = so.sampling.sample(probs, design=design, sample_shape=(3,))
    assert torch.equal(x, probs.expand(3, 2, 5))


@pytest.mark.parametrize("design", _DESIGNS)
def test_single_and_no_units(design):
    assert so.sampling.sample(torch.ones(2, 1), design=design).tolist() == [[1], [1]]
    assert so.sampling.sample(torch.ones(0, 3), design=design).shape == (0, 3)


@pytest.mark.parametrize("design", _FIXED)
def test_rows_of_different_sizes(design):
    probs = torch.stack([_probs(9, k, seed=k) for k in (1, 4, 8)])
    x = so.sampling.sample(probs, design=design, sample_shape=(200,), generator=_generator())
    assert (x.sum(-1) == torch.tensor([1.0, 4.0, 8.0])).all()


@pytest.mark.parametrize("design", _EXACT)
def test_hits_its_probabilities(design):
    probs = _probs(12, 5, scale=1.5)
    x = so.sampling.sample(probs, design=design, sample_shape=(40_000,), generator=_generator(3))
    assert _deviations(x, probs).max() < 5


@pytest.mark.slow
@pytest.mark.parametrize("design", _EXACT)
def test_hits_its_probabilities_in_a_million_draws(design):
    probs = _probs(20, 7, scale=1.5)
    x = so.sampling.sample(probs, design=design, sample_shape=(10**6,), generator=_generator(3))
    assert _deviations(x, probs).max() < 5


@pytest.mark.parametrize("design", ["gumbel_topk", "pareto"])
def test_a_design_that_is_not_exact_is_not(design):
    probs = _probs(5, 2, scale=3.0)
    x = so.sampling.sample(probs, design=design, sample_shape=(100_000,), generator=_generator())
    assert _deviations(x, probs).max() > 7


_LARGE = [(784, 50, 2000), (1000, 500, 1000)]


@pytest.mark.parametrize(
    "design", ["conditional_poisson", "pareto_adjusted", "pareto_corrected", "pivotal"]
)
@pytest.mark.parametrize(("n", "k", "draws"), _LARGE)
def test_frequencies_of_large_rows(design, n, k, draws):
    """With much entropy, Σ (freq - π)²/(π(1-π)/draws) is nearly chi-square with n - 1 degrees."""
    probs = _probs(n, k)
    x = so.sampling.sample(probs, design=design, sample_shape=(draws,), generator=_generator(5))
    assert (x.sum(-1) == k).all()
    statistic = _deviations(x, probs).square().sum().item()
    low, high = stats.chi2.ppf([_ERROR_RATE, 1 - _ERROR_RATE], n - 1)
    assert low < statistic < high


@pytest.mark.slow
@pytest.mark.parametrize("design", _EXACT)
@pytest.mark.parametrize(("n", "k", "draws"), _LARGE)
def test_every_design_on_large_rows(design, n, k, draws):
    probs = _probs(n, k)
    x = so.sampling.sample(probs, design=design, sample_shape=(draws,), generator=_generator(5))
    assert (x.sum(-1) == k).all() or design == "poisson"
    assert _deviations(x, probs).max() < 6  # 1000 units: 2e-6


# ---- laws ---------------------------------------------------------------------------------------


def _law(design, probs, k):
    """The law of a design, by enumeration."""
    if design == "conditional_poisson":
        working = so.sampling.ConditionalPoisson.from_probs(probs, torch.tensor(k))
        return subsets.conditional_poisson(working.working_logits().numpy(), k)[0]
    if design == "pareto_adjusted":
        working = find(design).from_probs(probs, torch.tensor(k))
        return subsets.pareto(torch.sigmoid(working._fitted).numpy(), k)
    if design == "pareto_corrected":
        working = find(design).from_probs(probs, torch.tensor(k))
        return subsets.pareto(torch.sigmoid(working._logits()).numpy(), k)
    oracles = {
        "brewer": subsets.brewer,
        "gumbel_topk": subsets.successive,
        "pareto": subsets.pareto,
        "sampford": subsets.sampford,
    }
    return oracles[design](probs.numpy(), k)


@pytest.mark.parametrize("design", [*_SCORED, "brewer", "gumbel_topk"])
def test_the_law_of_the_draws(design):
    n, k, draws = 5, 2, 50_000
    probs = _probs(n, k)
    x = so.sampling.sample(probs, design=design, sample_shape=(draws,), generator=_generator(2))
    rows, law = subsets.vectors(n, k), _law(design, probs, k)
    code = 2.0 ** np.arange(n)
    found = dict(zip(*np.unique(x.numpy() @ code, return_counts=True), strict=True))
    counts = [found.get(value, 0) for value in rows @ code]
    assert sum(counts) == draws
    assert stats.chisquare(counts, draws * law).pvalue > _ERROR_RATE


@pytest.mark.parametrize("design", _SCORED)
@pytest.mark.parametrize(("n", "k", "scale"), [(3, 1, 3), (5, 2, 1), (6, 5, 2)])
def test_what_is_told_of_the_law(design, n, k, scale):
    probs = _probs(n, k, scale)
    law, rows = _law(design, probs, k), subsets.vectors(n, k)
    made = find(design).from_probs(probs, torch.tensor(k))

    def close(found, wanted):
        torch.testing.assert_close(found, torch.as_tensor(wanted), rtol=1e-9, atol=1e-10)

    close(made.log_prob(torch.as_tensor(rows)).exp(), law)
    close(made.inclusion(), law @ rows)
    close(made.joint(), rows.T @ (law[:, None] * rows))
    if find(design).exact:
        close(probs, law @ rows)


@pytest.mark.parametrize("design", _SCORED)
def test_nothing_and_everything_have_probability_one(design):
    for k in (0, 4):
        probs = torch.full((4,), k / 4, dtype=torch.float64)
        made = find(design).from_probs(probs, torch.tensor(k))
        assert made.log_prob(probs).item() == 0
        assert torch.equal(made.inclusion(), probs)
        assert torch.equal(made.joint(), torch.full((4, 4), k / 4, dtype=torch.float64))


@pytest.mark.parametrize("design", ["pareto", "sampford", "pareto_adjusted", "pareto_corrected"])
def test_derivatives(design):
    logits = torch.randn(5, dtype=torch.float64, generator=_generator()).requires_grad_()
    x = torch.tensor([1.0, 0, 1, 0, 0], dtype=torch.float64)

    def made(theta):
        probs = so.soft_topk(theta, 2, method="logistic")
        return find(design).from_probs(probs, torch.tensor(2))

    assert gradcheck(lambda v: made(v).log_prob(x), logits)
    if design != "pareto_adjusted":  # its inclusion is given, and its joint takes the same steps
        assert gradcheck(lambda v: made(v).inclusion(), logits)
        assert gradcheck(lambda v: made(v).joint(), logits)


@pytest.mark.parametrize(
    "design", ["conditional_poisson", "pareto", "pareto_corrected", "sampford"]
)
def test_derivatives_of_entropy_and_kl(design):
    rows = torch.randn(2, 4, dtype=torch.float64, generator=_generator())
    theta, other = (row.clone().requires_grad_() for row in rows)

    def made(logits):
        probs = so.soft_topk(logits, 2, method="logistic")
        return find(design).from_probs(probs, torch.tensor(2))

    assert gradcheck(lambda v: made(v).entropy(), theta)
    assert gradcheck(lambda v, w: made(v).kl(made(w)), (theta, other))


@pytest.mark.parametrize("design", _SCORED)
@pytest.mark.parametrize("scale", [1.0, 8.0, 30.0])
def test_entropy_and_kl_are_sums_over_all_subsets(design, scale):
    """Also of laws that are nearly certain."""
    k, rows = 3, torch.as_tensor(subsets.vectors(7, 3))
    laws = [find(design).from_probs(_probs(7, k, scale, seed), torch.tensor(k)) for seed in (1, 2)]
    p, q = (law.log_prob(rows) for law in laws)
    entropy, divergence = -(p.exp() * p).sum(), (p.exp() * (p - q)).sum()
    assert abs(laws[0].entropy() - entropy) < 1e-9
    assert abs(laws[0].kl(laws[1]) - divergence) < 1e-9 * (1 + divergence)
    assert abs(laws[0].kl(laws[0])) < 1e-9


@pytest.mark.parametrize("design", _SCORED)
def test_entropy_with_units_that_are_certain(design):
    free = torch.tensor([0.75, 0.5, 0.25, 0.5], dtype=torch.float64)
    ends = torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64)
    short = find(design).from_probs(free, torch.tensor(2))
    long = find(design).from_probs(torch.cat([free, ends]), torch.tensor(4))
    torch.testing.assert_close(long.entropy(), short.entropy())
    assert abs(long.kl(long)) < 1e-12
    other = find(design).from_probs(torch.cat([free.flip(0), ends]), torch.tensor(4))
    twin = find(design).from_probs(free.flip(0), torch.tensor(2))
    torch.testing.assert_close(long.kl(other), short.kl(twin))
    for k in (0, 4):
        fixed = find(design).from_probs(torch.full((4,), k / 4).double(), torch.tensor(k))
        assert fixed.entropy() == 0
        assert fixed.kl(fixed) == 0


@pytest.mark.parametrize("design", ["pareto", "pareto_corrected", "sampford"])
def test_no_law_has_more_entropy_than_conditional_poisson(design):
    probs = _probs(300, 90, dtype=torch.float32)
    law = find(design).from_probs(probs, torch.tensor(90))
    most = so.sampling.ConditionalPoisson.from_probs(law.inclusion().double(), torch.tensor(90))
    assert law.entropy().dtype == torch.float32
    assert abs(law.entropy() - most.entropy()) < 1e-4
    double = find(design).from_probs(probs.double(), torch.tensor(90))
    most = so.sampling.ConditionalPoisson.from_probs(double.inclusion(), torch.tensor(90))
    assert 0 < most.entropy() - double.entropy() < 1e-6


def test_pareto_is_nearly_exact_for_large_rows():
    probs = _probs(1000, 300)
    found = so.sampling.Pareto(probs, torch.tensor(300)).inclusion()
    assert 0 < (found - probs).abs().max() < 1e-5
    assert abs(found.sum().item() - 300) < 1e-9


def test_systematic_spreads():
    """Every first part of the units gets its share, up to less than one unit."""
    probs = _probs(30, 11)
    for design in ("systematic", "pivotal_ordered"):
        x = so.sampling.sample(probs, design=design, sample_shape=(300,), generator=_generator())
        assert ((x - probs).cumsum(-1).abs() < 1 + 1e-9).all()


# ---- the registry -------------------------------------------------------------------------------


@pytest.mark.parametrize("design", _DESIGNS)
def test_a_design_has_what_it_offers_and_says_what_it_lacks(design):
    probs = _probs(5, 2)
    made = find(design).from_probs(probs, torch.tensor(2))
    x = made.sample(generator=_generator())
    calls = {
        "inclusion": made.inclusion,
        "log_prob": lambda: made.log_prob(x),
        "joint": made.joint,
        "entropy": made.entropy,
        "kl": lambda: made.kl(made),
    }
    for what, call in calls.items():
        if what in find(design).offers:
            assert call().isfinite().all()
        else:
            with pytest.raises(NotImplementedError, match=f"{design}' has no {what}"):
                call()


def test_the_table_prints():
    lines = str(so.sampling.designs()).splitlines()
    assert len(lines) == len(_DESIGNS) + 2
    assert lines[0].split()[:2] == ["name", "takes"]


def test_a_name_is_taken_once():
    class Twice(Design):
        name = "pivotal"

    with pytest.raises(ValueError, match="already"):
        register(Twice)


def test_a_claim_needs_a_method():
    class Boaster(Design):
        name = "boaster"
        offers = ("entropy",)

    with pytest.raises(TypeError, match="Boaster offers entropy"):
        register(Boaster)
    assert "boaster" not in {row.name for row in so.sampling.designs()}


def test_wrong_arguments():
    probs = torch.tensor([0.5, 0.5])
    with pytest.raises(ValueError, match=r"design must be one of .* did you mean 'pareto'"):
        so.sampling.sample(probs, design="paretto")
    with pytest.raises(TypeError, match="design must be a name or a subclass of Design"):
        so.sampling.sample(probs, design=3)
    with pytest.raises(ValueError, match=r"probs must be between 0 and 1, but got 1\.5"):
        so.sampling.sample(torch.tensor([1.5, 0.5]))
    with pytest.raises(ValueError, match="probs must be between 0 and 1, but got nan"):
        so.sampling.sample(torch.tensor([torch.nan, 0.5]))
    with pytest.raises(TypeError, match="probs must have one of the dtypes"):
        so.sampling.sample(torch.tensor([1, 0]))

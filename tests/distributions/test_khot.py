"""KHot: torch.distributions' conventions, the phantom unit, and one law for all that it tells."""

import math

import pytest
import torch
from torch.autograd import gradcheck
from torch.distributions import kl_divergence

import softorder as so
from softorder.distributions import KHot
from tests.user_density import Student

_DESIGNS = [row.name for row in so.sampling.designs()]
_EXACT = [row.name for row in so.sampling.designs() if row.exact]
_SCORED = [row.name for row in so.sampling.designs() if row.log_prob]
_DENSITIES = ["laplace", "logistic", "normal", "cauchy", "uniform"]


def _generator(seed=0):
    return torch.Generator().manual_seed(seed)


def _logits(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=_generator(seed))


def _close(found, wanted, rtol=1e-10, atol=1e-12):
    torch.testing.assert_close(found, wanted, rtol=rtol, atol=atol)


# ---- torch's conventions ------------------------------------------------------------------------


@pytest.mark.parametrize("design", _DESIGNS)
def test_shapes(design):
    law = KHot(2, logits=_logits(3, 1, 5), design=design)
    assert law.batch_shape == (3, 1)
    assert law.event_shape == (5,)
    x = law.sample((4, 2), generator=_generator())
    assert x.shape == (4, 2, 3, 1, 5)
    assert law.support.check(x).all()
    assert law.rsample((4,)).shape == (4, 3, 1, 5)
    if design in _SCORED:
        assert law.log_prob(x).shape == (4, 2, 3, 1)


def test_k_per_row_broadcasts():
    law = KHot(torch.tensor([1, 2, 3]), logits=_logits(4, 3, 5))
    assert law.batch_shape == (4, 3)
    assert (law.sample((7,)).sum(-1) == torch.tensor([1.0, 2.0, 3.0])).all()
    _close(law.mean.sum(-1), torch.tensor([1.0, 2, 3], dtype=torch.float64).expand(4, 3))


@pytest.mark.parametrize("k", [2, 2.5, None])
def test_expand(k):
    law = KHot(k, logits=_logits(5))
    wide = law.expand((3, 2))
    assert wide.batch_shape == (3, 2)
    _close(wide.mean, law.mean.expand(3, 2, 5))
    _close(wide.entropy(), law.entropy().expand(3, 2))
    assert wide.sample((4,)).shape == (4, 3, 2, 5)


def test_validation():
    logits = torch.zeros(4)
    with pytest.raises(ValueError, match=r"exactly one of probs and logits must be given, .* none"):
        KHot(2)
    with pytest.raises(ValueError, match=r"exactly one of .* probs, logits"):
        KHot(2, logits, logits)
    with pytest.raises(ValueError, match="k must be between 0 and 4"):
        KHot(5, logits=logits)
    with pytest.raises(ValueError, match="probs must sum to k"):
        KHot(2, torch.full((4,), 0.4))
    with pytest.raises(ValueError, match="probs must be between 0 and 1"):
        KHot(2, torch.tensor([1.5, 0.5]))
    with pytest.raises(ValueError, match="method must be one of"):
        KHot(2, logits=logits, method="gauss")
    with pytest.raises(TypeError, match="logits must be a tensor"):
        KHot(2, logits=[1.0, 2.0])
    with pytest.raises(ValueError, match="logits"):
        KHot(2, logits=torch.tensor([math.nan, 0.0, 1.0]), validate_args=True)
    law = KHot(2, logits=logits, validate_args=True)  # torch.compile turns the default off
    for wrong in ([1.0, 0, 0, 0], [0.5, 0.5, 1, 0], [1.0, 1, 1, 0]):
        with pytest.raises(ValueError, match="within the support"):
            law.log_prob(torch.tensor(wrong))
    free = KHot(2, logits=logits, validate_args=False)
    assert free.log_prob(torch.tensor([1.0, 0, 0, 0])) == -math.inf


def test_a_design_that_is_not_exact_wants_a_whole_k():
    for design in ("pareto", "gumbel_topk"):
        with pytest.raises(ValueError, match=rf"k must be whole for the design '{design}'.*2\.5"):
            KHot(2.5, logits=torch.zeros(5), design=design).sample()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_dtypes(dtype):
    law = KHot(2, logits=torch.tensor([1.0, 0.0, -1.0, 0.5], dtype=dtype))
    x = law.sample()
    for value in (x, law.mean, law.variance, law.entropy(), law.log_prob(x), law.rsample()):
        assert value.dtype == dtype


def test_enumerate_support():
    law = KHot(2, logits=_logits(3, 4))
    values = law.enumerate_support()
    assert values.shape == (6, 3, 4)
    assert law.enumerate_support(expand=False).shape == (6, 1, 4)
    assert len({tuple(v) for v in values[:, 0].tolist()}) == 6
    assert len(KHot(1.5, logits=_logits(4)).enumerate_support()) == 4 + 6
    assert len(KHot(1, logits=_logits(4), design="poisson").enumerate_support()) == 16
    with pytest.raises(NotImplementedError, match="same k"):
        KHot(torch.tensor([1, 2]), logits=_logits(2, 4)).enumerate_support()
    with pytest.raises(ValueError, match="number of subsets to list"):
        KHot(20, logits=_logits(40)).enumerate_support()


# ---- the law that is sampled is the law that is scored ------------------------------------------


@pytest.mark.parametrize(
    ("design", "k"), [(d, k) for d in _SCORED for k in (3, 2.6, None) if d != "pareto" or k == 3]
)
def test_moments_follow_from_log_prob(design, k):
    law = KHot(k, logits=_logits(6), design=design)
    x = law.enumerate_support()
    chance = law.log_prob(x).exp()
    _close(chance.sum(), torch.ones((), dtype=torch.float64))
    mean = chance @ x
    _close(law.mean, mean)
    _close(law.joint(), x.T @ (chance[:, None] * x))
    _close(law.covariance_matrix, x.T @ (chance[:, None] * x) - mean[:, None] * mean)
    _close(law.variance, mean * (1 - mean))
    if "entropy" in law.design.offers:
        _close(law.entropy(), -(chance * chance.log()).sum())


@pytest.mark.parametrize("design", _EXACT)
@pytest.mark.parametrize("density", _DENSITIES)
def test_the_mean_is_the_soft_topk(design, density):
    logits = _logits(8)
    law = KHot(3, logits=logits, design=design, method=density)
    wanted = so.soft_topk(logits, 3, method=density)
    _close(law.probs, wanted)
    _close(law.mean, wanted)
    x = law.sample((20_000,), generator=_generator(1))
    error = (wanted * (1 - wanted) / 20_000).sqrt().clamp(min=1e-12)
    assert ((x.mean(0) - wanted).abs() / error).max() < 5


def test_logits_are_natural_parameters_unless_a_density_is_asked_for():
    logits = _logits(6)
    x = torch.tensor([1.0, 1, 0, 0, 0, 0]), torch.tensor([0.0, 1, 0, 1, 0, 0])
    natural, fitted = KHot(2, logits=logits), KHot(2, logits=logits, method="logistic")
    ratio = natural.log_prob(x[0]) - natural.log_prob(x[1])
    _close(ratio, logits[0] - logits[3])
    _close(fitted.mean, so.soft_topk(logits, 2, method="logistic"))
    assert (natural.mean - fitted.mean).abs().max() > 1e-3
    _close(KHot(2, natural.mean).log_prob(x[0]), natural.log_prob(x[0]))


def test_a_density_of_the_user():
    law = KHot(2, logits=_logits(5), method=Student(), design="sampford")
    _close(law.mean, so.soft_topk(_logits(5), 2, method=Student()))


def test_units_that_take_no_part():
    logits = torch.tensor([1.0, -math.inf, 0.0, -math.inf, 2.0], dtype=torch.float64)
    for design in _DESIGNS:
        law = KHot(2, logits=logits, design=design)
        assert (law.sample((200,))[:, [1, 3]] == 0).all()
        # fewer than k take part: all of them are drawn
        if design != "poisson":
            full = KHot(4, logits=logits, design=design).sample((5,))
            assert (full == (logits > -math.inf)).all()


# ---- the phantom unit ---------------------------------------------------------------------------


@pytest.mark.parametrize("design", [d for d in _EXACT if d != "poisson"])
@pytest.mark.parametrize("implicit", [False, True])
def test_the_mean_size_is_the_sum_of_the_probabilities(design, implicit):
    logits = _logits(7)
    law = (
        KHot(logits=logits, design=design) if implicit else KHot(2.3, logits=logits, design=design)
    )
    probs = torch.sigmoid(logits) if implicit else so.soft_topk(logits, 2.3, method="logistic")
    total = probs.sum().item()
    _close(law.mean, probs)
    draws = 40_000
    x = law.sample((draws,), generator=_generator(4))
    size = x.sum(-1)
    assert set(size.tolist()) == {math.floor(total), math.ceil(total)}
    part = total - math.floor(total)
    spread = math.sqrt(part * (1 - part) / draws)
    assert abs((size == math.ceil(total)).double().mean().item() - part) < 5 * spread
    error = (probs * (1 - probs) / draws).sqrt()
    assert ((x.mean(0) - probs).abs() / error).max() < 5


def test_a_learnable_k():
    """Σ π is the mean size: its gradient reaches the logits, and k where that is a parameter."""
    logits = _logits(5).requires_grad_()
    law = KHot(logits=logits)
    (gradient,) = torch.autograd.grad(law.mean.sum(), logits)
    _close(gradient, torch.sigmoid(logits) * torch.sigmoid(-logits))
    for size in (2.0, 2.3):
        k = torch.tensor(size, dtype=torch.float64, requires_grad=True)
        law = KHot(k, logits=_logits(5))
        (gradient,) = torch.autograd.grad(law.mean.sum(), k)
        _close(gradient, torch.ones((), dtype=torch.float64))
    x = torch.tensor([1.0, 1, 0, 0, 0], dtype=torch.float64)
    assert gradcheck(lambda v: KHot(v, logits=_logits(5)).log_prob(x), k)


def test_derivatives_with_a_phantom_unit():
    logits = _logits(5).requires_grad_()
    x = torch.tensor([1.0, 1, 0, 0, 0], dtype=torch.float64)
    for design in ("conditional_poisson", "sampford"):
        assert gradcheck(lambda v: KHot(2.3, logits=v, design=design).log_prob(x), logits)  # noqa: B023
        assert gradcheck(lambda v: KHot(logits=v, design=design).log_prob(x), logits)  # noqa: B023


# ---- KL, relaxed draws --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("design", "k"), [(d, k) for d in _SCORED for k in (3, 2.5) if d != "pareto" or k == 3]
)
def test_kl(design, k):
    p, q = (KHot(k, logits=_logits(6, seed=seed), design=design) for seed in (0, 1))
    x = p.enumerate_support()
    chance = p.log_prob(x)
    _close(kl_divergence(p, q), (chance.exp() * (chance - q.log_prob(x))).sum())
    _close(kl_divergence(p, p), torch.zeros((), dtype=torch.float64))


def test_kl_that_is_not_known():
    logits = _logits(5)
    with pytest.raises(NotImplementedError, match="kl from 'poisson'"):
        kl_divergence(KHot(2, logits=logits), KHot(2, logits=logits, design="poisson"))
    with pytest.raises(NotImplementedError, match="phantom"):
        kl_divergence(KHot(2, logits=logits), KHot(1.5, logits=logits))
    assert kl_divergence(KHot(2, logits=logits), KHot(3, logits=logits)) == math.inf


@pytest.mark.parametrize("design", ["gumbel_topk", "pareto", "conditional_poisson"])
def test_relaxed_draws_become_hard_ones(design):
    law = KHot(3, logits=_logits(9), design=design)
    soft = law.rsample((50,), temperature=1.0, generator=_generator())
    _close(soft.sum(-1), torch.full((50,), 3.0, dtype=torch.float64))
    assert ((soft > 0) & (soft < 1)).all()
    cold = law.rsample((50,), temperature=1e-6, generator=_generator())
    _close(cold, law.hard(law.perturbed((50,), _generator())), atol=1e-3)


@pytest.mark.parametrize(
    ("design", "twin"), [("gumbel_topk", "gumbel_topk"), ("sampford", "pareto")]
)
def test_the_noise_is_that_of_a_design(design, twin):
    """The largest perturbed logits are draws of Gumbel top-k, or of Pareto sampling."""
    logits, draws = _logits(5), 50_000
    law = KHot(2, logits=logits, design=design)
    hard = law.hard(law.perturbed((draws,), _generator()))
    drawn = KHot(2, logits=logits, design=twin).sample((draws,), generator=_generator(1))
    pairs = [(x.T @ x) / draws for x in (hard, drawn)]
    assert (pairs[0] - pairs[1]).abs().max() < 5 * math.sqrt(2 * 0.25 / draws)

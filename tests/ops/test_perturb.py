"""Perturbed scores."""

import math

import pytest
import torch
from scipy import stats

import softorder as so
from softorder._noise import NOISES
from softorder.relaxations import StochasticNeuralSort

_LAWS = {"gumbel": stats.gumbel_r, "normal": stats.norm}


def _generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_noise_has_its_law(noise, dtype):
    """Kolmogorov-Smirnov, with one false alarm in a million."""
    scores = torch.tensor([3.0, -1.0], dtype=dtype)
    draws = so.perturb(scores, (20_000,), noise=noise, scale=2.0, generator=_generator())
    for column, centre in zip(draws.T, (3.0, -1.0), strict=True):
        z = ((column - centre) / 2).double().numpy()
        assert stats.kstest(z, _LAWS[noise].cdf).pvalue > 1e-6


@pytest.mark.parametrize("noise", NOISES)
def test_density_and_score(noise):
    z = torch.linspace(-3, 8, 50, dtype=torch.float64, requires_grad=True)
    law = NOISES[noise]
    wanted = torch.from_numpy(_LAWS[noise].pdf(z.detach().numpy()))
    torch.testing.assert_close(law.pdf(z), wanted)
    (slope,) = torch.autograd.grad(law.pdf(z).log().sum(), z)
    torch.testing.assert_close(law.score(z), -slope)
    ends = torch.tensor([-math.inf, -1e4, 1e4, math.inf], dtype=torch.float64)
    assert law.pdf(ends).tolist() == [0.0] * 4


def test_stochastic_neuralsort():
    scores = torch.randn(3, 6, generator=_generator(1)).requires_grad_()
    keys = so.perturb(scores, (5,), scale=0.5, generator=_generator(2))
    found = so.soft_permutation(keys, method="neuralsort", temperature=0.7)
    sampler = StochasticNeuralSort(noise=0.5, generator=_generator(2))
    many = scores.expand(5, 3, 6)
    wanted = so.soft_permutation(many, method=sampler, temperature=0.7)
    torch.testing.assert_close(found, wanted)
    assert torch.autograd.grad(found.square().sum(), scores)[0].abs().min() > 0


def test_infinities_stay_and_scale_learns():
    scores = torch.tensor([math.inf, 0.0, -math.inf])
    assert so.perturb(scores, (7,))[:, [0, 2]].unique().tolist() == [-math.inf, math.inf]
    scale = torch.ones(3, requires_grad=True)
    keys = so.perturb(torch.zeros(3), scale=scale, generator=_generator())
    keys.sum().backward()
    torch.testing.assert_close(scale.grad, keys.detach())


def test_half_precision_is_rounded_once():
    scores = torch.randn(4, dtype=torch.bfloat16, generator=_generator())
    found = so.perturb(scores, (3,), generator=_generator(1))
    wanted = so.perturb(scores.float(), (3,), generator=_generator(1)).bfloat16()
    assert torch.equal(found, wanted)


def test_wrong_arguments():
    with pytest.raises(ValueError, match=r"noise must be one of normal, gumbel.*'gumbel'\?"):
        so.perturb(torch.zeros(3), noise="gumble")
    with pytest.raises(ValueError, match="scale must be finite and >= 0, but got -1"):
        so.perturb(torch.zeros(3), scale=-1.0)
    with pytest.raises(ValueError, match="scale must be finite and >= 0, but got -2"):
        so.perturb(torch.zeros(3), scale=torch.tensor([1.0, -2.0, 0.0]))
    with pytest.raises(ValueError, match="scale must broadcast"):
        so.perturb(torch.zeros(3), scale=torch.ones(2))
    with pytest.raises(TypeError, match="scores must have one of the dtypes"):
        so.perturb(torch.zeros(3, dtype=torch.int64))
    with pytest.raises(ValueError, match="noise must be finite and >= 0"):
        StochasticNeuralSort(noise=-0.5)

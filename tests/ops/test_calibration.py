"""calibrate_temperature: the stated softness, scale-free, monotone, differentiable."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import softorder as so

_calibrate = so.calibrate_temperature
_DENSITIES = list(so.densities.BUILT_IN)


def _scores(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


def _softness(scores, k, temperature, method="laplace", **options):
    """The definition, from the public operators."""
    h = so.hard.topk(scores, k, **options)
    p = so.soft_topk(scores, k, method=method, temperature=temperature, **options)
    n = scores.shape[-1]
    return (h * (h - p)).sum(-1) / (h * (h - h.sum(-1, keepdim=True) / n)).sum(-1)


@pytest.mark.parametrize("method", _DENSITIES)
@pytest.mark.parametrize("k", [1, 5, 7.5, 29])
@pytest.mark.parametrize("softness", [0.01, 0.1, 0.5, 0.95])
def test_the_softness_is_as_stated(method, k, softness):
    scores = _scores(6, 30)
    tau = _calibrate(scores, k, softness=softness, method=method)
    assert tau.shape == (6,)
    found = _softness(scores, k, tau, method)
    torch.testing.assert_close(found, torch.full_like(found, softness), rtol=1e-7, atol=1e-9)


@given(seed=st.integers(0, 10**6), method=st.sampled_from(_DENSITIES), k=st.floats(0.2, 11.8))
def test_softness_rises_with_the_temperature(seed, method, k):
    scores = _scores(1, 12, seed=seed).round(decimals=seed % 3)  # ties, too
    if scores.unique().numel() == 1:
        return
    tau = torch.logspace(-3, 3, 25, dtype=torch.float64)
    softness = _softness(scores.expand(25, -1), k, tau, method)
    assert (softness.diff() >= -1e-9).all()
    assert softness[0] > -1e-9
    assert softness[-1] < 1 + 1e-9


@pytest.mark.parametrize("method", _DENSITIES)
def test_moves_with_the_scores(method):
    scores = _scores(4, 20)
    tau = _calibrate(scores, 3, method=method)
    torch.testing.assert_close(_calibrate(100 * scores + 7, 3, method=method), 100 * tau)
    torch.testing.assert_close(_calibrate(1e-6 * scores, 3, method=method), 1e-6 * tau)
    smallest = _calibrate(-scores, 3, method=method, largest=False)
    torch.testing.assert_close(smallest, tau)


@pytest.mark.parametrize(
    "method",
    [r.name for r in so.methods() if r.operator == "soft_topk" and not r.breaks]
    + ["softsort", "neuralsort", "sequential_softmax", "softmax_k_times", "network"],
)
def test_every_method_has_a_softness(method):
    scores = _scores(4, 12)
    tau = _calibrate(scores, 3, softness=0.3, method=method)
    found = _softness(scores, 3, tau, method)
    torch.testing.assert_close(found, torch.full_like(found, 0.3), rtol=0, atol=1e-4)


def test_a_softness_that_a_method_never_has_is_an_error():
    """As τ → 0 a renormalised sigmoid shares k among all positive scores."""
    scores = torch.tensor([[1.0, 2.0, 3.0, 4.0, 5.0]])
    with pytest.raises(ValueError, match=r"'renormalized_sigmoid' has no temperature of softness"):
        _calibrate(scores, 1, softness=0.1, method="renormalized_sigmoid")


def test_shared_by_all_rows():
    scores = _scores(8, 50) * torch.logspace(-1, 1, 8, dtype=torch.float64).unsqueeze(-1)
    tau = _calibrate(scores, 5, softness=0.3, shared=True)
    assert tau.shape == ()
    assert _softness(scores, 5, tau).mean().item() == pytest.approx(0.3)
    assert so.soft_topk(scores, 5, temperature=tau).shape == scores.shape


def test_k_per_row_and_any_axis():
    scores, k = _scores(3, 4, 20), torch.tensor([1.0, 3.0, 5.0, 19.0])
    tau = _calibrate(scores, k)
    assert tau.shape == (3, 4)
    torch.testing.assert_close(_calibrate(scores.movedim(-1, 0), k, dim=0), tau)
    torch.testing.assert_close(_calibrate(scores[1, 2], 5), tau[1, 2])
    half = _calibrate(scores.bfloat16(), k)
    torch.testing.assert_close(half, _calibrate(scores.bfloat16().double(), k))


def test_rows_with_nothing_to_decide():
    scores = _scores(5, 8)
    scores[1] = 2.0
    k = torch.tensor([3.0, 3.0, 0.0, 8.0, 3.0])
    tau = _calibrate(scores, k)
    assert tau[1:4].tolist() == [1, 1, 1]
    keep = torch.tensor([0, 4])
    shared = _calibrate(scores, k, shared=True)
    torch.testing.assert_close(shared, _calibrate(scores[keep], 3, shared=True))
    assert _calibrate(scores[1:2], 3, shared=True) == 1
    scores[4, 2] = math.nan
    assert _calibrate(scores, k).isnan().tolist() == [False] * 4 + [True]
    assert _calibrate(torch.zeros(2, 0), 0).tolist() == [1, 1]


def test_masked_and_infinite_scores():
    scores = _scores(3, 10)
    padded = torch.cat([scores, torch.full((3, 2), math.nan)], -1)
    tau = _calibrate(scores, 3)
    torch.testing.assert_close(_calibrate(padded, 3, mask=~padded.isnan()), tau)
    certain = torch.cat([scores, torch.full((3, 2), math.inf)], -1)
    torch.testing.assert_close(_calibrate(certain, 5), tau)


@pytest.mark.parametrize("method", ["laplace", "logistic", "cauchy"])
@pytest.mark.parametrize("shared", [False, True])
def test_gradient(method, shared):
    def call(scores):
        return _calibrate(
            scores, 3, softness=0.4, method=method, shared=shared, differentiable=True
        )

    scores = _scores(2, 7).requires_grad_()
    torch.autograd.gradcheck(call, scores)
    tau = call(scores)
    (gradient,) = torch.autograd.grad(tau.sum(), scores)
    torch.testing.assert_close((gradient * scores).sum(), tau.sum())  # homogeneous of degree 1
    assert not _calibrate(scores, 3).requires_grad


def test_a_softness_means_the_same_for_any_n():
    for n in (20, 200, 2000):
        tau = _calibrate(_scores(n), 5, softness=0.2)
        p = so.soft_topk(_scores(n), 5, temperature=tau)
        outside = (5 - p.topk(5).values.sum().item()) / 5
        assert outside == pytest.approx(0.2 * (1 - 5 / n), abs=1e-9)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"softness": 0}, ValueError, r"softness must be between 0 and 1, both excluded.*0"),
        ({"softness": 1.0}, ValueError, r"softness must be between 0 and 1"),
        ({"softness": "some"}, TypeError, r"softness must be a real number"),
        ({"method": "permutahedron"}, ValueError, r"method must be one of.*'permutahedron'"),
        ({"method": "lapsum"}, ValueError, r"did you mean 'laplace'"),
        ({"shared": 1}, TypeError, r"shared must be True or False"),
    ],
)
def test_wrong_arguments(options, error, message):
    with pytest.raises(error, match=message):
        _calibrate(torch.zeros(3), 1, **options)

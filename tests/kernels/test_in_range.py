"""Scores near the largest number: all that counts is scores/τ, and no sum of them overflows."""

import math

import pytest
import torch

import softorder as so
from softorder.relaxations import NetworkMethod

_DENSITIES = [*so.densities.BUILT_IN]
_ORDERS = [*_DENSITIES, "softsort", "neuralsort", "sinkhorn_sort"]
_CASES = [
    *((operator, m) for operator in ("soft_rank", "soft_sort") for m in _ORDERS),
    *(("soft_permutation", m) for m in (*_ORDERS, "sorted_soft")),
    *(("permutation_cross_entropy", m) for m in _DENSITIES),
    ("soft_rank", "permutahedron"),
    ("soft_rank", "permutahedron_kl"),
    *((o, "network") for o in ("soft_sort", "soft_permutation", "soft_topk")),
    *(("soft_sort", NetworkMethod(None, c)) for c in ("reciprocal", "optimal", "logistic_phi")),
]
_SIZE = {torch.float64: 1023, torch.float32: 127}  # differences of scores between ±1.5 overflow
_SCORES = [0.3, -1.5, 0.9, 1.5, -0.4, 0.3001]
_TEMPERATURES = {"cold": 2.0**-12, "warm": 0.5}


def _answer(operator, method, scores, temperature):
    """The result and the gradient of a weighted sum of it."""
    scores = scores.requires_grad_()
    options = {"method": method, "temperature": temperature}
    if operator == "permutation_cross_entropy":
        target = torch.tensor([3, 0, 4, 5, 1, 2])
        options["reduction"] = "none"
        result = so.losses.permutation_cross_entropy(scores, target, **options)
    elif operator == "soft_topk":
        result = so.soft_topk(scores, 2.5, **options)
    else:
        result = getattr(so, operator)(scores, **options)
    weights = torch.linspace(0.2, 1.7, result.numel(), dtype=result.dtype).view(result.shape)
    # a sum of sorted scores would overflow itself
    (gradient,) = torch.autograd.grad(result, scores, weights)
    return result.detach(), gradient


@pytest.mark.parametrize("temperature", _TEMPERATURES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(
    ("operator", "method"), _CASES, ids=lambda v: getattr(v, "comparator", str(v))
)
def test_scores_and_temperature_scale_together(kernel, operator, method, dtype, temperature):
    scores, size = torch.tensor(_SCORES, dtype=dtype), 2.0 ** _SIZE[dtype]
    tau = _TEMPERATURES[temperature]
    far, by_far = _answer(operator, method, scores * size, tau * size)
    near, by_near = _answer(operator, method, scores.clone(), tau)
    wide = dtype is torch.float64
    close = {"rtol": 1e-11, "atol": 1e-12} if wide else {"rtol": 1e-4, "atol": 1e-5}
    if operator != "soft_sort":  # gradients of 1/size are too small for the format
        assert by_far.isfinite().all()
        return torch.testing.assert_close(far, near, **close)
    near = torch.where(near.abs() < 2, near, near.sign() * math.inf)  # where the format ends
    torch.testing.assert_close(far / size, near, **close)
    torch.testing.assert_close(by_far, by_near, **close)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("method", [*_ORDERS, "network"])
def test_gradients_of_rows_of_p_scale_too(kernel, method, dtype):
    """Warm rows, of which every score has a slope: 2^-s of that of scores times 2^-s."""
    size = 2.0 ** _SIZE[dtype]
    found = []
    for by in (1.0, size):
        scores = (torch.tensor(_SCORES, dtype=dtype) * by).requires_grad_()
        p = so.soft_permutation(scores, method=method, temperature=0.5 * by)
        upstream = torch.linspace(0.2, 1.7, p.numel(), dtype=dtype).sin().view(p.shape)
        big = upstream * 2.0**20  # gradients of 1/size are at the other end of the format
        found.append((p.detach(), torch.autograd.grad(p, scores, big)[0] * by))
    wide = dtype is torch.float64
    close = {"rtol": 1e-9, "atol": 2e-6} if wide else {"rtol": 1e-3, "atol": 1e-5}
    torch.testing.assert_close(found[1][0], found[0][0], **close)
    torch.testing.assert_close(found[1][1] / 2**20, found[0][1] / 2**20, **close)


@pytest.mark.parametrize("method", ["softsort", "neuralsort"])
def test_rows_are_even_where_the_inverse_of_the_temperature_is_denormal(kernel, method):
    p = so.soft_permutation(torch.tensor([1.0, 2.0, 5.0]), method=method, temperature=3e38)
    torch.testing.assert_close(p, torch.full((3, 3), 1 / 3))


def test_a_loss_beyond_the_format_has_the_slope_of_its_tails(kernel):
    """The threshold is gap/2 away: -log Φ(-u/2) = u²/8 at u = gap/τ is infinite, u/(4τ) is not."""
    gap, tau = 1.6e297, 5.0
    scores = torch.tensor([-gap, 0.0], dtype=torch.float64)
    scores.requires_grad_()
    target = torch.tensor([1, 0])  # the wrong way round
    options = {"method": "normal", "temperature": tau, "reduction": "none"}
    losses = so.losses.permutation_cross_entropy(scores, target, **options)
    (gradient,) = torch.autograd.grad(losses, scores, torch.ones_like(losses))
    assert (losses == math.inf).all()
    slope = 2 * (gap / tau) / (4 * tau)  # of two losses
    expected = torch.tensor([-slope, slope], dtype=torch.float64)
    torch.testing.assert_close(gradient, expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("method", [*_ORDERS, "permutahedron", "permutahedron_kl"])
def test_cold_rows_are_hard(kernel, method):
    most = torch.finfo(torch.float64).max
    scores = torch.tensor([most, 1.0, -most, 0.5 * most, most], dtype=torch.float64)
    ranks = so.soft_rank(scores, method=method, temperature=1e-3)
    torch.testing.assert_close(ranks, torch.tensor([4.5, 2, 1, 3, 4.5], dtype=torch.float64))
    if method.startswith("permutahedron"):  # whose sorts are cold at high temperature
        return
    ordered = so.soft_sort(scores, method=method, temperature=1e-3)
    assert (ordered / most - scores.sort().values / most).abs().max() < 1e-12


def test_a_projected_sort_of_the_largest_numbers_is_their_mean(kernel):
    most = torch.finfo(torch.float64).max
    scores = torch.tensor([most, 0.5 * most, most, 0.75 * most], dtype=torch.float64)
    ordered = so.soft_sort(scores, method="permutahedron", temperature=1.0)
    torch.testing.assert_close(ordered / most, torch.full_like(scores, 13 / 16))
    options = {"method": "permutahedron_kl", "temperature": 1.0, "descending": True}
    ordered = so.soft_sort(scores, **options)
    assert ((ordered / most - 1).abs() < 1e-12).all()  # log mean exp


@pytest.mark.parametrize("outlier", [1e30, math.inf])
def test_an_outlier_costs_neuralsort_no_digits(kernel, outlier):
    scores = torch.tensor([0.3, 0.1, 1.0, 0.7, 2.0], dtype=torch.float64)
    with_one = torch.cat([scores, torch.tensor([outlier], dtype=torch.float64)])
    alone = so.soft_permutation(scores, method="neuralsort", temperature=0.3)
    beside = so.soft_permutation(with_one, method="neuralsort", temperature=0.3)
    torch.testing.assert_close(beside[:5, :5], alone, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("method", ["normal", "logistic"])
@pytest.mark.parametrize("gap", [50.0, 70.0, 600.0])
def test_second_derivatives_in_a_wide_gap(kernel, method, gap):
    """Where the slope of FSum is so small that its square underflows."""
    start = torch.tensor([0.0, 0.3, 0.7, gap, gap + 0.2, 2 * gap], dtype=torch.float64)
    towards = torch.tensor([0.5, -1.0, 0.3, 1.2, -0.7, 0.1], dtype=torch.float64)

    def gradient(scores):
        target, options = torch.tensor([0, 2, 1, 3, 4, 5]), {"method": method, "reduction": "sum"}
        loss = so.losses.permutation_cross_entropy(scores, target, **options)
        return torch.autograd.grad(loss, scores, create_graph=True)[0]

    scores = start.clone().requires_grad_()
    (found,) = torch.autograd.grad(gradient(scores) @ towards, scores)
    step = 1e-6 * towards
    ends = [gradient((start + s).requires_grad_()).detach() for s in (step, -step)]
    torch.testing.assert_close(found, (ends[0] - ends[1]) / 2e-6, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("method", ["normal", "logistic"])
def test_a_score_alone_has_no_part_in_its_own_rank(kernel, method):
    scores = torch.tensor([0.0, 1.0, 5.0, 7.0], dtype=torch.float64, requires_grad=True)
    ranks = so.soft_rank(scores, method=method, temperature=1e-8)
    weights = torch.tensor([0.3, 0.7, -1.1, 0.2], dtype=torch.float64)
    (gradient,) = torch.autograd.grad(ranks, scores, weights)
    assert not gradient.any()


@pytest.mark.parametrize("method", ["permutahedron", "permutahedron_kl"])
@pytest.mark.parametrize("size", [1e12, 1e20, 3e38])
def test_ties_far_from_the_others_share_their_places(kernel, method, size):
    """Beside scores/τ as large as that the next place is not another number."""
    scores = size * torch.tensor([1.0] * 15 + [-1.0] * 17)
    for descending in (False, True):
        ranks = so.soft_rank(scores, method=method, descending=descending, temperature=1.02)
        high, low = (8.0, 24.0) if descending else (25.0, 9.0)
        torch.testing.assert_close(ranks, torch.tensor([high] * 15 + [low] * 17))


def test_heat_of_a_network_of_large_floats(kernel):
    """∂/∂τ multiplies scores by scores: 10^60 is no float."""
    scores = torch.tensor([1e30, -1.5])
    tau = torch.tensor(1e29, dtype=torch.float64, requires_grad=True)
    found = []
    for x in (scores, scores.double()):
        result = so.soft_sort(x, method="network", temperature=tau)
        found += torch.autograd.grad(result, tau, torch.tensor([1.0, 2.0], dtype=x.dtype))
    torch.testing.assert_close(*found, rtol=1e-5, atol=0)

"""The built-in densities, one by one, against mpmath."""

import mpmath
import pytest
import torch

import softorder as so
from tests.oracles.densities import BUILT_IN, DENSITIES

_POINTS = (-40.0, -9.5, -1.3, -0.4, 0.0, 0.2, 0.7, 3.1, 30.0)


@pytest.fixture(params=BUILT_IN)
def name(request):
    return request.param


@pytest.fixture
def density(name):
    return getattr(so.densities, name.capitalize())()


def _u():
    return torch.tensor(_POINTS, dtype=torch.float64)


def _exact_cdf(name, u):
    tail = DENSITIES[name].exact_tail(mpmath.mpf(abs(u)))
    return tail if u <= 0 else 1 - tail


def test_cdf(name, density):
    expected = [float(_exact_cdf(name, u)) for u in _POINTS]
    torch.testing.assert_close(density.cdf(_u()).tolist(), expected, rtol=1e-13, atol=1e-16)


def test_log_cdf(name, density):
    with mpmath.workdps(50):
        values = [_exact_cdf(name, u) for u in _POINTS]
        expected = [float(mpmath.log(v)) if v else float("-inf") for v in values]
    torch.testing.assert_close(density.log_cdf(_u()).tolist(), expected, rtol=1e-13, atol=1e-16)


def test_pdf_is_the_slope_of_cdf(name, density):
    u = _u().requires_grad_()
    (slope,) = torch.autograd.grad(density.cdf(u).sum(), u)
    torch.testing.assert_close(density.pdf(_u()), slope, rtol=1e-12, atol=1e-16)


def test_pdf_integrates_to_the_cdf(name, density):
    def pdf(v):
        return density.pdf(torch.tensor(float(v), dtype=torch.float64)).item()

    area = mpmath.quad(pdf, [-3, -0.5, 0, 0.5, 2])
    ends = density.cdf(torch.tensor([-3.0, 2.0], dtype=torch.float64))
    assert abs(area - (ends[1] - ends[0]).item()) < 1e-9


def test_quantile_undoes_the_cdf(name, density):
    p = torch.tensor([1e-9, 0.01, 0.3, 0.5, 0.8, 0.999], dtype=torch.float64)
    torch.testing.assert_close(density.cdf(density.quantile(p)), p, rtol=1e-10, atol=1e-14)

"""Inclusion probabilities back to logits: the linear systems on the way, solved in two ways."""

import math

import pytest
import torch

from softorder.kernels.subsets.circle import Subsets, tilt
from softorder.sampling._fit import Inverse
from tests.oracles import subsets


def _law(rows, n, k, scale, certain=()):
    generator = torch.Generator().manual_seed(n)
    logits = scale * torch.randn(rows, n, dtype=torch.float64, generator=generator)
    for place, value in certain:
        logits[:, place] = value
    u = tilt(logits, torch.full((rows,), float(k), dtype=torch.float64))
    return Subsets(u, torch.full((rows,), float(k), dtype=torch.float64)), u


def test_the_covariance_is_that_of_all_subsets():
    law, u = _law(1, 7, 3, 1.5)
    x = torch.as_tensor(subsets.vectors(7, 3))
    chances = torch.as_tensor(subsets.conditional_poisson(u[0], 3)[0])
    mean = chances @ x
    wanted = (x - mean).T @ (chances[:, None] * (x - mean))
    torch.testing.assert_close(law.covariance()[0], wanted, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("certain", [(), ((0, math.inf), (3, -math.inf))])
@pytest.mark.parametrize(("n", "k", "scale"), [(6, 3, 1.0), (30, 4, 3.0), (100, 50, 0.5)])
def test_factors_and_products_solve_the_same_system(n, k, scale, certain):
    law, u = _law(3, n, k, scale, certain)
    free = u.isfinite()
    inverse = Inverse(law, free, uses=1)
    wanted = torch.randn(3, n, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    wanted = torch.where(free, wanted, 0.0)
    values = torch.where(free, law.covariance_times(wanted), 0.0)
    found = {}
    for inverse.is_formed in (True, False):
        found[inverse.is_formed] = inverse.solve(values)
        again = torch.where(free, law.covariance_times(found[inverse.is_formed]), 0.0)
        torch.testing.assert_close(again, values, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(found[True], found[False], rtol=1e-9, atol=1e-10)


def test_long_rows_are_never_formed():
    law, u = _law(1, 2_000, 20, 1.0)
    assert not Inverse(law, u.isfinite(), uses=1).is_formed
    law, u = _law(4, 16, 3, 1.0)
    assert Inverse(law, u.isfinite(), uses=1).is_formed

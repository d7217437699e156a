"""Logarithms of the normal density are finite as far as they are numbers of their format."""

import math

import pytest
import torch

from softorder.densities.normal import Normal


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_square_that_overflows_has_a_half_that_does_not(dtype):
    u = torch.tensor(math.sqrt(1.5) * math.sqrt(torch.finfo(dtype).max), dtype=dtype)
    assert (u * u).isinf()
    law = Normal()
    expected = torch.tensor(-0.75 * torch.finfo(dtype).max, dtype=dtype)
    torch.testing.assert_close(law.log_pdf(u), expected, rtol=1e-6, atol=0)
    torch.testing.assert_close(law.log_cdf(-u), expected, rtol=1e-6, atol=0)

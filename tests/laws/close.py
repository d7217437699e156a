"""What 'equal' means to a law."""

import torch

ATOL = 1e-12  # the accuracy that float64 promises


def assert_close(actual, expected, atol=ATOL):
    torch.testing.assert_close(actual, expected, rtol=0, atol=atol, equal_nan=True)


def assert_at_most(smaller, larger, atol=ATOL):
    assert (smaller <= larger + atol).all(), f"{smaller} exceeds {larger}"

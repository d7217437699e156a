"""Scores near the largest number by Triton's kernels, in Triton's interpreter."""

import pytest
import torch

from softorder.relaxations import NetworkMethod
from tests.kernels import test_in_range as every
from tests.kernels.interpreted import triton_serves  # noqa: F401

pytest.importorskip("triton", reason="Triton is not installed")
pytestmark = pytest.mark.usefixtures("triton_serves")

_CASES = [
    *(("soft_permutation", m) for m in ("laplace", "normal", "softsort", "neuralsort", "network")),
    *(("soft_sort", NetworkMethod(None, c)) for c in ("cauchy", "reciprocal", "logistic_phi")),
    *(("soft_sort", m) for m in ("laplace", "neuralsort")),
    ("soft_rank", "softsort"),
]


@pytest.mark.parametrize("temperature", every._TEMPERATURES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize(
    ("operator", "method"), _CASES, ids=lambda v: getattr(v, "comparator", str(v))
)
def test_scores_and_temperature_scale_together(operator, method, dtype, temperature):
    every.test_scores_and_temperature_scale_together("triton", operator, method, dtype, temperature)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize(
    "method", ["laplace", "normal", "cauchy", "softsort", "neuralsort", "network"]
)
def test_gradients_of_rows_of_p_scale_too(method, dtype):
    """Warm rows, of which every score has a slope: 2^-s of that of scores times 2^-s."""
    every.test_gradients_of_rows_of_p_scale_too("triton", method, dtype)

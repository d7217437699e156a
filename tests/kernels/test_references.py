"""Compiled kernels and their references agree, and each takes up what the other left."""

import math
from collections import Counter

import pytest
import torch

from softorder.kernels import (
    _native,
    network,
    order,
    permutahedron,
    permutation,
    row_softmax,
)
from tests.oracles.densities import BUILT_IN

_SMALL, _LARGE = 6, 40
_KERNELS = {
    **{
        f"{operator}-{name}": (getattr(order, operator), lambda n, i=i: (i,))
        for operator in ("rank", "sort")
        for i, name in enumerate(BUILT_IN)
        if name in ("laplace", "uniform")
    },
    **{
        f"permutation-{name}": (permutation.permutation, lambda n, i=i: (i, max(n // 2, 1)))
        for i, name in enumerate(BUILT_IN)
    },
    "projected-rank-l2": (permutahedron.rank, lambda n: (False,)),
    "projected-rank-kl": (permutahedron.rank, lambda n: (True,)),
    "projected-sort-l2": (permutahedron.sort, lambda n: (False,)),
    "projected-sort-kl": (permutahedron.sort, lambda n: (True,)),
    "network-rows": (network.run, lambda n: (None, "cauchy", max(n // 2, 1), True)),
    "network-values": (network.run, lambda n: ("bitonic", "logistic", n, False)),
    "softsort": (row_softmax.rows, lambda n: ("softsort", max(n // 2, 1))),
    "neuralsort": (row_softmax.rows, lambda n: ("neuralsort", n)),
}


def _scores(n, dtype):
    """Ordinary rows, and one of each special kind."""
    generator = torch.Generator().manual_seed(n)
    scores = torch.randn(8, n, generator=generator, dtype=torch.float64)
    scores[1, 0], scores[2, -1] = math.inf, -math.inf
    scores[3, : n // 2], scores[3, -1] = -math.inf, math.inf
    scores[4, n // 2] = math.nan
    scores[5] = -math.inf
    scores[6, : max(n - 1, 1)] = math.inf
    return scores.to(dtype)


def _cases():
    for name in _KERNELS:
        for n in (1, _SMALL, _LARGE):
            yield pytest.param(name, n, id=f"{name}-{n}")


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(("name", "n"), list(_cases()))
def test_both_agree(name, n, descending, dtype):
    kernel, options_for = _KERNELS[name]
    scores, options = _scores(n, dtype), options_for(n)
    temperature = torch.linspace(0.2, 2, len(scores), dtype=torch.float64)
    before = Counter(_native.calls)
    found = {}
    for kind in _native.KINDS:
        with _native.use(kind):
            result = kernel.forward(scores, temperature, descending, *options)
            found[kind] = (result,) if isinstance(result, torch.Tensor) else result
    assert Counter(_native.calls) != before
    tolerance = {"rtol": 0, "atol": 1e-11 if dtype is torch.float64 else 2e-5, "equal_nan": True}
    torch.testing.assert_close(found["torch"][0], found["native"][0], **tolerance)

    upstream = torch.randn(
        found["native"][0].shape, dtype=dtype, generator=torch.Generator().manual_seed(0)
    )
    learns = kernel.learns_temperature
    gradients = []
    for forward in _native.KINDS:
        kept = list(kernel.keep(scores, found[forward], *options))
        for backward in _native.KINDS:
            with _native.use(backward):
                gradients.append(
                    kernel.vjp(upstream, kept, temperature, descending, learns, *options)
                )
    for by_scores, by_temperature in gradients:
        torch.testing.assert_close(by_scores, gradients[-1][0], **tolerance)
        torch.testing.assert_close(by_temperature, gradients[-1][1], **tolerance)

"""SIMD levels, as far as this machine has them."""

import pytest

from softorder.kernels import _native

_NARROWEST = pytest.param(_native.LEVELS[0], marks=pytest.mark.slow)  # which tests/fuzz meets, too


@pytest.fixture(params=[_NARROWEST, *_native.LEVELS[1:]])
def level(request):
    """Every SIMD level that this CPU can run."""
    if request.param not in _native.usable_levels():
        pytest.skip(f"{request.param} cannot run on this CPU, or was not built")
    return request.param

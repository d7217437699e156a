"""SIMD levels, as far as this machine has them."""

import pytest

from softorder.kernels import native


@pytest.fixture(params=native.LEVELS)
def level(request):
    """Every SIMD level that this CPU can run."""
    if native.LEVELS.index(request.param) > native.LEVELS.index(native.machine_level()):
        pytest.skip(f"this CPU has no {request.param}")
    if native.library_path(request.param) is None:
        pytest.skip(f"the kernels were not built for {request.param}")
    return request.param

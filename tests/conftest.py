"""Hypothesis settings, warnings that are not ours, and the choice of kernel."""

import hypothesis
import pytest

from softorder.kernels import native

hypothesis.settings.register_profile(
    "softorder",
    deadline=None,  # nothing here asserts a time
    derandomize=True,  # the same examples on every machine
    database=None,
    report_multiple_bugs=False,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("softorder")


def pytest_configure(config):
    # torch itself uses these when forward mode or inductor is first used.
    config.addinivalue_line("filterwarnings", "ignore:`torch.jit.script.* is deprecated")


@pytest.fixture(scope="module", params=["native", "torch"])
def kernel(request):
    """Runs a test once on the compiled kernels and once on plain torch."""
    with native.use(request.param):
        yield request.param

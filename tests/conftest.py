"""Hypothesis, warnings that are not ours, the choice of kernel, and a budget of time."""

import os

os.environ.setdefault("TRITON_INTERPRET", "1")  # Triton asks when torch imports it
# Inductor would compile a program for each SIMD level to see whether it runs, and headers for
# later: most of its time for the one or two graphs that it is asked for here.
os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "0")
os.environ.setdefault("TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS", "0")

import time
import zlib

import hypothesis
import pytest
from hypothesis.internal.conjecture import providers

from softorder.kernels import _native

hypothesis.settings.register_profile(
    "softorder",
    deadline=None,  # nothing here asserts a time
    derandomize=True,  # the same examples on every machine
    database=None,
    report_multiple_bugs=False,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("softorder")

# Hypothesis also tries constants from the sources that are imported, unless their path looks like
# that of tests: then examples depend on where the checkout is and on what else runs.
if hasattr(providers, "_get_local_constants"):
    providers._get_local_constants = providers.Constants


def pytest_addoption(parser):
    parser.addoption("--minutes", type=float, help="skip tests that would start later than this")


def pytest_configure(config):
    # torch itself uses these when forward mode or inductor is first used.
    for name in ("torch.jit.script.*", "torch._prims_common.check"):
        config.addinivalue_line("filterwarnings", f"ignore:`{name}` is deprecated")
    minutes = config.getoption("minutes")
    if minutes is not None:
        sent = getattr(config, "workerinput", {})  # by pytest_configure_node, to its workers
        config.stash[_END] = sent.get("end", time.time() + 60 * minutes)


@pytest.hookimpl(tryfirst=True)  # before slow tests are taken out
def pytest_collection_modifyitems(items):
    """Which cases of `one_of` run by default is chosen by their names: always the same ones."""
    for item in items:
        mark = item.get_closest_marker("one_of")
        if mark is not None and zlib.crc32(item.name.encode()) % mark.args[0]:
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    """All processes of pytest-xdist share one budget."""
    if _END in node.config.stash:
        node.workerinput["end"] = node.config.stash[_END]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    if time.time() > item.config.stash.get(_END, float("inf")):
        pytest.skip(f"the {item.config.getoption('minutes'):g} minutes are used up")


_END = pytest.StashKey[float]()


@pytest.fixture(scope="module", params=["native", "torch"])
def kernel(request):
    """Runs a test once on the compiled kernels and once on plain torch."""
    with _native.use(request.param):
        yield request.param

"""Every law holds for every operator and method that it binds."""

import pytest

from tests.laws.registry import TOPK, cases
from tests.laws.statutes import EAGER, TRACED


def _pairs(laws):
    return [(law, case) for law in laws for case in cases() if law.binds(case)]


_RUNS = [(kernel, *pair) for pair in _pairs(EAGER) for kernel in pair[1].kernels]


@pytest.mark.parametrize(("kernel", "law", "case"), _RUNS, ids=str, indirect=["kernel"])
def test_law(kernel, law, case):
    law.hold(case.call)


def _traced():
    """By default only where it tells something new: densities share their graphs.

    Inductor, which calls a C++ compiler, runs for one method only.
    """
    for law, case in _pairs(TRACED):
        enough = {"laplace"} if str(law) == "inductor_gives_the_same" else {"laplace", "student"}
        slow = case.name not in enough and not (case.operator in TOPK and len(enough) > 1)
        yield pytest.param(law, case, marks=[pytest.mark.slow] * slow)


@pytest.mark.parametrize(("law", "case"), list(_traced()), ids=str)
def test_traced_law(law, case):
    law.hold(case.call)

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


_BROKEN = [
    (law, case)
    for case in cases()
    for law in EAGER
    if law.concerns(case) and str(law) in case.claims.breaks
]


@pytest.mark.parametrize(("law", "case"), _BROKEN, ids=str)
def test_a_law_that_is_said_to_be_broken_is(law, case):
    with pytest.raises(AssertionError):
        law.hold(case.call, shrink=False, examples=max(law.examples, 300 * (law.examples > 3)))


def test_only_laws_are_broken():
    laws = {(str(law), operator) for law in [*EAGER, *TRACED] for operator in law.operators}
    said = {(name, case.operator) for case in cases() for name in case.claims.breaks}
    assert said <= laws


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

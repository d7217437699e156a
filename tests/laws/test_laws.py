"""Every law holds for every operator and method that it binds."""

import pytest

from tests.laws.registry import cases
from tests.laws.statutes import EAGER, TRACED


def _pairs(laws):
    pairs = [(law, case) for law in laws for case in cases() if law.binds(case.claims)]
    return pytest.mark.parametrize(("law", "case"), pairs, ids=str)


@_pairs(EAGER)
def test_law(kernel, law, case):
    law.hold(case.call)


@_pairs(TRACED)
def test_traced_law(law, case):
    law.hold(case.call)

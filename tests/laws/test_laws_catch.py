"""No law is empty: each one rejects an operator that was broken for it."""

import pytest

from tests.laws.all_laws import EAGER, TRACED


@pytest.mark.parametrize("law", [*EAGER, *TRACED], ids=str)
def test_law_rejects_a_broken_operator(law):
    # Transformations fail with torch's own RuntimeError, the rest by assertion.
    with pytest.raises((AssertionError, RuntimeError)):
        law.hold(law.broken, shrink=False, examples=max(law.examples, 10))

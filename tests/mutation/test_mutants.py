"""Every defect can still be seeded: its line is in the library, and the tests near it exist."""

import pytest

from tests.mutation.mutants import MUTANTS
from tests.mutation.workspace import CHECKOUT


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.breaks)
def test_a_mutant_fits_the_library(mutant):
    text = (CHECKOUT / mutant.file).read_text()
    assert mutant.seed(text) != text
    assert (CHECKOUT / mutant.near[0]).exists()

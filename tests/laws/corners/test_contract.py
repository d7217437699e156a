"""Every operator and method keeps the contract, and each line of it can be broken."""

import pytest

import softorder as so
from softorder.kernels import _native, contract
from softorder.kernels.contract import CONTRACT, OPERATORS
from tests.laws.all_laws import EAGER
from tests.laws.corners import broken
from tests.laws.corners.answers import solver
from tests.laws.corners.cases import DTYPES, cases
from tests.laws.corners.promises import PARTS
from tests.laws.corners.promises import broken as failures
from tests.laws.corners.rows import rows


def _runs():
    """In float32 the same code serves; plain torch is met with one density."""
    for dtype in DTYPES:
        for kind in _native.KINDS:
            for case in cases():
                plain = kind == "torch" and case.method != "logistic"
                marks = [pytest.mark.slow] if plain or dtype == "float32" else []
                yield pytest.param(dtype, kind, case, marks=marks)


@pytest.mark.filterwarnings("ignore:newton stopped")
@pytest.mark.parametrize(("dtype", "kind", "case"), list(_runs()), ids=str)
def test_the_contract_is_kept(dtype, kind, case):
    assert case.failures(kind, DTYPES[dtype]) == {}


_QUICK = ("soft_topk", "log_soft_topk", "soft_sort", "permutation_cross_entropy")


@pytest.mark.parametrize(
    "operator", [pytest.param(o, marks=[pytest.mark.slow] * (o not in _QUICK)) for o in OPERATORS]
)
def test_every_line_can_be_broken(operator):
    """For each corner and part there is a change of the operator that the check notices."""
    (claims,) = [r for r in so.methods() if (r.operator, r.name) == ("soft_topk", "laplace")]
    right = solver(operator, "laplace")
    missed = {
        (corner.name, part)
        for corner in CONTRACT
        for part in PARTS
        if operator in corner.promises and corner.name != "largest"
    }
    for part in PARTS:
        for breaker in broken.BREAKERS[part]:
            found = failures(breaker(right), operator, claims)
            missed -= {place for place in found if place[1] == part}
    assert missed == set()


def test_every_corner_has_rows_and_a_promise_for_someone():
    assert {row.corner for row in rows(DTYPES["float64"])} == {c.name for c in CONTRACT}
    assert all(corner.promises for corner in CONTRACT)
    assert {name for corner in CONTRACT for name in corner.promises} == set(OPERATORS)


def test_every_operator_of_the_table_is_bound():
    others = {"top_k_cross_entropy"}  # which takes the methods of another
    assert {row.operator for row in so.methods()} | others == set(contract.OPERATORS)


def test_excuses_are_laws():
    laws = {str(law) for law in EAGER}
    assert {name for corner in CONTRACT for name in corner.unless} <= laws

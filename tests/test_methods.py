"""so.methods(): the table of what serves what."""

import pytest

import softorder as so
from softorder.relaxations import Method, register
from tests.oracles.densities import BUILT_IN

_OPERATORS = (
    "fsum",
    "fsum_inverse",
    "log_soft_topk",
    "permutation_cross_entropy",
    "soft_permutation",
    "soft_quantile",
    "soft_rank",
    "soft_sort",
    "soft_topk",
)


def test_lists_every_density_for_every_operator():
    served = {(row.operator, row.name) for row in so.methods()}
    assert sorted({operator for operator, _ in served}) == list(_OPERATORS)
    for operator in _OPERATORS:
        assert set(BUILT_IN) <= {name for op, name in served if op == operator}


def test_the_cost_depends_on_operator_and_density():
    costs = {(row.operator, row.name): row.cost for row in so.methods()}
    assert costs["soft_topk", "laplace"] == "O(n)"
    assert costs["soft_rank", "laplace"] == costs["soft_sort", "uniform"] == "O(n log n)"
    assert costs["soft_rank", "normal"] == "O(n log n)"
    assert costs["soft_rank", "cauchy"] == "O(n log n)"


def test_a_method_has_what_it_names():
    class Nameless(Method):
        name = "nameless"
        operators = ("soft_rank",)

    with pytest.raises(TypeError, match="Nameless names soft_rank"):
        register(Nameless())
    assert "nameless" not in {row.name for row in so.methods()}


def test_lists_nothing_twice():
    served = [(row.operator, row.name) for row in so.methods()]
    assert len(served) == len(set(served))


def test_prints_as_a_table():
    lines = str(so.methods()).splitlines()
    for name in BUILT_IN:
        assert any(name in line for line in lines)

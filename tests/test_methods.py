"""so.methods(): the table of what serves what."""

import softorder as so
from tests.oracles.densities import BUILT_IN


def test_lists_every_density_for_both_operators():
    served = {(row.operator, row.name) for row in so.methods()}
    for operator in ("soft_topk", "log_soft_topk"):
        assert set(BUILT_IN) <= {name for op, name in served if op == operator}


def test_lists_nothing_twice():
    served = [(row.operator, row.name) for row in so.methods()]
    assert len(served) == len(set(served))


def test_prints_as_a_table():
    lines = str(so.methods()).splitlines()
    for name in BUILT_IN:
        assert any(name in line for line in lines)

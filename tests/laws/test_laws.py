"""Every law holds for every operator and method that it binds.

By default each law meets every operator and method once. What would meet it again takes turns, from
law to law, and is slow when it is not its turn: plain torch where compiled kernels have served,
the user's density, which has the same plain code for every operator, and what has the code of
another method. Second derivatives and forward mode are formulas in plain torch whoever computed the
values: compiled kernels will do. Laws of forms are about what happens before a method is asked: one
method of every operator meets them.
"""

import pytest

from tests.laws.all_laws import EAGER, TRACED
from tests.laws.registry import TOPK, cases

#: served by the code of the method "sinkhorn", which picks among them by operator
_FORMS = ("soft", "sorted_soft", "sinkhorn_sort")
_SUMS = ("fsum", "fsum_inverse", "soft_quantile")


def _alike(case):
    """Served by code that the laws meet elsewhere: F-sums are those of ranks and quantiles, these
    are the roots of sorts, the orders of smooth densities differ in how F is summed, which has
    tests of its own, and with two anchors transport is logistic."""
    sums = case.operator in _SUMS and case.name not in ("laplace", "student")
    smooth = case.operator not in TOPK and case.name in ("normal", "cauchy")
    two_anchors = case.operator in TOPK and case.name == "sinkhorn"
    return sums or smooth or two_anchors or case.name in _FORMS


def _before_methods(law):
    return law.check.__module__.endswith(".forms")


def _by_formulas(law):
    return law.check.__module__.endswith((".second_order", ".forward_mode"))


def _bound(law):
    return [case for case in cases() if law.binds(case)]


def _runs():
    for number, law in enumerate(EAGER):
        bound = _bound(law)
        again = _turns(number, bound, plain=not _by_formulas(law))
        for case in bound:
            for kernel in case.kernels:
                first = kernel == case.kernels[0] and case.name != "student" and not _alike(case)
                enough = first or (kernel, case) in again
                if _before_methods(law):
                    enough = kernel == case.kernels[0] and case.name == "laplace"
                yield pytest.param(kernel, law, case, marks=[] if enough else [pytest.mark.slow])


def _turns(number, bound, plain):
    """Plain torch for one method of every third operator if wanted, the user's density for one
    operator, and one of those that have the code of others."""
    groups = [[case for case in bound if case.name == "student"]]
    alike = [case for case in bound if _alike(case)]
    turn = set()
    if alike:
        case = alike[number % len(alike)]
        turn = {(case.kernels[0], case)}
    operators = dict.fromkeys(case.operator for case in bound if plain)
    for operator in [*operators][number % 3 :: 3]:
        groups.append([c for c in bound if c.operator == operator and "torch" in c.kernels[1:]])
    return turn | {("torch", group[number % len(group)]) for group in groups if group}


@pytest.mark.parametrize(("kernel", "law", "case"), list(_runs()), ids=str, indirect=["kernel"])
def test_law(kernel, law, case):
    law.hold(case.call)


_BROKEN = [
    pytest.param(law, case, marks=[pytest.mark.slow] if _alike(case) else [])
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
    """By default only where it tells something new: densities share their graphs, and so do roots
    of F-sums and quantiles.

    Inductor, which calls a C++ compiler, runs for one operator only.
    """
    for law in TRACED:
        for case in _bound(law):
            if str(law) == "inductor_gives_the_same":
                enough = (case.name, case.operator) == ("laplace", "soft_topk")
            else:
                enough = case.name == "laplace" or case.operator == "soft_topk"
                enough = enough and not _alike(case) and case.operator != "fsum_inverse"
            yield pytest.param(law, case, marks=[] if enough else [pytest.mark.slow])


@pytest.mark.parametrize(("law", "case"), list(_traced()), ids=str)
def test_traced_law(law, case):
    law.hold(case.call)

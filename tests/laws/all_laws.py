"""All laws, and how to try one on an operator."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from inspect import getmembers, isfunction

import hypothesis

from tests.laws.problems import coarse_problems, generic_problem, generic_problems


@dataclass(frozen=True)
class Law:
    check: Callable
    operators: tuple  # that it binds
    claim: Callable  # what a method must claim to be bound
    broken: Callable  # an operator that breaks it
    problems: hypothesis.strategies.SearchStrategy
    examples: int

    def __str__(self):
        return self.check.__name__

    def binds(self, case):
        return self.concerns(case) and str(self) not in case.claims.breaks

    def concerns(self, case):
        """Whether a method has to keep it, or to say that it does not."""
        return case.operator in self.operators and self.claim(case.claims)

    def hold(self, op, shrink=True, examples=None):
        """Raises an AssertionError (or what the operator raised), if asked with a small problem."""
        count = examples or self.examples
        try:
            for problem in drawn(self.problems, count):
                self.check(op, problem.copy())
        except Exception:
            if shrink:
                _each(self.problems, count, lambda problem: self.check(op, problem), shrink)
            raise


@lru_cache
def drawn(problems, count):
    """The examples of Hypothesis, which are the same for every law: drawing them takes longer."""
    found = []
    _each(problems, count, found.append)
    return found


def _each(problems, count, visit, shrink=False):
    phases = [hypothesis.Phase.generate] + [hypothesis.Phase.shrink] * shrink

    @hypothesis.settings(max_examples=count, phases=phases)
    @hypothesis.given(problem=problems)
    def every(problem):
        visit(problem)

    every()


@dataclass(frozen=True)
class Code:
    """The laws of some operators, in the modules of a package."""

    package: str
    operators: tuple  # a law may name fewer

    def laws(self, module, problems, examples, claim=lambda claims: True):
        module = import_module(f"{self.package}.{module}")
        broken = import_module(f"{self.package}.broken").BROKEN
        functions = [f for name, f in getmembers(module, isfunction) if not name.startswith("_")]
        own = [f for f in functions if f.__module__ == module.__name__]
        return [
            Law(
                check=function,
                operators=getattr(function, "operators", self.operators),
                claim=claim,
                broken=broken[function.__name__],
                problems=problems,
                examples=examples,
            )
            for function in own
        ]


_TOPK = Code("tests.laws", ("soft_topk", "log_soft_topk"))
_ORDERINGS = Code(
    "tests.laws.orderings",
    (
        "soft_rank",
        "soft_sort",
        "soft_permutation",
        "soft_quantile",
        "permutation_cross_entropy",
        "fsum",
        "fsum_inverse",
    ),
)

_COARSE, _GENERIC = coarse_problems(), generic_problems()
_ONE = hypothesis.strategies.just(generic_problem(seed=7, rows=3, n=5))
_SMALL = hypothesis.strategies.just(generic_problem(seed=2, rows=2, n=4))
_TINY = hypothesis.strategies.just(generic_problem(seed=1, rows=1, n=3))

EAGER = [
    *_TOPK.laws("values", _COARSE, 12),
    *_TOPK.laws("symmetries", _COARSE, 12),
    *_TOPK.laws("padding", _COARSE, 8),
    *_TOPK.laws("edges", _COARSE, 8),
    *_TOPK.laws("inputs", _COARSE, 8),
    *_TOPK.laws("forms", _COARSE, 2),
    *_TOPK.laws("gradients", _GENERIC, 2),
    *_TOPK.laws("second_order", _GENERIC, 1, lambda claims: claims.derivatives >= 2),
    *_TOPK.laws("forward_mode", _GENERIC, 1, lambda claims: claims.forward_mode),
    *_TOPK.laws("batching", _ONE, 1, lambda claims: claims.vmap),
    *_ORDERINGS.laws("values", _COARSE, 6),
    *_ORDERINGS.laws("symmetries", _COARSE, 6),
    *_ORDERINGS.laws("padding", _COARSE, 4),
    *_ORDERINGS.laws("sums", _COARSE, 6),
    *_ORDERINGS.laws("edges", _COARSE, 4),
    *_ORDERINGS.laws("inputs", _COARSE, 4),
    *_ORDERINGS.laws("forms", _COARSE, 2),
    *_ORDERINGS.laws("gradients", _SMALL, 1),
    *_ORDERINGS.laws("second_order", _TINY, 1, lambda claims: claims.derivatives >= 2),
    *_ORDERINGS.laws("forward_mode", _SMALL, 1, lambda claims: claims.forward_mode),
    *_ORDERINGS.laws("batching", _ONE, 1, lambda claims: claims.vmap),
]
TRACED = [
    *_TOPK.laws("tracing", _ONE, 1, lambda claims: claims.compile),
    *_ORDERINGS.laws("tracing", _ONE, 1, lambda claims: claims.compile),
]

"""All laws, and how to try one on an operator."""

from collections.abc import Callable
from dataclasses import dataclass
from inspect import getmembers, isfunction

import hypothesis

from tests.laws import (
    batching,
    edges,
    forward_mode,
    gradients,
    inputs,
    padding,
    second_order,
    symmetries,
    tracing,
    values,
)
from tests.laws.problems import coarse_problems, generic_problem, generic_problems


@dataclass(frozen=True)
class Law:
    check: Callable
    problems: hypothesis.strategies.SearchStrategy
    examples: int
    binds: Callable  # whether a method with these claims has to obey

    def __str__(self):
        return self.check.__name__

    def hold(self, op, shrink=True):
        """Raises an AssertionError (or what the operator raised), if asked with a small problem."""
        phases = [hypothesis.Phase.generate] + [hypothesis.Phase.shrink] * shrink

        @hypothesis.settings(max_examples=self.examples, phases=phases)
        @hypothesis.given(problem=self.problems)
        def every(problem):
            self.check(op, problem)

        every()


def _laws(module, problems, examples, binds=lambda claims: True):
    functions = [f for name, f in getmembers(module, isfunction) if not name.startswith("_")]
    own = [f for f in functions if f.__module__ == module.__name__]
    return [Law(function, problems, examples, binds) for function in own]


_COARSE, _GENERIC = coarse_problems(), generic_problems()
_ONE = hypothesis.strategies.just(generic_problem(seed=7, rows=3, n=5))

EAGER = [
    *_laws(values, _COARSE, 12),
    *_laws(symmetries, _COARSE, 12),
    *_laws(padding, _COARSE, 8),
    *_laws(edges, _COARSE, 8),
    *_laws(inputs, _COARSE, 8),
    *_laws(gradients, _GENERIC, 3),
    *_laws(second_order, _GENERIC, 2, binds=lambda claims: claims.derivatives >= 2),
    *_laws(forward_mode, _GENERIC, 2, binds=lambda claims: claims.forward_mode),
    *_laws(batching, _ONE, 1, binds=lambda claims: claims.vmap),
]
TRACED = _laws(tracing, _ONE, 1, binds=lambda claims: claims.compile)

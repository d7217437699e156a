"""entmax's budget_bisect: the projection onto the k-capped simplex, softorder's `uniform`."""

from entmax import budget_bisect

from benchmarks.cases import Case
from benchmarks.providers._provider import Operator, Provider


def _bind(case: Case) -> Operator:
    # 24 halvings reach the precision of float32, says its documentation; the default is 50.
    return lambda scores: budget_bisect(scores / case.temperature, budget=case.k, n_iter=24)


provider = Provider("entmax", "entmax budget_bisect", _bind)

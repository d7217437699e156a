"""The thresholds of an entropic transport plan from scores to ordered anchors.

Contract. `gains` is float64, (..., thresholds, n), or (..., 1, n) when all thresholds share it:
what score i gains by going from anchor l to l + 1, +inf where it takes no part. `levels` is
float64, (..., thresholds), ascending: how many scores belong below a threshold. `total` is float64,
(..., 1): how many take part; those that are not in `gains` are certainly at the last anchor.
`temperature` is float64 and broadcasts over the rows. The plan of score i is

    P_ai ∝ exp Σ_{l<a} (gains_li - t_l)/ε      with t_l such that  Σ_i Σ_{a≤j} P_ai = levels_j

for every threshold, and t = centre + ε · rest: the centre lies midway between the two scores that
the hard plan has on its sides, so that gains - centre is exact where it matters. A threshold whose
level is not between 0 and the number of scores that take part is closed: everything is beyond it,
or nothing. Rows do not see each other.

The operators are not differentiable: relaxations/transport_plan.py and transport_masses.py are, by
those that take the thresholds as they were found, centre and rest,

    plan, plan_vjp            P (..., anchors, n); the gradients of gains and temperature
    log_below, log_below_vjp  log Q_k (..., len(ks), n) of ascending thresholds, counted from 1, and
                              the rest of thresholds that balance logarithms where they are cold
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from softorder.kernels._operators import Operator, in_front, library
from softorder.kernels.transport import cpu, long_rows, masses, plans, reference
from softorder.kernels.transport.reference import Solution
from softorder.kernels.transport.windows import MAX_ENTRIES

_MOST = 256  # thresholds of the compiled kernel
SOLVERS = {"newton": reference.NEWTON, "sinkhorn": reference.SINKHORN}


def solve(
    gains: Tensor,
    levels: Tensor,
    total: Tensor,
    temperature: Tensor,
    solver: str,
    tolerance: float,
    max_iterations: int,
    max_entries: int = MAX_ENTRIES,
) -> Solution:
    """The thresholds of every row, the number of iterations and the error that was left.

    Long rows with an anchor for every score are refused where they would keep more than
    `max_entries` numbers of their plan.
    """
    tensors = (value.detach() for value in (gains, levels, total, temperature))
    options = SOLVERS[solver], tolerance, max_iterations, max_entries
    return Solution(*_solve(*tensors, *options))


def _compiled(
    gains: Tensor, levels: Tensor, total: Tensor, temperature: Tensor, *options: Any
) -> bool:
    """Newton's method where all thresholds share the gains, unless a whole plan is too much."""
    m = levels.shape[-1]
    few = 1 <= m <= _MOST and gains.shape[-1] * m <= MAX_ENTRIES
    return (
        few
        and _shared(gains)
        and options[0] == reference.NEWTON
        and not long_rows.serves(gains, levels)
    )


def _shared(gains: Tensor) -> bool:
    return gains.shape[-2] == 1


def _compiled_vjp(
    upstream: Tensor, gains: Tensor, temperature: Tensor, levels: Tensor, *_: Any
) -> bool:
    few = levels.shape[-1] <= _MOST
    return _shared(gains) and few and not long_rows.serves(gains, levels)


def _transport(
    gains: Tensor,
    levels: Tensor,
    total: Tensor,
    temperature: Tensor,
    solver: int,
    tolerance: float,
    max_iterations: int,
    max_entries: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    shape = gains.shape[:-2]
    rows, levels = math.prod(shape), levels.expand(*shape, levels.shape[-1])
    found = reference.solve(
        gains.reshape(rows, *gains.shape[-2:]),
        levels.reshape(rows, levels.shape[-1]),
        total.expand(*shape, 1).reshape(rows, 1),
        temperature.expand(shape).reshape(rows),
        solver,
        tolerance,
        max_iterations,
        max_entries,
    )
    centre, rest = (value.reshape(levels.shape) for value in found[:2])
    iterations, error = (value.reshape(shape) for value in found[2:])
    return centre, rest, iterations, error


def _fake(gains: Tensor, levels: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    rows = gains.shape[:-2]
    thresholds = (*rows, levels.shape[-1])
    return (
        gains.new_empty(thresholds),
        gains.new_empty(thresholds),
        gains.new_empty(rows, dtype=torch.int32),
        gains.new_empty(rows),
    )


_solve = Operator(
    "transport(Tensor gains, Tensor levels, Tensor total, Tensor temperature, int solver,"
    " float tolerance, int max_iterations, int max_entries)"
    " -> (Tensor centre, Tensor rest, Tensor iterations, Tensor error)",
    reference=_transport,
    cpu=cpu.solve,
    compiled=_compiled,
    fake=_fake,
)


@torch.library.register_vmap("softorder::transport", lib=library)
def _(info: Any, in_dims: tuple, gains: Tensor, *others: Any) -> tuple[tuple, tuple[int, ...]]:
    rows = gains.dim() - 2 - (in_dims[0] is not None)
    gains = in_front(gains, in_dims[0], rows + 2)
    gains = gains.expand(info.batch_size, *gains.shape[1:])
    axes = rows + 1, rows + 1, rows  # of levels, total and temperature
    tensors = map(in_front, others[:3], in_dims[1:4], axes)
    return torch.ops.softorder.transport(gains, *tensors, *others[3:]), (0,) * 4


# ---- plans --------------------------------------------------------------------------------------

_GIVEN = "Tensor gains, Tensor temperature, Tensor levels, Tensor total, Tensor centre, Tensor rest"


def _fake_plan(gains: Tensor, temperature: Tensor, levels: Tensor, *_: Any) -> Tensor:
    return gains.new_empty((*gains.shape[:-2], levels.shape[-1] + 1, gains.shape[-1]))


def _fake_below(
    gains: Tensor, temperature: Tensor, levels: Tensor, *others: Any
) -> tuple[Tensor, Tensor]:
    shape = (*gains.shape[:-2], len(others[-1]), gains.shape[-1])
    return gains.new_empty(shape), gains.new_empty((*gains.shape[:-2], levels.shape[-1]))


def _fake_vjp(upstream: Tensor, gains: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    return gains.new_empty(gains.shape), gains.new_empty(gains.shape[:-2])


plan = Operator(
    f"transport_plan({_GIVEN}) -> Tensor",
    reference=plans.plan,
    cpu=cpu.plan,
    compiled=lambda gains, *others: _shared(gains),
    fake=_fake_plan,
)
plan_vjp = Operator(
    f"transport_plan_vjp(Tensor upstream, {_GIVEN}) -> (Tensor, Tensor)",
    reference=plans.plan_vjp,
    cpu=cpu.plan_vjp,
    compiled=_compiled_vjp,
    fake=_fake_vjp,
)
log_below = Operator(
    f"transport_log_below({_GIVEN}, int[] ks) -> (Tensor log_below, Tensor rest)",
    reference=masses.log_below,
    cpu=cpu.log_below,
    compiled=lambda gains, *others: _shared(gains),
    fake=_fake_below,
)
log_below_vjp = Operator(
    f"transport_log_below_vjp(Tensor upstream, {_GIVEN}, int[] ks) -> (Tensor, Tensor)",
    reference=masses.log_below_vjp,
    cpu=cpu.log_below_vjp,
    compiled=_compiled_vjp,
    fake=_fake_vjp,
)

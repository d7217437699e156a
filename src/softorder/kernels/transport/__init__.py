"""Entropic transport: the thresholds of plans, the plans, and their gradients."""

from softorder.kernels.transport.contract import (
    SOLVERS,
    log_below,
    log_below_vjp,
    plan,
    plan_vjp,
    solve,
)

__all__ = ["SOLVERS", "log_below", "log_below_vjp", "plan", "plan_vjp", "solve"]

"""log p of one entry a row for several k, the loss of their mixture, and the gradients."""

from softorder.kernels.one_entry.contract import (
    log_entries,
    loss,
    loss_by_shares,
    reduced,
    reduced_vjp,
    serves_reduced,
    vjp,
)
from softorder.kernels.one_entry.reference import log_mixture, log_softmax

__all__ = [
    "log_entries",
    "log_mixture",
    "log_softmax",
    "loss",
    "loss_by_shares",
    "reduced",
    "reduced_vjp",
    "serves_reduced",
    "vjp",
]

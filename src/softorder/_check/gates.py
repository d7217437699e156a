"""The arguments of k-hot gates."""

from __future__ import annotations

from torch import Tensor

from softorder._check._kinds import dense
from softorder._check._options import at_least, choice
from softorder._check._tensors import floating
from softorder._check._values import beside


def found_temperature(features: int | None, k: float | None) -> None:
    """A temperature that logits have to find: those of a call, for a choice of k."""
    if features is not None:
        raise ValueError(
            "temperature must be a number or a tensor for a gate with logits of its own, but got "
            "'auto': they start equal, which tells nothing. Assign gate.temperature = 'auto' once "
            "they have learned"
        )
    size(k)


def size(k: float | None) -> None:
    """The softness of a choice is that of a given size."""
    if k is None:
        raise ValueError("k must be a number with temperature='auto', but got None")


def start(start: float | None, features: int | None, k: float | None) -> None:
    """`start` belongs to a gate that learns its size; k is no more than there are features."""
    if features is not None and k is not None and k > features:
        raise ValueError(f"k must be at most features = {features}, but got {k}")
    if start is None:
        return
    if features is None or k is not None:
        raise ValueError("start must be None unless k is None and features is given")
    at_least("start", start, 0)
    if not 0 < start < features:
        raise ValueError(f"start must be between 0 and features = {features}, but got {start}")


def estimator(estimator: object) -> None:
    """An estimator that gives draws with a gradient."""
    if estimator == "score_function":
        raise ValueError(
            "estimator must give draws that carry a gradient, but got 'score_function', which "
            "needs the loss: call so.estimators.score_function with gate.law() and the loss instead"
        )
    if not callable(estimator):
        estimators = (
            "straight_through",
            "second_order",
            "relaxed",
            "simple",
            "iterative_poisson",
        )
        choice("estimator", str(estimator), estimators)


def own_logits(logits: Tensor | None) -> Tensor:
    """The logits of a gate that was made with features."""
    if logits is None:
        raise ValueError("logits must be given to a gate that was made with features=None")
    return logits


def inputs(x: Tensor, features: int | None, logits: Tensor | None) -> None:
    """x, with its features last, fits the gate, and logits come from one side only."""
    dense("x", x)
    shape = tuple(x.shape)
    if features is not None and logits is not None:
        raise ValueError("logits must be None for a gate that has logits of its own")
    if features is None:
        logits = own_logits(logits)
        floating("logits", logits)
        beside("x", x, logits, "logits")
        features = logits.shape[-1]
    if shape[-1] != features:
        raise ValueError(f"x must have {features} features along dim, but got {shape[-1]}")
    if logits is not None and tuple(logits.shape[:-1]) not in ((), shape[:-1][:1]):
        raise ValueError(
            f"logits must have shape ({features},) or (items, {features}), one row for each item "
            f"of x, but got {tuple(logits.shape)}"
        )


def one_row(table: Tensor) -> None:
    """A vector, not a batch of them."""
    if table.dim() != 1:
        raise ValueError(f"logits must be a single row here, but got shape {tuple(table.shape)}")

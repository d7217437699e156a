"""What estimators need of a loss."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor


def needs_loss(estimator: str, loss: object) -> None:
    """A loss is there, and can be called."""
    if not callable(loss):
        raise TypeError(f"{estimator} needs a loss to call, but got {type(loss).__name__}")


def loss(loss: object) -> None:
    """`loss` is None, or a function of the draws."""
    if loss is not None and not callable(loss):
        raise TypeError(
            "loss must be a function of the draws or None, but got "
            f"{type(loss).__name__}; how many draws there are is said by sample_shape"
        )


def losses(losses: Tensor, shape: Iterable[int]) -> None:
    """A loss function gave one number for each draw and each row."""
    if tuple(losses.shape) != tuple(shape):
        raise ValueError(
            f"loss must return one number for each draw and row, of shape {tuple(shape)}, "
            f"but returned shape {tuple(losses.shape)}"
        )

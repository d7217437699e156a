"""The arguments of layers that choose: activations, routers, masks of weights, tokens."""

from __future__ import annotations

import torch
from torch import Tensor

from softorder._check._options import at_least, between, count, one_of
from softorder._check._tensors import floating, floating_dtype
from softorder._check._values import dtype


def last_axis(name: str, value: Tensor, features: int) -> None:
    """A tensor of floating dtype with so many features on its last axis."""
    floating(name, value)
    if value.shape[-1] != features:
        raise ValueError(
            f"{name} must have {features} features on its last axis, "
            f"but got shape {tuple(value.shape)}"
        )


def tokens(x: Tensor, features: int | None, mask: Tensor | None) -> None:
    """Sequences (batch, length, features), and which of their tokens take part."""
    floating_dtype("x", x)
    if x.dim() != 3 or (features is not None and x.shape[-1] != features):
        shown = "features" if features is None else str(features)
        raise ValueError(
            f"x must have the shape (batch, length, {shown}), but got shape {tuple(x.shape)}"
        )
    if mask is None:
        return
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        kind = dtype(mask) if isinstance(mask, Tensor) else type(mask).__name__
        raise TypeError(f"mask must be a tensor of dtype bool, but got {kind}")
    if mask.shape != x.shape[:2]:
        raise ValueError(
            f"mask must have the shape {tuple(x.shape[:2])}, one entry for each token, "
            f"but got shape {tuple(mask.shape)}"
        )


def token_scores(scores: Tensor, x: Tensor) -> None:
    """One number for each token, as a scorer gives it."""
    if scores.shape != (*x.shape[:2], 1):
        raise ValueError(
            f"scorer must give the shape {(*x.shape[:2], 1)}, one number for each token, "
            f"but gave {tuple(scores.shape)}"
        )


def kept(k: int | None, group: int | None, keep: float | None) -> None:
    """`k` of every `group` weights, or the share `keep` of all."""
    one_of(k=k, keep=keep)
    if keep is not None:
        between("keep", keep)
        if group is not None:
            raise ValueError(f"group must be None where keep is given, but got {group}")
        return
    assert k is not None
    if group is not None:
        count("group", group, least=2)
    count("k", k, least=1, most=group)


def weights(weight: Tensor, k: int, group: int | None) -> None:
    """A weight that has k entries, or splits into groups along its last axis."""
    floating("weight", weight)
    if group is not None and weight.shape[-1] % group:
        raise ValueError(
            f"weight must have a multiple of group = {group} entries on its last axis, "
            f"but got shape {tuple(weight.shape)}"
        )
    if k > weight.numel():
        raise ValueError(f"k must be at most {weight.numel()}, the number of weights, but got {k}")


def table(name: str, value: Tensor) -> None:
    """Matrices of floating dtype."""
    floating(name, value)
    if value.dim() < 2:
        raise ValueError(f"{name} must have at least two axes, but got {tuple(value.shape)}")


def router(balance: str | None, adaptive: bool) -> None:
    """Exact balance is that of tokens which have the same number of experts each."""
    if adaptive and balance == "exact":
        raise ValueError("balance must be 'bias' or None with adaptive=True, but got 'exact'")


def mixed(x: Tensor, tokens: int, experts: int, given: int) -> None:
    """As many tokens as were routed, as many experts as there are places."""
    if x.dim() < 2 or x.shape[:-1].numel() != tokens:
        raise ValueError(f"x must hold {tokens} tokens, those routed, but got {tuple(x.shape)}")
    if given != experts:
        raise ValueError(f"experts must be {experts} modules, but got {given}")


def ks(ks: tuple[int, ...], weights: tuple[float, ...]) -> None:
    """Several k, and a weight > 0 for each."""
    if not ks:
        raise ValueError("ks must hold at least one k, but is empty")
    for k in ks:
        count("each of ks", k, least=1)
    if len(weights) != len(ks) or not all(weight > 0 for weight in weights):
        raise ValueError(
            f"weights must be {len(ks)} numbers > 0, one for each k, but got {weights}"
        )


def part(name: str, value: float) -> None:
    """A number in (0, 1]."""
    at_least(name, value, 0)
    if not 0 < value <= 1:
        raise ValueError(f"{name} must be between 0 and 1, 0 excluded, but got {value}")


def criterion(criterion: object) -> None:
    """A function from prediction and target to losses, or None."""
    if criterion is not None and not callable(criterion):
        raise TypeError(
            f"criterion must be a function of prediction and target, or None, "
            f"but got {type(criterion).__name__}"
        )


def alike(prediction: Tensor, target: Tensor) -> None:
    """A prediction of floating dtype, and as many targets."""
    floating("prediction", prediction)
    if not isinstance(target, Tensor):
        raise TypeError(f"target must be a tensor, but got {type(target).__name__}")
    if len(target) != len(prediction):
        raise ValueError(
            f"target must have as many samples as prediction, {len(prediction)}, "
            f"but got {len(target)}"
        )

"""Argument validation of the layers. The rules are those of `_check`."""

from __future__ import annotations

import math
import numbers

import torch
from torch import Tensor, nn

from softorder._check import PerRow, _broadcasts, choice, count, eager


def positive_k(k: PerRow) -> None:
    """`k` is a number > 0, or a tensor of numbers that will be judged with the scores."""
    if isinstance(k, Tensor):
        return
    if not isinstance(k, (numbers.Real, torch.SymInt, torch.SymFloat)) or type(k) is bool:
        raise TypeError(f"k must be a real number or a tensor, but got {type(k).__name__}")
    if not 0 < k < math.inf:
        raise ValueError(f"k must be finite and > 0, but got {k}")


def share(name: str, value: float) -> None:
    """A number in [0, 1]."""
    if not isinstance(value, numbers.Real) or type(value) is bool:
        raise TypeError(f"{name} must be a real number, but got {type(value).__name__}")
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must be between 0 and 1, but got {value}")


def at_least(name: str, value: float, least: float) -> None:
    """A finite real number >= least."""
    if not isinstance(value, numbers.Real) or type(value) is bool:
        raise TypeError(f"{name} must be a real number, but got {type(value).__name__}")
    if not least <= value < math.inf:
        raise ValueError(f"{name} must be finite and >= {least}, but got {value}")


def floating(name: str, value: Tensor, axes: int) -> None:
    """A tensor of floating dtype with at least so many axes."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a tensor, but got {type(value).__name__}")
    if not value.dtype.is_floating_point:
        raise TypeError(f"{name} must have a floating dtype, but got {_name(value.dtype)}")
    if value.dim() < axes:
        raise ValueError(f"{name} must have at least {axes} axes, but got {tuple(value.shape)}")


def attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None) -> None:
    """Queries (..., L, E), keys (..., S, E), values (..., S, Ev), and a mask of (..., L, S)."""
    for name, given in (("query", query), ("key", key), ("value", value)):
        floating(name, given, 2)
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            "query and key must have the same number of features, "
            f"but got {query.shape[-1]} and {key.shape[-1]}"
        )
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(
            f"key and value must have the same length, but got {key.shape[-2]} "
            f"and {value.shape[-2]}"
        )
    table = _scores_shape(query, key, value)
    if attn_mask is None:
        return
    if not isinstance(attn_mask, Tensor):
        raise TypeError(f"attn_mask must be a tensor, but got {type(attn_mask).__name__}")
    if attn_mask.dtype != torch.bool and not attn_mask.dtype.is_floating_point:
        kind = _name(attn_mask.dtype)
        raise TypeError(f"attn_mask must be of dtype bool or of a floating dtype, but got {kind}")
    if not _broadcasts(attn_mask.shape, table):
        raise ValueError(
            f"attn_mask must broadcast to {table}, the heads and the lengths of query and key, "
            f"but got shape {tuple(attn_mask.shape)}"
        )


def _scores_shape(query: Tensor, key: Tensor, value: Tensor) -> tuple[int, ...]:
    """(..., L, S), if the leading axes fit."""
    leading = [tuple(x.shape[:-2]) for x in (query, key, value)]
    try:
        return (*torch.broadcast_shapes(*leading), query.shape[-2], key.shape[-2])
    except RuntimeError:
        raise ValueError(
            "query, key and value must have leading axes that broadcast, "
            f"but got {', '.join(map(str, leading))}"
        ) from None


def heads(embed_dim: int, num_heads: int) -> None:
    """`embed_dim` splits into `num_heads` equal parts."""
    if embed_dim % num_heads:
        raise ValueError(
            f"embed_dim must be a multiple of num_heads = {num_heads}, but got {embed_dim}"
        )


def plain_attention(attention: nn.MultiheadAttention) -> None:
    """An `nn.MultiheadAttention` without the options that have no counterpart here."""
    if not isinstance(attention, nn.MultiheadAttention):
        raise TypeError(
            f"attention must be an nn.MultiheadAttention, but got {type(attention).__name__}"
        )
    if attention.bias_k is not None or attention.add_zero_attn:
        raise ValueError("attention must have add_bias_kv=False and add_zero_attn=False")


def labels(name: str, value: Tensor, items: int) -> None:
    """One class index >= 0 for each item."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a tensor of integers, but got {type(value).__name__}")
    if value.dtype.is_floating_point or value.dtype.is_complex or value.dtype == torch.bool:
        raise TypeError(f"{name} must hold integers, but got a tensor of {_name(value.dtype)}")
    if tuple(value.shape) != (items,):
        raise ValueError(
            f"{name} must have shape ({items},), one for each item, but got {tuple(value.shape)}"
        )
    if eager() and value.numel() and int(value.min()) < 0:
        raise ValueError(f"{name} must be >= 0, but got {int(value.min())}")


def neighbours(k: int, templates: int) -> None:
    """There are k templates at least."""
    if k > templates:
        raise ValueError(
            f"k must be between 1 and {templates}, the number of templates, but got {k}"
        )


def same_features(queries: Tensor, templates: Tensor) -> None:
    """Two tables of points in the same space."""
    for name, table in (("queries", queries), ("templates", templates)):
        floating(name, table, 2)
        if table.dim() != 2:
            raise ValueError(
                f"{name} must have the axes (points, features), but got shape {tuple(table.shape)}"
            )
    if queries.shape[1] != templates.shape[1]:
        raise ValueError(
            "queries and templates must have the same number of features, "
            f"but got {queries.shape[1]} and {templates.shape[1]}"
        )


def together(**pairs: object) -> None:
    """Arguments that are given both or not at all."""
    given = [name for name, value in pairs.items() if value is not None]
    if len(given) == 1:
        (missing,) = set(pairs) - set(given)
        raise ValueError(f"{' and '.join(pairs)} must be given together, but {missing} is None")


def search(k: int, start: int, end: int, max_length: int, length_penalty: float) -> None:
    """The options of a beam search."""
    count("k", k, least=1)
    count("start", start, least=0)
    count("end", end, least=0)
    count("max_length", max_length, least=1)
    at_least("length_penalty", length_penalty, 0)


def embedding(embedding: nn.Module | Tensor, start: int, end: int) -> Tensor:
    """The table (V, features) of an embedding; start and end are tokens of it."""
    table = getattr(embedding, "weight", None) if isinstance(embedding, nn.Module) else embedding
    if not isinstance(table, Tensor):
        kind = type(embedding).__name__
        raise TypeError(f"embedding must be a tensor or an nn.Embedding, but got {kind}")
    floating("embedding", table, 2)
    if table.dim() != 2:
        shape = tuple(table.shape)
        raise ValueError(f"embedding must have the axes (V, features), but got shape {shape}")
    count("start", start, 0, len(table) - 1)
    count("end", end, 0, len(table) - 1)
    return table


def decoding(decoder: object, leaves: list[object]) -> None:
    """A decoder with `step`, and tensors with one batch axis as its state."""
    if not callable(getattr(decoder, "step", None)):
        raise TypeError(
            f"decoder must have a method step, but got {type(decoder).__name__}, which has none"
        )
    if not leaves:
        raise ValueError("state must hold at least one tensor, which tells the size of the batch")
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise TypeError(f"state must hold tensors, but got {type(leaf).__name__}")
    sizes = {tuple(leaf.shape[:1]) for leaf in leaves if isinstance(leaf, Tensor)}
    if len(sizes) > 1 or () in sizes:
        raise ValueError(
            "state must hold tensors with the batch on their first axis, "
            f"but got first axes of {sorted(sizes)}"
        )


def sequences(target: Tensor, batch: int, vocabulary: int, ignore_index: int) -> None:
    """Tokens (batch, T), T > 0; ignore_index only behind all of them."""
    if not isinstance(target, Tensor) or target.dtype != torch.long:
        given = _name(target.dtype) if isinstance(target, Tensor) else type(target).__name__
        raise TypeError(f"target must be a tensor of int64, but got {given}")
    if target.dim() != 2 or target.shape[0] != batch or target.shape[1] == 0:
        shape = tuple(target.shape)
        raise ValueError(f"target must have shape ({batch}, T) with T > 0, but got {shape}")
    if not eager() or target.numel() == 0:
        return
    token = target != ignore_index
    wrong = token & ((target < 0) | (target >= vocabulary))
    if wrong.any():
        raise ValueError(
            f"target must be between 0 and {vocabulary - 1}, or ignore_index = {ignore_index}, "
            f"but got {int(target[wrong][0])}"
        )
    if bool((token[:, 1:] & ~token[:, :-1]).any()):
        raise ValueError("target must have ignore_index only behind its tokens")


def gate_start(start: float | None, features: int | None, k: float | None) -> None:
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


def drawing_estimator(estimator: object) -> None:
    """An estimator that gives draws with a gradient."""
    if estimator == "score_function":
        raise ValueError(
            "estimator must give draws that carry a gradient, but got 'score_function', which "
            "needs the loss: call so.estimators.score_function with gate.law() and the loss instead"
        )
    if not callable(estimator):
        estimators = ("straight_through", "second_order", "relaxed", "simple")
        choice("estimator", str(estimator), estimators)


def own_logits(logits: Tensor | None) -> Tensor:
    """The logits of a gate that was made with features."""
    if logits is None:
        raise ValueError("logits must be given to a gate that was made with features=None")
    return logits


def gated(shape: tuple[int, ...], features: int | None, logits: Tensor | None) -> None:
    """x, with its features last, fits the gate, and logits come from one side only."""
    if features is not None and logits is not None:
        raise ValueError("logits must be None for a gate that has logits of its own")
    if features is None:
        features = own_logits(logits).shape[-1]
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


def needed(name: str, value: object, when: str) -> None:
    """An argument that is optional elsewhere."""
    if value is None:
        raise ValueError(f"{name} must be given {when}, but got None")


def known_labels(unknown: list[object], classes: list[object]) -> None:
    """No label that was not announced."""
    if unknown:
        raise ValueError(f"y must hold the classes {classes}, but got {unknown[0]!r} too")


def samples(k: int, n_samples: int) -> None:
    """Every sample has k others."""
    count("k", k, least=1)
    if k >= n_samples:
        raise ValueError(f"k must be less than n_samples={n_samples}, but got {k}")


def resumable(has_trainer: bool) -> None:
    """The estimator was trained here and not loaded from a file."""
    if not has_trainer:
        raise RuntimeError("a loaded model can predict, but partial_fit needs one that was fitted")


def remembered(count: int, call: str) -> None:
    """Something was remembered before it is asked for."""
    if count == 0:
        raise RuntimeError(f"there are no templates to compare with: call {call} first")


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")

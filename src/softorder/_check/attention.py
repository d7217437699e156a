"""The arguments of attention: queries, keys, values, heads."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from softorder._check import _values
from softorder._check._options import count
from softorder._check._tensors import with_axes


def inputs(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None) -> None:
    """Queries (..., L, E), keys (..., S, E), values (..., S, Ev), and a mask of (..., L, S)."""
    for name, given in (("query", query), ("key", key), ("value", value)):
        with_axes(name, given, 2)
        _values.beside(name, given, query, "query")
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
        kind = _values.dtype(attn_mask)
        raise TypeError(f"attn_mask must be of dtype bool or of a floating dtype, but got {kind}")
    _values.beside("attn_mask", attn_mask, query, "query")
    if not _values.broadcasts(attn_mask.shape, table):
        raise ValueError(
            f"attn_mask must broadcast to {table}, the heads and the lengths of query and key, "
            f"but got shape {tuple(attn_mask.shape)}"
        )


def groups(query: Tensor, key: Tensor, value: Tensor) -> None:
    """Heads of keys and of values that divide those of queries."""
    for name, given in (("query", query), ("key", key), ("value", value)):
        with_axes(name, given, 3)
    heads = query.shape[-3]
    for name, given in (("key", key), ("value", value)):
        if given.shape[-3] == 0 or heads % given.shape[-3]:
            raise ValueError(
                f"{name} must have a number of heads that divides those of query, {heads}, with "
                f"enable_gqa=True, but got {given.shape[-3]}"
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


def shared_heads(num_heads: int, num_kv_heads: int) -> None:
    """Heads of keys and values that divide those of queries."""
    count("num_kv_heads", num_kv_heads, least=1)
    if num_heads % num_kv_heads:
        raise ValueError(
            f"num_kv_heads must divide num_heads = {num_heads}, but got {num_kv_heads}"
        )


def plain(attention: nn.MultiheadAttention) -> None:
    """An `nn.MultiheadAttention` without the options that have no counterpart here."""
    if not isinstance(attention, nn.MultiheadAttention):
        raise TypeError(
            f"attention must be an nn.MultiheadAttention, but got {type(attention).__name__}"
        )
    if attention.bias_k is not None or attention.add_zero_attn:
        raise ValueError("attention must have add_bias_kv=False and add_zero_attn=False")

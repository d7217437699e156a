"""topk_attention."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from softorder import _check, hard
from softorder._auto import Temperature
from softorder.ops import soft_topk


def topk_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    k: float | Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    method: str | object = "laplace",
    temperature: Temperature = 1.0,
    hard_topk: bool = False,
) -> Tensor:
    """Attention to the k best keys of every query, softly.

    With scores s = query·key/√E and A = so.soft_topk(s, k),

        weights = softmax(s + log A) = A ⊙ eˢ / Σ A ⊙ eˢ        result = weights @ value

    so every key is damped as much as it does not belong to the k best. The product form needs no
    logarithm of an A that is exactly 0. Where no more than k keys take part A is 1, and this is
    `F.scaled_dot_product_attention`, whose arguments it has: the same call, with a k.

    Args:
        query: (..., L, E).
        key: (..., S, E).
        value: (..., S, Ev).
        k: how many keys to attend to, a real number > 0; more than S means all. Or a tensor that
            broadcasts to (..., L), one for each query; may require grad.
        attn_mask: broadcasts to (..., L, S). Boolean: True takes part. Floating: added to s.
        dropout_p: the part of the weights that is set to 0, the others growing in proportion.
            Applied whenever it is > 0, as in torch.
        is_causal: query i sees the keys 0..i only. May be combined with attn_mask.
        scale: instead of 1/√E.
        enable_gqa: key and value may have fewer heads (the axis before the last two) than query, a
            divisor of them; each serves as many queries' heads in turn, as in torch.
        method: as in `so.soft_topk`.
        temperature: of the soft top-k, in units of s: a number, or a tensor that broadcasts to
            (..., L). May require grad. Or "auto", as in `so.soft_topk`.
        hard_topk: take A = `so.hard.topk(s, k)`, exact zeros, for inference. Keys that tie for the
            last place share it.

    Returns:
        (..., L, Ev), of the dtype of value. A query that no key is open to gets 0. Time and memory
        O(L S): the table of weights is formed.

    Paper: SOFT top-k (Xie et al. 2020), appendix I.3.

    >>> import torch, softorder as so
    >>> query, key = torch.tensor([[2.0, 0.0]]), torch.tensor([[3.0, 0.0], [2.0, 1.0], [0.0, 1.0]])
    >>> few = so.nn.functional.topk_attention(query, key, torch.eye(3), 2, temperature=0.1)
    >>> few.numpy().round(3)
    array([[0.804, 0.196, 0.   ]], dtype=float32)
    >>> everything = so.nn.functional.topk_attention(query, key, torch.eye(3), 3)
    >>> plain = torch.nn.functional.scaled_dot_product_attention(query, key, torch.eye(3))
    >>> torch.allclose(everything, plain)
    True
    """
    _check.flag("enable_gqa", enable_gqa)
    if enable_gqa:
        _check.attention.groups(query, key, value)
        key, value = (repeated(x, query.shape[-3]) for x in (key, value))
    weights = attention_weights(
        query,
        key,
        value,
        k,
        attn_mask,
        is_causal,
        scale,
        method=method,
        temperature=temperature,
        hard_topk=hard_topk,
    )
    _check.share("dropout_p", dropout_p)
    if dropout_p > 0:
        weights = torch.dropout(weights, dropout_p, train=True)
    return weights.to(value.dtype) @ value


def repeated(x: Tensor, heads: int) -> Tensor:
    """Every head as often as it serves; small beside the table of weights."""
    return x if x.shape[-3] == heads else x.repeat_interleave(heads // x.shape[-3], -3)


def attention_weights(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    k: float | Tensor,
    attn_mask: Tensor | None,
    is_causal: bool,
    scale: float | None,
    *,
    method: str | object,
    temperature: Temperature,
    hard_topk: bool,
) -> Tensor:
    """The weights of `topk_attention`, in float32 at least."""
    _check.attention.inputs(query, key, value, attn_mask)
    _check.positive_k(k)
    _check.flag("is_causal", is_causal)
    _check.flag("hard_topk", hard_topk)
    scores = _scores(query, key, attn_mask, is_causal, scale)
    if 0 in scores.shape:
        return scores
    closed = (scores == -math.inf).all(-1, keepdim=True)
    scores = torch.where(closed, 0.0, scores)  # the softmax of nothing would be NaN
    weights = scores.softmax(-1)
    keys = scores.shape[-1]
    if isinstance(k, Tensor) or k < keys:
        most = k.clamp(max=keys) if isinstance(k, Tensor) else k
        if hard_topk:
            shares = hard.topk(scores, most)
        else:
            shares = soft_topk(scores, most, method=method, temperature=temperature)
        weights = weights * shares
        # The best key has a share of k/S and a weight of 1/S at least: never a division by 0.
        weights = weights / weights.sum(-1, keepdim=True)
    return torch.where(closed, 0.0, weights)


def _scores(
    query: Tensor, key: Tensor, attn_mask: Tensor | None, is_causal: bool, scale: float | None
) -> Tensor:
    """What is closed is at -inf."""
    scores = query @ key.mT
    if scores.dtype != torch.float64:
        scores = scores.float()
    scores = scores * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if is_causal:
        table = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device)
        scores = torch.where(table.tril(), scores, -math.inf)
    if attn_mask is None:
        return scores
    if attn_mask.dtype == torch.bool:
        return torch.where(attn_mask, scores, -math.inf)
    return scores + attn_mask

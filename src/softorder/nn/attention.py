from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from softorder import _check
from softorder._auto import Temperature
from softorder.nn._counted import Counted
from softorder.nn.functional.attention import attention_weights, repeated


class TopKAttention(Counted):
    """Multi-head attention to the k best keys: `nn.MultiheadAttention` with a soft top-k.

    Every head attends by `so.nn.functional.topk_attention`. The parameters, their names and their
    initial values are those of `nn.MultiheadAttention`, so its state dicts fit; so are the
    arguments of the call. It takes the place of `self_attn` in `nn.TransformerEncoderLayer`.

    Args:
        embed_dim: features of query and result, a multiple of num_heads.
        num_heads: how many heads.
        num_kv_heads: how many heads keys and values have, a divisor of num_heads: each serves as
            many heads of queries in turn, as with `enable_gqa` in
            `so.nn.functional.topk_attention`. None for num_heads. If there are fewer, the
            projections are three, `q_proj_weight`, `k_proj_weight` and `v_proj_weight`.
        k: how many keys each query of each head attends to; a real number > 0.
        dropout: of the weights, in training.
        bias: whether the projections have one.
        kdim: features of key, if they are not embed_dim.
        vdim: features of value, if they are not embed_dim.
        batch_first: (batch, length, features) instead of (length, batch, features).
        method: as in `so.soft_topk`.
        temperature: of the soft top-k. A tensor of shape (num_heads, 1) gives each head its own.
        learnable_temperature: make it a parameter.
        learnable_k: make it a parameter, between 0 and the number of keys, as in `so.nn.SoftTopK`;
            it has to start below that number.
        hard_inference: in eval mode take the hard top-k: exact zeros.

    >>> import torch, softorder as so
    >>> _ = torch.manual_seed(0)
    >>> layer = so.nn.TopKAttention(8, num_heads=2, k=3, batch_first=True, hard_inference=True)
    >>> x = torch.randn(1, 6, 8)
    >>> result, weights = layer.eval()(x, x, x, average_attn_weights=False)
    >>> result.shape, (weights > 0).sum(-1)[0, 0]
    (torch.Size([1, 6, 8]), tensor([3, 3, 3, 3, 3, 3]))
    """

    numbers = ("k", "dropout", *Counted.numbers)
    in_proj_weight: Tensor | None
    in_proj_bias: Tensor | None
    q_proj_weight: Tensor
    k_proj_weight: Tensor
    v_proj_weight: Tensor

    # nn.TransformerEncoderLayer asks for this: False keeps it from replacing the whole layer, in
    # inference, by a kernel that would compute a plain attention from our parameters.
    _qkv_same_embed_dim = False

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        k: float | Tensor,
        *,
        num_kv_heads: int | None = None,
        dropout: float = 0.0,
        bias: bool = True,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        method: str | object = "laplace",
        temperature: Temperature = 1.0,
        learnable_temperature: bool = False,
        learnable_k: bool = False,
        hard_inference: bool = False,
    ) -> None:
        super().__init__("soft_topk", method, temperature, learnable_temperature)
        _check.count("embed_dim", embed_dim, least=1)
        _check.count("num_heads", num_heads, least=1)
        _check.attention.heads(embed_dim, num_heads)
        num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        _check.attention.shared_heads(num_heads, num_kv_heads)
        _check.positive_k(k)
        _check.share("dropout", dropout)
        _check.flag("hard_inference", hard_inference)
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads
        self.k = k
        self._learn_k(learnable_k)
        self.dropout = dropout
        self.batch_first = batch_first
        self.hard_inference = hard_inference
        # Made by torch, so that names, shapes and initial values cannot differ from its own.
        like = nn.MultiheadAttention(embed_dim, num_heads, bias=bias, kdim=kdim, vdim=vdim)
        for name, parameter in like.named_parameters(recurse=False):
            self.register_parameter(name, parameter)
        self.out_proj = like.out_proj
        if not bias:
            self.in_proj_bias = None
        self._packed = kdim in (None, embed_dim) and vdim in (None, embed_dim)
        if num_kv_heads < num_heads:
            self._share_heads(kdim or embed_dim, vdim or embed_dim)

    def _share_heads(self, kdim: int, vdim: int) -> None:
        """Parameters for fewer heads of keys and values, begun as torch begins its own."""
        width, like = self._widths[1], self.out_proj.weight
        shapes = {"q": (self.embed_dim, self.embed_dim), "k": (width, kdim), "v": (width, vdim)}
        self._packed = False
        self.in_proj_weight = None
        for name, shape in shapes.items():
            weight = nn.init.xavier_uniform_(like.new_empty(shape))
            self.register_parameter(f"{name}_proj_weight", nn.Parameter(weight))
        if self.in_proj_bias is not None:
            self.in_proj_bias = nn.Parameter(like.new_zeros(sum(self._widths)))

    @property
    def _widths(self) -> tuple[int, int, int]:
        """Of the projected queries, keys and values."""
        shared = self.embed_dim // self.num_heads * self.num_kv_heads
        return self.embed_dim, shared, shared

    @classmethod
    def from_attention(
        cls,
        attention: nn.MultiheadAttention,
        k: float | Tensor,
        *,
        num_kv_heads: int | None = None,
        method: str | object = "laplace",
        temperature: Temperature = 1.0,
        learnable_temperature: bool = False,
        learnable_k: bool = False,
        hard_inference: bool = False,
    ) -> TopKAttention:
        """A top-k attention with a copy of the parameters of a trained plain one.

        With fewer num_kv_heads, heads of keys and values that become one are averaged.
        """
        _check.attention.plain(attention)
        layer = cls(
            attention.embed_dim,
            attention.num_heads,
            k,
            num_kv_heads=num_kv_heads,
            dropout=attention.dropout,
            bias=attention.in_proj_bias is not None,
            kdim=attention.kdim,
            vdim=attention.vdim,
            batch_first=attention.batch_first,
            method=method,
            temperature=temperature,
            learnable_temperature=learnable_temperature,
            learnable_k=learnable_k,
            hard_inference=hard_inference,
        )
        layer.to(attention.out_proj.weight)
        state = attention.state_dict()
        if layer.num_kv_heads < layer.num_heads:
            state = layer._averaged(state)
        layer.load_state_dict(state, strict=False)
        return layer.train(attention.training)

    def _averaged(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The parameters of a plain attention for fewer heads of keys and values."""
        found = {name: value for name, value in state.items() if name.startswith("out_proj")}
        packed = state.get("in_proj_weight")
        names = [f"{name}_proj_weight" for name in "qkv"]
        weights = [state[name] for name in names] if packed is None else packed.chunk(3)
        kept = [weights[0], *(self._mean_heads(weight) for weight in weights[1:])]
        found |= dict(zip(names, kept, strict=True))
        if "in_proj_bias" in state:
            q, *others = state["in_proj_bias"].chunk(3)
            found["in_proj_bias"] = torch.cat([q, *map(self._mean_heads, others)])
        return found

    def _mean_heads(self, value: Tensor) -> Tensor:
        """Of (num_heads·width, ...), every group of heads as one."""
        groups = self.num_kv_heads, self.num_heads // self.num_kv_heads, -1
        return value.unflatten(0, groups).mean(1).flatten(0, 1)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """As `nn.MultiheadAttention` is called.

        Boolean masks follow torch here: True is shut out, which is the opposite of everywhere else
        in this library; floating masks are added to the scores. The result has the layout of query.

        Args:
            query: (batch, L, embed_dim) if batch_first, else (L, batch, embed_dim); or without
                batch.
            key: the same with length S and kdim features.
            value: the same with length S and vdim features.
            key_padding_mask: (batch, S), or (S,) without batch.
            need_weights: return the weights, too.
            attn_mask: (L, S), or (batch·num_heads, L, S).
            average_attn_weights: the mean of the weights over the heads, (batch, L, S), instead of
                all of them, (batch, num_heads, L, S).
            is_causal: if there is no attn_mask, query i sees the keys 0..i only; with one, the mask
                is what counts.
        """
        batched = query.dim() == 3
        if not batched:
            query, key, value = (x.unsqueeze(0) for x in (query, key, value))
        elif not self.batch_first:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        q, k, v = (self._split(x) for x in self._project(query, key, value))
        k, v = (repeated(x, self.num_heads) for x in (k, v))
        weights = attention_weights(
            q,
            k,
            v,
            self.k_now(k.shape[-2]),
            _open(attn_mask, key_padding_mask, len(query), self.num_heads, q.dtype),
            is_causal and attn_mask is None,
            None,
            method=self.method,
            temperature=self.temperature,
            hard_topk=self.hard_inference and not self.training,
        )
        dropped = F.dropout(weights, self.dropout, self.training).to(v.dtype)
        result = self.out_proj((dropped @ v).transpose(1, 2).flatten(-2))
        shown = weights.mean(1) if average_attn_weights else weights
        if not batched:
            result, shown = result.squeeze(0), shown.squeeze(0)
        elif not self.batch_first:
            result = result.transpose(0, 1)
        return result, shown if need_weights else None

    def _project(self, query: Tensor, key: Tensor, value: Tensor) -> list[Tensor]:
        weights: tuple[Tensor, ...]
        if self._packed:
            assert self.in_proj_weight is not None
            weights = self.in_proj_weight.chunk(3)
        else:
            weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        bias = self.in_proj_bias
        biases = (None,) * 3 if bias is None else bias.split(self._widths)
        inputs = zip((query, key, value), weights, biases, strict=True)
        return [F.linear(x, weight, offset) for x, weight, offset in inputs]

    def _split(self, x: Tensor) -> Tensor:
        """(batch, length, features) to (batch, heads, length, features of a head)."""
        return x.unflatten(-1, (-1, self.embed_dim // self.num_heads)).transpose(1, 2)

    def extra_repr(self) -> str:
        shared = ("num_kv_heads",) if self.num_kv_heads < self.num_heads else ()
        names = "embed_dim", "num_heads", *shared, "k", "dropout", "method", "temperature"
        switches = {"learnable_k": self.logit_k is not None, "batch_first": self.batch_first}
        switches |= {"hard_inference": self.hard_inference}
        return self.describe(*names, **switches)


def _open(
    attn_mask: Tensor | None,
    key_padding_mask: Tensor | None,
    batch: int,
    num_heads: int,
    dtype: torch.dtype,
) -> Tensor | None:
    """Both masks as one that is added to the scores (batch, heads, L, S)."""
    if attn_mask is not None and attn_mask.dim() == 3:
        attn_mask = attn_mask.view(batch, num_heads, *attn_mask.shape[1:])
    if key_padding_mask is not None:
        key_padding_mask = key_padding_mask[..., None, None, :]
    masks = [_added(m, dtype) for m in (attn_mask, key_padding_mask) if m is not None]
    return None if not masks else sum(masks[1:], masks[0])


def _added(mask: Tensor, dtype: torch.dtype) -> Tensor:
    if mask.dtype != torch.bool:
        return mask
    return torch.zeros((), dtype=dtype, device=mask.device).masked_fill(mask, -torch.inf)

"""A small transformer whose attention is softmax or top-k."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

import softorder as so
from experiments.topk_attention.config import Candidate, Config
from experiments.topk_attention.data import END, PAD, START


class Translator(nn.Module):
    """The transformer of torch; `method` puts a top-k attention into every layer."""

    def __init__(
        self,
        config: Config,
        english: int,
        french: int,
        method: str | None,
        candidate: Candidate | None = None,
    ) -> None:
        super().__init__()
        width, candidate = config.width, candidate or Candidate()
        options = {"dropout": config.dropout, "batch_first": True, "norm_first": True}
        self.english, self.french = nn.Embedding(english, width), nn.Embedding(french, width)
        encoder = nn.TransformerEncoderLayer(width, config.heads, 4 * width, **options)
        decoder = nn.TransformerDecoderLayer(width, config.heads, 4 * width, **options)
        if method is not None:
            attend = {
                "method": method,
                "temperature": candidate.temperature or config.temperature,
                "learnable_temperature": True,
            }
            k, of = candidate.k or config.k, so.nn.TopKAttention.from_attention
            encoder.self_attn = of(encoder.self_attn, k, **attend)
            decoder.self_attn = of(decoder.self_attn, k, **attend)
            decoder.multihead_attn = of(decoder.multihead_attn, k, **attend)
        self.encoder = nn.TransformerEncoder(
            encoder, config.layers, nn.LayerNorm(width), enable_nested_tensor=False
        )
        self.decoder = nn.TransformerDecoder(decoder, config.layers, nn.LayerNorm(width))
        self.out = nn.Linear(width, french)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)
        if method is None and candidate.temperature:
            self._sharpen(candidate.temperature)

    @torch.no_grad()
    def _sharpen(self, temperature: float) -> None:
        """Start with softmax(scores/τ): the queries are divided by τ."""
        for module in self.modules():
            if isinstance(module, nn.MultiheadAttention):
                module.in_proj_weight[: module.embed_dim] /= temperature

    def forward(self, english: Tensor, french: Tensor) -> Tensor:
        """Logits of the next French word, everywhere."""
        return self._say(*self._read(english), french)

    @torch.no_grad()
    def translate(self, english: Tensor, longest: int) -> Tensor:
        """The most likely word, one after the other."""
        memory, shut = self._read(english)
        said = torch.full((len(english), 1), START)
        ended = torch.zeros(len(english), dtype=torch.bool)
        for _ in range(longest):
            word = self._say(memory, shut, said)[:, -1].argmax(-1)
            said = torch.cat([said, word.unsqueeze(1)], 1)
            ended |= word == END
            if ended.all():
                break
        return said[:, 1:]

    @torch.no_grad()
    def attention(self, english: Tensor, french: Tensor) -> Tensor:
        """What each French word looks at: (batch, French, English), the mean over the heads of the
        last layer."""
        memory, shut = self._read(english)
        attend = self.decoder.layers[-1].multihead_attn
        calls: list[tuple[Any, Any]] = []
        keep = attend.register_forward_pre_hook(
            lambda _, args, options: calls.append((args, options)), with_kwargs=True
        )
        self._say(memory, shut, french)
        keep.remove()
        (args, options), *_ = calls
        _, weights = attend(*args, **options | {"need_weights": True})
        return weights

    def hard(self, on: bool) -> None:
        """Whether top-k attention is hard at inference."""
        for module in self.modules():
            if isinstance(module, so.nn.TopKAttention):
                module.hard_inference = on

    def _read(self, english: Tensor) -> tuple[Tensor, Tensor]:
        shut = english == PAD
        memory = self.encoder(_placed(self.english(english)), src_key_padding_mask=shut)
        return memory, shut

    def _say(self, memory: Tensor, shut: Tensor, french: Tensor) -> Tensor:
        length = french.shape[1]
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        features = self.decoder(
            _placed(self.french(french)),
            memory,
            tgt_mask=later,
            memory_key_padding_mask=shut,
        )
        return self.out(features)


def _placed(x: Tensor) -> Tensor:
    """With sines and cosines of the place."""
    length, width = x.shape[-2:]
    rate = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000) / width))
    angle = torch.arange(length).unsqueeze(1) * rate
    return x * math.sqrt(width) + torch.cat([angle.sin(), angle.cos()], -1)

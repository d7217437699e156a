"""An LSTM encoder-decoder with attention, as a `so.nn.Decoder`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from experiments.beam_search.data import START

State = dict[str, Any]


class Speller(nn.Module):
    """Reads letters, says phones."""

    def __init__(self, tokens: int, hidden: int, letters: int) -> None:
        super().__init__()
        self.letters = nn.Embedding(1 + letters, hidden, padding_idx=0)
        self.encoder = nn.LSTM(hidden, hidden, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(2 * hidden, hidden)
        self.phones = nn.Embedding(tokens, hidden)
        self.cell = nn.LSTMCell(3 * hidden, hidden)
        self.query = nn.Linear(hidden, 2 * hidden, bias=False)
        self.out = nn.Sequential(
            nn.Linear(3 * hidden, hidden), nn.Tanh(), nn.Linear(hidden, tokens)
        )

    def read(self, letters: Tensor, lengths: Tensor) -> State:
        """The state before the first phone."""
        packed = nn.utils.rnn.pack_padded_sequence(
            self.letters(letters), lengths, batch_first=True, enforce_sorted=False
        )
        packed_memory, (last, _) = self.encoder(packed)
        memory, _ = nn.utils.rnn.pad_packed_sequence(packed_memory, batch_first=True)
        hidden = torch.tanh(self.bridge(torch.cat([last[0], last[1]], -1)))
        return {
            "memory": memory,
            "open": letters != 0,
            "hidden": hidden,
            "cell": torch.zeros_like(hidden),
            "context": memory.new_zeros(len(memory), memory.shape[-1]),
        }

    def step(self, embedding: Tensor, state: State) -> tuple[Tensor, State]:
        memory = state["memory"]
        inputs = torch.cat([embedding, state["context"]], -1)
        hidden, cell = self.cell(inputs, (state["hidden"], state["cell"]))
        scores = (memory @ self.query(hidden).unsqueeze(-1)).squeeze(-1)
        weights = scores.masked_fill(~state["open"], -torch.inf).softmax(-1)
        context = (weights.unsqueeze(1) @ memory).squeeze(1)
        logits = self.out(torch.cat([hidden, context], -1))
        return logits, {**state, "hidden": hidden, "cell": cell, "context": context}

    def scheduled(self, state: State, target: Tensor, sampling: float) -> Tensor:
        """The loss of a target (batch, T), -100 behind its end, when with that probability a token
        is read that the network took for the most likely, not the right one (Bengio et al. 2015).
        """
        logits = self.forced(state, target, sampling)
        return nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())

    def forced(self, state: State, target: Tensor, sampling: float = 0.0) -> Tensor:
        """Logits (batch, T, tokens) after the tokens of a target, or some of the network's own."""
        tokens = target.new_full(target.shape[:1], START)
        logits = []
        for column in target.unbind(1):
            said, state = self.step(self.phones(tokens), state)
            logits.append(said)
            own = torch.rand(len(column), device=column.device) < sampling
            tokens = torch.where(own, said.argmax(-1), column.clamp(min=0))
        return torch.stack(logits, 1)

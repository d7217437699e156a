"""Decoders for the tests of beam search."""

import torch
from torch import nn


class Recurrent(nn.Module):
    """A small recurrent decoder whose state has floats, integers and something that stays."""

    def __init__(self, vocabulary=5, features=4, hidden=6, dtype=torch.float64, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.embedding = nn.Embedding(vocabulary, features, dtype=dtype)
        self.cell = nn.GRUCell(features, hidden, dtype=dtype)
        self.out = nn.Linear(2 * hidden, vocabulary, dtype=dtype)
        self.hidden = hidden

    def start(self, batch, seed=1):
        generator = torch.Generator().manual_seed(seed)
        dtype = self.out.weight.dtype
        memory = torch.randn(batch, self.hidden, generator=generator, dtype=dtype)
        hidden = torch.randn(batch, self.hidden, generator=generator, dtype=dtype)
        return {"memory": memory, "moving": (hidden, torch.zeros(batch, dtype=torch.long))}

    def step(self, embedding, state):
        hidden, count = state["moving"]
        hidden = self.cell(embedding, hidden)
        logits = 3 * self.out(torch.cat([hidden, state["memory"]], -1))
        return logits, {"memory": state["memory"], "moving": (hidden, count + 1)}

    def likelihoods(self, tokens, item, batch, start):
        """log P of every token of one sequence, step by step."""
        state = self.start(batch)
        state = {"memory": state["memory"][item : item + 1],
                 "moving": tuple(x[item : item + 1] for x in state["moving"])}  # fmt: skip
        logs, previous = [], start
        for token in tokens:
            embedded = self.embedding.weight[previous].unsqueeze(0)
            logits, state = self.step(embedded, state)
            logs.append(logits.log_softmax(-1)[0, token])
            previous = token
        return torch.stack(logs)

"""Top-k attention inside torch's own transformer layers.

    python examples/transformer_layer.py

A sequence hides one marked token among random ones; the class is the token behind the mark. The
encoder is nn.TransformerEncoder; the only change is what stands at `self_attn`.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import softorder as so

TOKENS, LENGTH, MARK, WIDTH = 8, 16, 0, 32


def batch(size: int) -> tuple[Tensor, Tensor]:
    tokens = torch.randint(1, TOKENS, (size, LENGTH))
    place = torch.randint(LENGTH - 1, (size, 1))
    tokens.scatter_(1, place, MARK)
    return tokens, tokens.gather(1, place + 1).squeeze(1)


class Model(nn.Module):
    def __init__(self, k: int) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(TOKENS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 64, dropout=0.0, batch_first=True)
        # Before the stack copies the layer. A trained model is converted in the same way.
        layer.self_attn = so.nn.TopKAttention.from_attention(
            layer.self_attn, k, temperature=0.3, hard_inference=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(WIDTH, TOKENS)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens) + self.places.weight
        return self.out(self.encoder(x).mean(1))


def main(steps: int = 400) -> float:
    torch.manual_seed(0)
    model = Model(k=4)
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(steps):
        tokens, target = batch(64)
        loss = nn.functional.cross_entropy(model(tokens), target)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step % 100 == 0:
            print(f"step {step:4}  loss {loss.item():.3f}")
    tokens, target = batch(1000)
    with torch.no_grad():  # four keys for each query, exactly
        accuracy = (model.eval()(tokens).argmax(-1) == target).float().mean().item()
    print(f"accuracy with hard attention to 4 of {LENGTH} tokens: {accuracy:.1%}")
    return accuracy


if __name__ == "__main__":
    main()

"""A sparse autoencoder: each input is rebuilt from k of n dictionary atoms.

    python examples/sparse_autoencoder.py

Inputs are sums of three of 32 hidden directions. A soft top-k of the activations, cooled down
during training, lets gradients reach atoms that are not chosen yet; in use the top-k is hard.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import softorder as so

WIDTH, ATOMS, K, HIDDEN = 24, 64, 3, 32


class SparseAutoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.Linear(WIDTH, ATOMS), nn.Linear(ATOMS, WIDTH)
        self.topk = so.nn.SoftTopK(K, temperature=0.5)

    def forward(self, x: Tensor) -> Tensor:
        activations = self.encoder(x).relu()
        chosen = self.topk(activations) if self.training else so.hard.topk(activations, K)
        return self.decoder(activations * chosen)


def batch(size: int, directions: Tensor) -> Tensor:
    chosen = torch.rand(size, HIDDEN).argsort(-1)[:, :3]
    strength = 0.5 + torch.rand(size, 3, 1)
    return (strength * directions[chosen]).sum(1)


def main(steps: int = 2000) -> float:
    torch.manual_seed(0)
    directions = nn.functional.normalize(torch.randn(HIDDEN, WIDTH), dim=-1)
    model = SparseAutoencoder()
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(steps):
        model.topk.temperature = 0.5 * 0.02 ** (step / steps)
        x = batch(256, directions)
        loss = (model(x) - x).square().sum(-1).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step % 500 == 0:
            print(f"step {step:4}  loss {loss.item():.3f}")
    x = batch(5000, directions)
    with torch.no_grad():
        missed = (model.eval()(x) - x).square().sum() / (x - x.mean(0)).square().sum()
    print(f"variance explained by {K} of {ATOMS} atoms: {1 - missed.item():.1%}")
    return 1 - missed.item()


if __name__ == "__main__":
    main()

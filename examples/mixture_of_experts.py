"""A mixture of experts whose router chooses 2 of 8 by k-hot sampling.

    python examples/mixture_of_experts.py

The target is another linear map in each of eight regions of the plane. In training the experts are
drawn, so that all of them get their chance; in use each item takes the two best ones.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import softorder as so

EXPERTS, K, FEATURES = 8, 2, 2


class Mixture(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, EXPERTS))
        self.gate = so.nn.KHotGate(None, K)  # its logits come from the router
        self.experts = nn.ModuleList(nn.Linear(FEATURES, 1) for _ in range(EXPERTS))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Results, and how much each expert is used."""
        logits = self.router(x)
        chosen = self.gate.mask(logits=logits)  # (items, experts), two ones each
        weights = chosen * logits.softmax(-1)
        weights = weights / weights.sum(-1, keepdim=True)
        # A real model would send each item only to its experts; here all of them answer.
        answers = torch.cat([expert(x) for expert in self.experts], -1)
        return (weights * answers).sum(-1), self.gate.law(logits).probs.mean(0)


def batch(size: int) -> tuple[Tensor, Tensor]:
    x = torch.randn(size, FEATURES)
    region = (torch.atan2(x[:, 1], x[:, 0]) / torch.pi * 4).floor()
    slopes = torch.stack([(3 * region).sin(), (5 * region).cos()], -1)
    return x, 3 * (slopes * x).sum(-1)


def main(steps: int = 1500) -> tuple[float, float]:
    torch.manual_seed(0)
    model = Mixture()
    optimiser = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(steps):
        x, target = batch(256)
        result, used = model(x)
        balance = EXPERTS * (used / K).square().sum() - 1  # 0 if all are used equally
        loss = (result - target).square().mean() + 0.1 * balance
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step % 250 == 0:
            print(f"step {step:4}  loss {loss.item():.3f}")
    x, target = batch(5000)
    with torch.no_grad():
        result, used = model.eval()(x)
    error, spread = (result - target).square().mean().item(), target.var().item()
    print("use of each expert:", " ".join(f"{u:.2f}" for u in used.tolist()))
    print(f"mean squared error with 2 of 8 experts: {error:.3f} (variance {spread:.3f})")
    return error, spread


if __name__ == "__main__":
    main()

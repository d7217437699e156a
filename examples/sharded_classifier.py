"""A classifier whose classes are cut among processes: none of them ever has all logits.

    torchrun --nproc-per-node 2 examples/sharded_classifier.py

Options make it as large as memory allows: --classes 10_000_000 --steps 3 --batch 16.
Inputs are the binary digits of a class, with noise. Every process has the same small network, and
the output layer of its own classes. The top-k loss exchanges a few sums per sample; what each
process learns about the features is added up on the way back.
"""

from __future__ import annotations

import argparse
import os
import resource
import time

import torch
from torch import Tensor, distributed, nn

import softorder as so

WIDTH = 32
P_K = [0.5, 0.0, 0.0, 0.0, 0.5]  # as much for being first as for being among the first five


def digits_of(classes: int) -> int:
    return max(1, (classes - 1).bit_length())


class ShardedClassifier(nn.Module):
    """The body is the same on all ranks, the head is this rank's part of the classes."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        rank, ranks = distributed.get_rank(), distributed.get_world_size()
        self.first, last = classes * rank // ranks, classes * (rank + 1) // ranks
        torch.manual_seed(0)
        self.body = nn.Sequential(
            nn.Linear(digits_of(classes), 64), nn.ReLU(), nn.Linear(64, WIDTH)
        )
        torch.manual_seed(1 + rank)
        self.head = nn.Linear(WIDTH, last - self.first)

    def forward(self, x: Tensor) -> Tensor:
        features = so.distributed.shared(self.body(x))
        logits: Tensor = self.head(features)
        return logits


def draw(classes: int, size: int, seed: int) -> tuple[Tensor, Tensor]:
    """The same samples on all ranks."""
    generator = torch.Generator().manual_seed(seed)
    target = torch.randint(classes, (size,), generator=generator)
    places = torch.arange(digits_of(classes))
    bits = (target.unsqueeze(-1) >> places) & 1
    noise = 0.3 * torch.randn(size, len(places), generator=generator)
    return 2.0 * bits - 1 + noise, target


def accuracy(model: ShardedClassifier, x: Tensor, target: Tensor, k: int = 5) -> float:
    """How often the class is among the first k of all ranks."""
    with torch.no_grad():
        chosen = so.distributed.hard_topk(model(x), k)
    place = target - model.first
    mine = (place >= 0) & (place < chosen.shape[-1])
    at = place.clamp(0, chosen.shape[-1] - 1).unsqueeze(-1)
    hits = torch.where(mine, chosen.gather(-1, at).squeeze(-1), 0.0).sum()
    distributed.all_reduce(hits)
    return hits.item() / len(target)


def train(classes: int, steps: int, batch: int) -> float:
    model = ShardedClassifier(classes)
    optimiser = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9)
    started = time.perf_counter()
    for step in range(steps):
        x, target = draw(classes, batch, seed=step)
        loss = so.distributed.top_k_cross_entropy(model(x), target, P_K, temperature=1.0)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step % max(steps // 5, 1) == 0:
            say(f"step {step:4}  loss {loss.item():.3f}")
    seconds = (time.perf_counter() - started) / steps
    found = accuracy(model, *draw(classes, batch, seed=10**6))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    say(f"{classes:,} classes on {distributed.get_world_size()} processes: {seconds:.2f} s a step")
    say(f"{peak:.1f} GB at most on this one; {batch * classes * 4 / 1e9:.2f} GB are all logits")
    say(f"top-5 accuracy {found:.1%}")
    return found


def say(line: str) -> None:
    if distributed.get_rank() == 0:
        print(line, flush=True)


def main(classes: int = 1000, steps: int = 300, batch: int = 256) -> float:
    alone = "RANK" not in os.environ  # not started by torchrun
    if alone:
        store = distributed.HashStore()
        distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    else:
        distributed.init_process_group("gloo")
    try:
        return train(classes, steps, batch)
    finally:
        distributed.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--classes", type=int, default=1000, help="default: 1000")
    parser.add_argument("--steps", type=int, default=300, help="default: 300")
    parser.add_argument("--batch", type=int, default=256, help="default: 256")
    main(**vars(parser.parse_args()))

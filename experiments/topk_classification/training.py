"""One run: a small network, one loss, one seed."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch

import softorder as so
from experiments.topk_classification.candidates import Candidate
from experiments.topk_classification.splits import Data, Split


@dataclass(frozen=True)
class Result:
    data: str
    method: str
    k: str
    temperature: float
    seed: int
    top1: float
    top5: float
    step: float  #: milliseconds


def run(data: Data, candidate: Candidate, seed: int, judge: Split) -> Result:
    """Trains, and counts the hits on one of the splits."""
    start = time.perf_counter()
    model = trained(data, candidate, seed)
    milliseconds = 1e3 * (time.perf_counter() - start) / data.steps
    top1, top5 = counted(model, judge)
    return Result(
        data.name,
        candidate.method,
        candidate.k,
        candidate.temperature,
        seed,
        top1,
        top5,
        milliseconds,
    )


def trained(data: Data, candidate: Candidate, seed: int) -> torch.nn.Module:
    """The network after all its epochs."""
    torch.manual_seed(seed)
    model = data.model().to(data.device)
    criterion = candidate.criterion(data.classes)
    optimizer = torch.optim.Adam(model.parameters(), lr=data.rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, data.rate, total_steps=data.steps)
    for _ in range(data.epochs):
        for batch in torch.randperm(len(data.train)).to(data.device).split(data.batch):
            optimizer.zero_grad()
            inputs, target = data.train[batch]
            criterion(model(inputs), target).backward()
            optimizer.step()
            schedule.step()
    return model


def counted(model: torch.nn.Module, split: Split) -> list[float]:
    """The parts of top-1 and top-5 hits."""
    model.eval()
    metric = so.metrics.TopKAccuracy(k=(1, 5))
    with torch.no_grad():
        for places in torch.arange(len(split)).split(1024):
            inputs, target = split[places]
            metric.update(model(inputs), target)
    return [round(value, 6) for value in metric.compute().tolist()]

"""Iterations and time of the paper's root finders, and of this library's operator."""

from __future__ import annotations

import time

import torch

import softorder as so
from experiments.experiment import Experiment, Setting, Trial
from experiments.root_finding.config import PRESETS, Config
from experiments.root_finding.finders import Problem, find
from experiments.trials import Column, Figures, Trials

COLUMNS = (
    Column("iterations", "iterations", 2),
    Column("ms", "time, ms", 1),
    Column("log_error", "log10 of the largest |Σ p - k|", 1),
)


def session(config: Config, setting: Setting, _: Trials) -> Trial:
    def trial(arm: str, seed: int) -> Figures:
        spread = torch.linspace(0.1, config.widest, config.problems, dtype=torch.float64)
        x = torch.randn(config.problems, config.n, dtype=torch.float64) * spread.unsqueeze(-1)
        k = 1 + (config.n - 2) * torch.rand(config.problems, dtype=torch.float64)
        problem = Problem(x.to(setting.device), k.to(setting.device))
        start = time.perf_counter()
        if arm == "so.soft_topk":
            p = so.soft_topk(problem.x, problem.k, method="logistic")
            figures = {}
        else:
            step, _, guess = arm.partition(", ")
            c, count = find(problem, step, guess or "zero", config.tolerance, config.most)
            figures = {"iterations": float(count)}
            p = torch.sigmoid(problem.x + c.unsqueeze(-1))
        worst = (p.sum(-1) - problem.k).abs().max().item()
        figures["ms"] = 1e3 * (time.perf_counter() - start)
        return {**figures, "log_error": torch.tensor(max(worst, 1e-300)).log10().item()}

    return trial


EXPERIMENT = Experiment(
    name="root_finding",
    title="Root finding: the threshold of a sigmoid top-k",
    presets=PRESETS,
    columns=COLUMNS,
    arms=lambda config: config.arms,
    session=session,
)

"""Bias and deviation of every gradient estimator, against the exact gradient by enumeration."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from experiments.estimators.cases import CASES, LOSSES, Case, Loss, exact, problem
from experiments.estimators.config import PRESETS, Config
from experiments.experiment import Experiment, Setting, Trial
from experiments.trials import Column, Figures, Trials

COLUMNS = tuple(
    Column(f"{what}_{loss}", f"{loss}: {what}", digits)
    for loss in LOSSES
    for what, digits in (("bias", 3), ("deviation", 2))
)


def session(config: Config, _setting: Setting, _: Trials) -> Trial:
    theta, losses = problem(config.n)

    def trial(arm: str, seed: int) -> Figures:
        figures: dict[str, float] = {}
        for name, loss in losses.items():
            truth = exact(CASES[arm], config.k, theta, loss)
            found = estimates(CASES[arm], loss, theta, config, seed)
            bias, deviation = compare(found, truth)
            figures |= {f"bias_{name}": bias, f"deviation_{name}": deviation}
        return figures

    return trial


def estimates(case: Case, loss: Loss, theta: Tensor, config: Config, seed: int) -> Tensor:
    """One gradient for each repetition."""
    rows = theta.expand(config.repetitions, -1).clone().requires_grad_()
    law = case.law(config.k, rows)
    generator = torch.Generator().manual_seed(seed)
    value = case.estimator(law, loss, (config.draws,), generator=generator).mean(0).sum()
    return torch.autograd.grad(value, rows)[0]


def compare(found: Tensor, truth: Tensor) -> tuple[float, float]:
    """Norms of bias and standard deviation, relative to that of the true gradient.

    The mean of R estimates misses its expectation by v/R in the square, v the variance: this much
    is taken off the squared bias, down to 0.
    """
    scale = truth.norm().item()
    variance = found.var(0).sum().item() / scale**2
    square = (found.mean(0) - truth).square().sum().item() / scale**2 - variance / len(found)
    return math.sqrt(max(square, 0.0)), math.sqrt(variance)


EXPERIMENT = Experiment(
    name="estimators",
    title="Gradient estimators: bias and deviation",
    presets=PRESETS,
    columns=COLUMNS,
    arms=lambda config: list(CASES),
    session=session,
    devices=("cpu",),
)

"""Regression when some of the data is wrong: losses that judge a residual by its rank.

The diabetes data of scikit-learn, a linear model. A share of the training samples is spoiled: their
target is one of a far-off cluster, and their features are three times too large, so that they pull
with a long lever. Samples to validate with are spoiled alike, since nobody knows which are right;
the settings of every loss are chosen there, by the median of |residual|. Tests are clean.

    least squares, absolute     classics without a setting
    Huber                       squared up to δ, then absolute; δ in units of the median |residual|
    so.losses.TrimmedLoss       the largest losses count nothing
    so.losses.QuantileLoss      a quantile of the squares instead of their mean
    so.losses.RankHuberLoss     Huber with δ at a quantile of |residual|, found anew at every step

All start from the same fit, that of the absolute loss, and take 300 steps of Adam on all samples.

    python -m examples.robust_regression --quick      # a second or two
    python -m examples.robust_regression              # a minute; writes examples/results
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

import softorder as so
from examples.study import Setting, Study, curves_of, main
from experiments.contest import Contest
from experiments.trials import Column, Figures, Trials

BASELINES = ("least squares", "absolute", "Huber")
ARMS = (*BASELINES, "so.losses.TrimmedLoss", "so.losses.QuantileLoss", "so.losses.RankHuberLoss")
_RATE = 0.05
Criterion = Callable[[Tensor, Tensor], Tensor]
_BENDS = {0.6: 0.7, 0.75: 1.35, 0.9: 2.5}  # δ of Huber, for each of the settings


@dataclass(frozen=True)
class Config:
    shares: tuple[float, ...]  # of wrong samples
    tuned_at: float
    seeds: int

    @property
    def steps(self) -> int:
        """Of Adam; a single seed is for a look only."""
        return 300 if self.seeds > 1 else 30


def data(seed: int, share: float) -> tuple[tuple[Tensor, Tensor], ...]:
    """Features with a constant, and targets: to train, to validate, to test."""
    from sklearn.datasets import load_diabetes

    x, y = (torch.tensor(part) for part in load_diabetes(return_X_y=True))
    x = torch.linalg.qr(x).Q * len(x) ** 0.5  # the same model, with features that do not correlate
    x = torch.cat([x, torch.ones(len(x), 1, dtype=x.dtype)], -1)
    y = (y - y.mean()) / y.std()
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(x), generator=generator)
    parts = []
    for place, rows in enumerate(order.tensor_split([221, 331])):
        features, target = x[rows].clone(), y[rows].clone()
        wrong = torch.rand(len(rows), generator=generator) < (share if place < 2 else 0)
        cluster = 6 + torch.randn(len(rows), generator=generator)
        features[wrong, :-1] *= 3
        parts.append((features, torch.where(wrong, cluster, target)))
    return tuple(parts)


def criterion(arm: str, setting: float) -> Criterion:
    ours = {
        "so.losses.TrimmedLoss": so.losses.TrimmedLoss,
        "so.losses.QuantileLoss": so.losses.QuantileLoss,
        "so.losses.RankHuberLoss": so.losses.RankHuberLoss,
    }
    if arm in ours:
        return ours[arm](setting)
    if arm == "least squares":
        return torch.nn.functional.mse_loss
    if arm == "absolute":
        return torch.nn.functional.l1_loss

    def huber(prediction: Tensor, target: Tensor) -> Tensor:
        median = (prediction - target).detach().abs().median().item()
        delta = _BENDS[setting] * max(median, 1e-6) / 0.6745  # the median is 0.6745 σ of a normal
        return torch.nn.functional.huber_loss(prediction, target, delta=delta)

    return huber


def fit(loss: Criterion, x: Tensor, y: Tensor, start: Tensor, steps: int) -> Tensor:
    """By Adam on all samples: a line search would want a δ that stays."""
    slopes = start.clone().requires_grad_()
    optimiser = torch.optim.Adam([slopes], lr=_RATE)
    for step in range(steps):
        optimiser.param_groups[0]["lr"] = _RATE * (1 - step / steps)
        optimiser.zero_grad()
        loss(x @ slopes, y).backward()
        optimiser.step()
    return slopes.detach()


@lru_cache
def absolute(seed: int, share: float, steps: int) -> Tensor:
    """Where all start."""
    x, y = data(seed, share)[0]
    return fit(criterion("absolute", 0), x, y, torch.zeros(x.shape[-1], dtype=x.dtype), steps)


def trial(arm: str, seed: int, setting: Setting, config: Config) -> Figures:
    explained = {}
    for share in config.shares:
        (x, y), (xv, yv), (xt, yt) = data(seed, share)
        start = absolute(seed, share, config.steps)
        slopes = fit(criterion(arm, setting["setting"]), x, y, start, config.steps)
        explained[share] = 1 - ((xt @ slopes - yt).square().mean() / yt.var(correction=0)).item()
        if share == config.tuned_at:
            validation = (xv @ slopes - yv).abs().median().item()
    return {
        **{f"explained_{share:g}": value for share, value in explained.items()},
        "shares": [100 * share for share in config.shares],
        "curve": list(explained.values()),
        "validation": validation,
    }


_SHARES = (0.0, 0.1, 0.2, 0.3)
COLUMNS = (
    *(Column(f"explained_{s:g}", f"R² with {s:.0%} wrong", 3) for s in _SHARES),
    Column("setting", "setting", 2),
)


def finish(axes: Any, _: Trials) -> None:
    axes.set(xlabel="wrong samples in training, %", ylabel="R² on clean test data")
    axes.set_ylim(-0.5, 0.6)


STUDY = Study(
    name="robust_regression",
    title="Diabetes data with wrong samples, a linear model",
    arms=ARMS,
    trial=trial,
    settings=lambda arm: {"setting": (0.75, 0.6, 0.9)},
    full=Config(_SHARES, 0.2, 10),
    quick=Config((0.2,), 0.2, 1),
    columns=COLUMNS,
    contests=(
        Contest("explained_0", "R² without wrong samples", True, 3),
        Contest("explained_0.2", "R² with a fifth of them wrong", True, 3),
    ),
    baselines=BASELINES,
    draw=curves_of("curve", "shares", 1.0, finish),
    higher=False,
)


if __name__ == "__main__":
    main(STUDY, __doc__)

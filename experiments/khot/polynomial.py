"""Figure 9: min_θ E‖x - c‖² over laws of 50-hot vectors of length 100, by two estimators.

c is 0.45 in 50 places and 0.55 in the others. On 0/1 vectors the loss is linear, x² = x, and the
best law is certain: one where c is 0.55. Straight-through sees the slope 2(x - c) instead, whose
mean vanishes at π = c: it stops there. The second-order estimator does not. The paper solves 128
such problems at once; they are alike, and here there are 4, each with 256 draws a step as there.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from matplotlib.figure import Figure

from experiments.khot import _output
from softorder import estimators
from softorder.cli._table import Table
from softorder.distributions import KHot

N, K = 100, 50
ESTIMATORS = ("straight_through", "second_order")
_COLORS = {"straight_through": "#2563eb", "second_order": "#c2410c"}
_TARGET = torch.cat([torch.full((K,), 0.45), torch.full((N - K,), 0.55)])
OPTIMUM, START, STATIONARY = 20.25, 25.25, 24.75  # of E‖x - c‖² at the best law, at k/n, at π = c


def expected_loss(probs: torch.Tensor) -> torch.Tensor:
    """E‖x - c‖² = Σ π (1 - c)² + (1 - π) c², exactly."""
    return (probs * (1 - _TARGET).square() + (1 - probs) * _TARGET.square()).sum(-1)


def descend(
    estimator: Callable[..., torch.Tensor], problems: int, draws: int, steps: int, seed: int = 0
) -> list[float]:
    """The mean over the problems of the exact expected loss, before every step of Adam."""
    generator = torch.Generator().manual_seed(seed)
    theta = torch.zeros(problems, N, requires_grad=True)
    optimizer = torch.optim.Adam([theta], lr=0.05)
    losses = []
    for _ in range(steps):
        law = KHot(K, logits=theta, design="pareto", validate_args=False)
        losses.append(expected_loss(law.probs.detach()).mean().item())
        x = estimator(law, sample_shape=(draws,), generator=generator)
        optimizer.zero_grad()
        (x - _TARGET).square().sum(-1).mean(0).sum().backward()
        optimizer.step()
    return losses


def main() -> None:
    small = _output.quick(__doc__)
    problems, draws, steps = (4, 32, 60) if small else (4, 256, 300)
    curves = {name: descend(estimators.find(name), problems, draws, steps) for name in ESTIMATORS}
    table = Table(["estimator", "first loss", "last loss", "part of the way to the optimum"])
    for name, losses in curves.items():
        part = (losses[0] - losses[-1]) / (losses[0] - OPTIMUM)
        table.add(name, f"{losses[0]:.3f}", f"{losses[-1]:.3f}", f"{part:.3f}")
    numbers = {
        "n": N,
        "k": K,
        "problems": problems,
        "draws": draws,
        "optimum": OPTIMUM,
        "losses": {name: [round(v, 4) for v in losses[::10]] for name, losses in curves.items()},
    }
    _output.write("polynomial", numbers, table.markdown(), small, _draw(curves))


def _draw(curves: dict[str, list[float]]) -> Figure:
    figure = Figure(figsize=(7, 3.6), dpi=110, layout="constrained")
    axes = figure.subplots()
    for name, losses in curves.items():
        axes.plot(losses, color=_COLORS[name], label=name)
    axes.axhline(OPTIMUM, color="#6b7280", ls=":", label="optimum")
    axes.set_xlabel("step")
    axes.set_ylabel("E‖x - c‖²")
    axes.legend(frameon=False)
    _output.plain(axes)
    return figure


if __name__ == "__main__":
    main()

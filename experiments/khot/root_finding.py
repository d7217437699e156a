"""Table 5 and Figure 8: finding c with Σ σ(x + c) = k, by the paper's methods and by ours.

100 rows at once, x normal with standard deviations from 0.1 to 5, k uniform in [1, n - 1], in
float64, until |Σ σ(x + c) - k| <= 1e-8 in every row. Of Newton's or Halley's step and that of the
bisection, the better one is taken. The table has n = 10⁴, as in the paper; Figure 8 has n = 10⁵
here instead of 10⁶, which would not fit into a small machine. softorder's iterations are its
passes over the row, in float64, too.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import mean, stdev

import torch
from matplotlib.figure import Figure
from torch import Tensor

from experiments.khot import _output
from softorder.cli._table import Table
from softorder.kernels import threshold

ROWS, TOLERANCE, MOST = 100, 1e-8, 60
GUESSES = ("zero", "quantile", "logit", "both")
METHODS = [("bisection", "-"), *((step, g) for step in ("newton", "halley") for g in GUESSES)]


@dataclass
class Run:
    errors: list[float]  # the worst row, at the start and after every iteration
    seconds: float

    @property
    def iterations(self) -> int:
        return len(self.errors) - 1


def problem(n: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    spread = torch.linspace(0.1, 5, ROWS, dtype=torch.float64)
    x = spread[:, None] * torch.randn(ROWS, n, dtype=torch.float64, generator=generator)
    k = 1 + (n - 2) * torch.rand(ROWS, 1, dtype=torch.float64, generator=generator)
    return x, k


def solve(x: Tensor, k: Tensor, step: str, guess: str) -> Run:
    start = time.perf_counter()
    reach = x.abs().amax(-1, keepdim=True) + 40
    low, high = -reach, reach.clone()
    c = _guess(x, k, guess) if step != "bisection" else torch.zeros_like(k)
    errors = []
    for _ in range(MOST):
        p = torch.sigmoid(x + c)
        surplus = p.sum(-1, keepdim=True) - k
        errors.append(surplus.abs().max().item())
        if errors[-1] <= TOLERANCE:
            break
        low, high = torch.where(surplus < 0, c, low), torch.where(surplus > 0, c, high)
        c = _next(x, k, c, p, surplus, (low + high) / 2, step)
    return Run(errors, time.perf_counter() - start)


def _next(
    x: Tensor, k: Tensor, c: Tensor, p: Tensor, surplus: Tensor, middle: Tensor, step: str
) -> Tensor:
    if step == "bisection":
        return middle
    d = p * (1 - p)
    slope = d.sum(-1, keepdim=True)
    if step == "newton":
        leap = surplus / slope
    else:
        bend = (d * (1 - 2 * p)).sum(-1, keepdim=True)
        leap = 2 * surplus * slope / (2 * slope.square() - surplus * bend)
    leap = torch.nan_to_num(c - leap)
    return _better(x, k, leap, middle)


def _better(x: Tensor, k: Tensor, a: Tensor, b: Tensor) -> Tensor:
    errors = ((torch.sigmoid(x + c).sum(-1, keepdim=True) - k).abs() for c in (a, b))
    first, second = errors
    return torch.where(first <= second, a, b)


def _guess(x: Tensor, k: Tensor, guess: str) -> Tensor:
    n = x.shape[-1]
    if guess == "zero":
        return torch.zeros_like(k)
    if guess == "logit":
        return torch.logit(k / n) - x.mean(-1, keepdim=True)
    if guess == "quantile":
        place = (n - k).long().clamp(0, n - 1)
        return -x.sort(-1).values.gather(-1, place)
    return _better(x, k, _guess(x, k, "logit"), _guess(x, k, "quantile"))


def ours(x: Tensor, k: Tensor) -> tuple[int, float, float]:
    """Passes over the rows, seconds and the worst error of softorder's solver."""
    one = torch.ones((), dtype=torch.float64)
    start = time.perf_counter()
    found = threshold.solve(x, k.squeeze(-1), one, "logistic")
    seconds = time.perf_counter() - start
    u = (x - found.centre[:, None]) - found.rest[:, None]
    error = (torch.sigmoid(u).sum(-1, keepdim=True) - k).abs().max().item()
    return int(found.sweeps.max()), seconds, error


def main() -> None:
    small = _output.quick(__doc__)
    n, repetitions, figure_n = (1000, 2, 1000) if small else (10_000, 20, 100_000)
    rows = []
    for step, guess in METHODS:
        runs = [solve(*problem(n, seed), step, guess) for seed in range(repetitions)]
        iterations, times = [r.iterations for r in runs], [1e3 * r.seconds for r in runs]
        rows.append(_row(step, guess, iterations, times, max(r.errors[-1] for r in runs)))
    found = [ours(*problem(n, seed)) for seed in range(repetitions)]
    times = [1e3 * seconds for _, seconds, _ in found]
    rows.append(_row("softorder", "own", [v[0] for v in found], times, max(v[2] for v in found)))
    curves = {f"{s}, {g}": solve(*problem(figure_n, 0), s, g).errors for s, g in METHODS}
    table = Table(["step, guess", "iterations", "milliseconds", "worst error"])
    for row in rows:
        table.add(
            f"{row['step']}, {row['guess']}",
            f"{row['iterations']:.2f} ± {row['spread']:.2f}",
            f"{row['milliseconds']:.1f}",
            f"{row['error']:.0e}",
        )
    numbers = {"n": n, "rows": ROWS, "repetitions": repetitions, "table": rows}
    numbers |= {"figure_n": figure_n, "figure": curves}
    _output.write("root_finding", numbers, table.markdown(), small, _draw(curves, figure_n))


def _row(
    step: str, guess: str, iterations: list[int], times: list[float], error: float
) -> dict[str, object]:
    return {
        "step": step,
        "guess": guess,
        "iterations": mean(iterations),
        "spread": stdev(iterations),
        "milliseconds": min(times),
        "error": error,
    }


def _draw(curves: dict[str, list[float]], n: int) -> Figure:
    figure = Figure(figsize=(7, 3.8), dpi=110, layout="constrained")
    axes = figure.subplots()
    colors = {"bisection": "#6b7280", "newton": "#2563eb", "halley": "#c2410c"}
    styles = dict(zip(("-", *GUESSES), ("-", ":", "-.", "--", "-"), strict=True))
    for name, errors in curves.items():
        step, guess = name.split(", ")
        line = [max(v, 1e-13) for v in errors]
        axes.semilogy(line, color=colors[step], ls=styles[guess], label=name)
    axes.axhline(TOLERANCE, color="#d1d5db")
    axes.set_xlabel("iteration")
    axes.set_ylabel(f"worst |Σ σ(x + c) - k|, n = {n:,}")
    axes.legend(frameon=False, fontsize=7, ncols=2)
    _output.plain(axes)
    return figure


if __name__ == "__main__":
    main()

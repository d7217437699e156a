"""Derivatives of random small problems beside finite differences whose error is known.

    python -m tests.fuzz.derivatives --seed 4711    one problem
    python -m tests.fuzz.derivatives --calls 2800   many, each on a line before it is solved

With θ = (scores, k, τ) and weights w, s(θ) = <w, operator(θ)>, and a direction v, compared are

    gradient, forward mode, jacrev    with the slope of s(θ + t v) at t = 0
    hessian, forward over reverse     with the slope of ∇s(θ + t v)

Everything is measured in units of τ. A slope is extrapolated from central differences at δ, δ/2,
δ/4, ... (Neville's tableau in δ², its last line). What the extrapolation changed bounds the
truncation. An accuracy of the values of 10^-12 S, S their size or 1, bounds the rounding: at the
least δ = 2^-9 that is 2^8 10^-12 S, at most doubled by the extrapolation, so 10^-9 S. A derivative
may be off by ten times their sum. Where differences do not settle as δ shrinks, at kinks, nothing
is judged, and the summary says how often that was.
"""

import argparse
import random
import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass

import torch

import softorder as so
from tests.laws.corners.answers import solver

_STEPS = 0.25 * 2.0 ** -torch.arange(8, dtype=torch.float64)
_ROUNDING = 1e-9  # of the values' size
_SETTLED = 1e-3  # of the slope, or 1: how near the differences of the last two steps have to be,
_FALLING = 0.4  # and what is left of the change before: a quarter where s is smooth, half at a kink
_ALLOWED = 10  # times the error that is known


@dataclass(frozen=True)
class Problem:
    seed: int
    operator: str
    method: str
    kind: str
    theta: torch.Tensor  # the scores, k and τ
    direction: torch.Tensor

    def __str__(self):
        *scores, k, tau = self.theta.tolist()
        shown = ", ".join(f"{x:.4g}" for x in scores)
        return (
            f"--seed {self.seed}  # {self.operator} by {self.method}, {self.kind} [{shown}], "
            f"k={k:.4g}, temperature={tau:.3g}"
        )

    @property
    def units(self):
        """What a step of 1 in each of θ is."""
        units = self.theta[-1].expand_as(self.theta).clone()
        units[-2] = 1
        return units

    def values(self, thetas):
        """The operator at every row of these."""
        solve = solver(self.operator, self.method, self.theta[None, :-2])
        return solve(thetas[:, :-2], thetas[:, -2], thetas[:, -1]).flatten(1)

    def sum(self, thetas):
        """Σ s of every row."""
        values = self.values(thetas)
        return (values * self.weights(values)).sum()

    def weights(self, values):
        random = torch.Generator().manual_seed(self.seed)
        return torch.randn(values.shape[-1], generator=random, dtype=values.dtype)


# ---- problems ------------------------------------------------------------------------------------

CASES = [(row.operator, row.name) for row in so.methods() if row.derivatives >= 2] + [
    ("top_k_cross_entropy", name) for name in so.densities.BUILT_IN
]


def make(seed):
    """The problem of this seed. Consecutive seeds go through all operators and methods."""
    choose, generator = random.Random(seed), torch.Generator().manual_seed(seed)
    operator, method = CASES[seed % len(CASES)]
    n = choose.randint(2, 6)
    tau = 10 ** choose.uniform(-1, 1)
    kind = choose.choice([*_KINDS])
    scores = tau * _KINDS[kind](generator, n)
    k = choose.randint(0, n - 1) + choose.uniform(0.3, 0.7)
    direction = torch.randn(n + 2, generator=generator, dtype=torch.float64)
    direction[:-2] *= tau
    direction[-2] = 0.2 * direction[-2].clamp(-1, 1)
    direction[-1] *= 0.2 * tau
    theta = torch.cat([scores, torch.tensor([k, tau], dtype=torch.float64)])
    return Problem(seed, operator, method, kind, theta, direction)


def _normal(generator, n):
    return torch.randn(n, generator=generator, dtype=torch.float64)


#: In units of τ.
_KINDS = {
    "near": _normal,
    "spread": lambda generator, n: 5 * _normal(generator, n),
    "shifted": lambda generator, n: _normal(generator, n) + 1000,
    "clusters": lambda generator, n: (
        _normal(generator, n) + 15 * torch.randint(3, (n,), generator=generator)
    ),
}


# ---- finite differences --------------------------------------------------------------------------


@dataclass(frozen=True)
class Slope:
    """Of one or several numbers: the slope at 0, how far it may be off, and whether we know."""

    value: torch.Tensor
    error: torch.Tensor
    settled: torch.Tensor

    def refutes(self, found):
        """In words, if it does."""
        wrong = (found - self.value).abs() > _ALLOWED * self.error
        wrong |= ~found.isfinite()
        wrong &= self.settled
        if not wrong.any():
            return ""
        at = wrong.flatten().nonzero()[0, 0]
        numbers = (v.flatten()[at].item() for v in (found, self.value, _ALLOWED * self.error))
        return "is {:.9g}, but {:.9g} ± {:.1g} by differences".format(*numbers)


def slope(up, down):
    """From values at +δ and -δ, δ = 1/4, 1/8, ..., one step in each line."""
    steps = _STEPS.view(-1, *[1] * (up.dim() - 1))
    column = (up - down) / (2 * steps)
    *_, before, last = column.diff(dim=0).abs()
    best, error = column[-1], last
    for order in range(1, len(_STEPS)):
        finer, coarser = column[1:], column[:-1]
        column = finer + (finer - coarser) / (4**order - 1)
        change = torch.maximum((column - finer).abs(), (column - coarser).abs())[-1]
        best = torch.where(change < error, column[-1], best)
        error = torch.minimum(change, error)
    rounding = _ROUNDING * up.abs().max().clamp(min=1)
    settled = last <= _SETTLED * best.abs().max().clamp(min=1)
    return Slope(best, error + rounding, settled & (last <= _FALLING * before + rounding))


# ---- judging -------------------------------------------------------------------------------------


def check(problem):
    """What is wrong, in words, if anything is; and whether there was something to judge."""
    by_value, by_gradient = _slopes(problem)
    judged = by_value.settled.all() and by_gradient.settled.all()
    wrong = []
    for name, found in _first(problem):
        words = by_value.refutes(found)
        wrong += [f"{name} {words}"] if words else []
    for name, found in _second(problem):
        words = by_gradient.refutes(problem.units * found)
        wrong += [f"{name} {words}"] if words else []
    return "; ".join(wrong), judged.item()


def _slopes(problem):
    """Of s, and of its gradient, along the direction; all points are rows of one call."""
    moved = (_STEPS[:, None] * problem.direction).repeat(2, 1)
    moved[len(_STEPS) :] *= -1
    points = (problem.theta + moved).requires_grad_()
    values = problem.values(points)
    values = values @ problem.weights(values)
    (gradients,) = torch.autograd.grad(values.sum(), points)
    return slope(*values.detach().chunk(2)), slope(*(problem.units * gradients).chunk(2))


def _first(problem):
    theta, v = problem.theta[None], problem.direction[None]
    leaf = theta.clone().requires_grad_()
    yield "the gradient", (torch.autograd.grad(problem.sum(leaf), leaf)[0] * v).sum()
    yield "forward mode", torch.func.jvp(problem.sum, (theta,), (v,))[1]
    jacobian = torch.func.jacrev(problem.values)(theta)[0, :, 0]
    yield "jacrev", problem.weights(jacobian[:, 0]) @ jacobian @ v[0]


def _second(problem):
    theta, v = problem.theta[None], problem.direction[None]
    leaf = theta.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(problem.sum(leaf), leaf, create_graph=True)
    along = (gradient * v).sum()
    again = along.requires_grad
    yield "the hessian", torch.autograd.grad(along, leaf)[0][0] if again else 0 * problem.theta
    yield (
        "forward over reverse",
        torch.func.jvp(torch.func.grad(problem.sum), (theta,), (v,))[1][0],
    )


def run(seeds, stop_after, show=print):
    """Solves the problems of these seeds; returns how many, how many were judged, the failures."""
    counts, failures = Counter(), []
    begin = time.process_time()
    for seed in seeds:
        if time.process_time() - begin > stop_after:
            break
        problem = make(seed)
        show(f"python -m tests.fuzz.derivatives {problem}")
        wrong, judged = check(problem)
        counts.update(solved=1, judged=judged)
        if wrong:
            failures.append(f"python -m tests.fuzz.derivatives {problem}\n    {wrong}")
            show(f"    {wrong}")
    return counts["solved"], counts["judged"], failures


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz.derivatives",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, help="of one problem")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first seed")
    parser.add_argument("--calls", type=int, default=2800, help="how many problems")
    parser.add_argument("--seconds", type=float, default=1e9, help="of CPU time, then stop")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", "`torch.jit.script", DeprecationWarning)
    seeds = range(given.first, given.first + given.calls)
    solved, judged, failures = run(
        seeds if given.seed is None else [given.seed],
        given.seconds,
        lambda line: print(line, flush=True),
    )
    for line in failures:
        print(line, file=sys.stderr)
    print(f"{solved} problems, {judged} judged in full, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

"""Bias and variance of every estimator, against the exact gradient by enumeration.

n = 10, k = 3, one fixed θ. The true gradient of E f(x) sums over all 120 subsets; an estimate is
the mean over 4 draws. Bias and standard deviation are norms, relative to that of the true gradient;
the error is the root mean square of both. A bias below 3 standard errors is only bounded by them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from experiments.khot import _output
from softorder import estimators
from softorder.cli._table import Table
from softorder.distributions import KHot

N, K, DRAWS = 10, 3, 4
_GENERATOR = torch.Generator().manual_seed(0)
_THETA = torch.randn(N, generator=_GENERATOR, dtype=torch.float64)
_TARGET = torch.rand(N, generator=_GENERATOR, dtype=torch.float64)
_MIXING = torch.randn(N, N, generator=_GENERATOR, dtype=torch.float64) / math.sqrt(N)


def linear(x: Tensor) -> Tensor:
    return x @ _TARGET


def quadratic(x: Tensor) -> Tensor:
    return (x - _TARGET).square().sum(-1)


def curved(x: Tensor) -> Tensor:
    return torch.tanh(x @ _MIXING).square().sum(-1)


LOSSES = {"linear": linear, "quadratic": quadratic, "curved": curved}

_NATURAL = {"design": "conditional_poisson"}
_LOGISTIC = {"design": "conditional_poisson", "density": "logistic"}
_GUMBEL = {"design": "gumbel_topk"}
#: What is estimated, by whom, of which law.
CASES: list[tuple[str, Callable[..., Tensor], dict[str, str]]] = [
    ("straight_through", estimators.straight_through, _LOGISTIC),
    ("second_order", estimators.second_order, _LOGISTIC),
    ("simple", estimators.simple, _NATURAL),
    ("score_function", estimators.score_function, _NATURAL),
    (
        "score_function, no baseline",
        partial(estimators.score_function, baseline=False),
        _NATURAL,
    ),
    ("relaxed, τ = 1", estimators.relaxed, _GUMBEL),
    ("relaxed, τ = 0.3", partial(estimators.relaxed, temperature=0.3), _GUMBEL),
    ("relaxed, τ = 0.3, hard", partial(estimators.relaxed, temperature=0.3, hard=True), _GUMBEL),
]


def exact(loss: Callable[[Tensor], Tensor], options: dict[str, str]) -> Tensor:
    """The gradient of Σ P(x) f(x) over all subsets."""
    theta = _THETA.clone().requires_grad_()
    law = KHot(K, logits=theta, **options)
    x = law.enumerate_support()
    log_prob = _successive(theta, x) if options == _GUMBEL else law.log_prob(x)
    return torch.autograd.grad((log_prob.exp() * loss(x)).sum(), theta)[0]


def _successive(theta: Tensor, x: Tensor) -> Tensor:
    """log P of Gumbel top-k: the sum over the orders in which a subset can be drawn."""
    orders = torch.tensor([[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]])
    units = x.nonzero()[:, 1].reshape(-1, K)[:, orders]  # subsets, orders, places
    weight = theta.exp()[units]
    left = theta.exp().sum() - weight.cumsum(-1) + weight
    return (weight.log() - left.log()).sum(-1).logsumexp(-1)


def estimates(
    estimator: Callable[..., Tensor],
    loss: Callable[[Tensor], Tensor],
    options: dict[str, str],
    repetitions: int,
) -> Tensor:
    """One gradient for each repetition."""
    rows = _THETA.expand(repetitions, -1).clone().requires_grad_()
    law = KHot(K, logits=rows, **options)
    generator = torch.Generator().manual_seed(1)
    value = estimator(law, loss, (DRAWS,), generator=generator).mean(0).sum()
    return torch.autograd.grad(value, rows)[0]


def measure(
    estimator: Callable[..., Tensor],
    loss: Callable[[Tensor], Tensor],
    options: dict[str, str],
    repetitions: int,
) -> dict[str, float]:
    truth, found = exact(loss, options), estimates(estimator, loss, options, repetitions)
    scale = truth.norm().item()
    bias = (found.mean(0) - truth).norm().item() / scale
    deviation = found.var(0).sum().sqrt().item() / scale
    return {
        "bias": bias,
        "bias_error": deviation / math.sqrt(repetitions),
        "deviation": deviation,
        "error": math.hypot(bias, deviation),
    }


def main() -> None:
    small = _output.quick(__doc__)
    repetitions = 500 if small else 20_000
    rows = [
        {"estimator": name, "law": options["design"], "loss": kind}
        | measure(estimator, loss, options, repetitions)
        for kind, loss in LOSSES.items()
        for name, estimator, options in CASES
    ]
    heads = [f"{kind}: {what}" for kind in LOSSES for what in ("bias", "deviation")]
    table = Table(["estimator", *heads])
    for name, *_ in CASES:
        cells = [row for row in rows if row["estimator"] == name]
        table.add(name, *(text for row in cells for text in _cells(row)))
    numbers = {"n": N, "k": K, "draws": DRAWS, "repetitions": repetitions, "rows": rows}
    _output.write("estimators", numbers, table.markdown(), small)


def _cells(row: dict[str, float]) -> tuple[str, str]:
    bias, error = row["bias"], row["bias_error"]
    clear = bias > 3 * error
    return f"{bias:.3f}" if clear else f"< {3 * error:.3f}", f"{row['deviation']:.2f}"


if __name__ == "__main__":
    main()

"""The curve of one provider: time, memory and error of ever larger n."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from benchmarks.providers import Provider
from experiments.runtime_memory.config import Config
from experiments.runtime_memory.memory import peak
from experiments.runtime_memory.part import Part
from softorder.cli._timing import interleaved

Point = Mapping[str, float]
_STEEPEST = 3.0  #: no method grows faster; a steeper pair of points is noise


def curve(part: Part, provider: Provider, config: Config) -> list[Point]:
    """One point per n, up to where the next would be too slow or too large."""
    points: list[Point] = []
    for n in config.sizes:
        if _beyond(points, n, config):
            break
        points.append(_point(part, provider, n, config.seconds))
    return points


def _beyond(points: Sequence[Point], n: int, config: Config) -> bool:
    if not points:
        return False
    slow = foreseen(points, "both", n) > 1e3 * config.limit
    return slow or foreseen(points, "memory", n) > config.memory


def foreseen(points: Sequence[Point], key: str, n: int) -> float:
    """A figure at n, if it goes on with the power of n that it had last; linear or steeper."""
    last, power = points[-1], 1.0
    if len(points) > 1 and points[-2][key] > 0 < last[key]:
        before = points[-2]
        power = math.log(last[key] / before[key]) / math.log(last["n"] / before["n"])
    return last[key] * (n / last["n"]) ** min(max(power, 1.0), _STEEPEST)


def _point(part: Part, provider: Provider, n: int, seconds: float) -> Point:
    case = part.case(n)
    operator, scores = provider.bind(case), case.scores().to(part.dtype)
    result = operator(scores).detach()
    error = {} if part.error is None else {"error": part.error(result, case)}
    upstream, leaf = torch.randn_like(result), scores.clone().requires_grad_()
    del result

    def forward() -> Tensor:
        return operator(scores)

    def both() -> tuple[Tensor, ...]:
        return torch.autograd.grad(operator(leaf), leaf, upstream)

    times = interleaved({"forward": forward, "both": both}, seconds)
    return {
        "n": float(n),
        **{name: 1e3 * timing.minimum for name, timing in times.items()},
        "forward_memory": peak(forward) / 1e6,
        "memory": peak(both) / 1e6,
        **error,
    }

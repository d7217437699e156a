"""softorder bench topk --device cuda: the soft top-k on a GPU, by the GPU's own clock."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from benchmarks import providers
from benchmarks.cases import SHAPES, Case, Shape
from benchmarks.providers import Operator, Provider
from softorder.cli._table import Table
from softorder.kernels import _triton

_TEMPERATURE = 0.1
_YARDSTICK = "torch.softmax"


def run(device: str, only: Sequence[str], seconds: float | None, output: Path | None) -> Table:
    """Milliseconds of every provider, forward and forward with backward; printed and written."""
    names = [shape.key for shape in SHAPES]
    unknown = sorted(set(only) - set(names))
    if unknown:
        known = ", ".join(names)
        raise SystemExit(f"softorder bench --device: unknown {', '.join(unknown)}; known: {known}")
    place = torch.device(device)
    shapes = [shape for shape in SHAPES if not only or shape.key in only]
    rivals = [providers.native(d) for d in providers.DENSITIES] + providers.peers()[:4]
    table, raw = Table(["ms", *(p.name for p in rivals)]), {}
    for shape in shapes:
        for backward in (False, True):
            times = _times(shape, backward, rivals, place, (seconds or 1.0) / len(rivals))
            label = f"{shape} {'with gradient' if backward else 'forward'}"
            raw[label] = times
            table.add(label, *(_cell(times[p.name], times[_YARDSTICK]) for p in rivals))
    print(f"{_name(place)}; in brackets: of torch.softmax\n")
    print(table.text())
    print(f"\nTriton kernels launched: {_triton.calls.total()}")
    folder = output or Path("reports")
    folder.mkdir(parents=True, exist_ok=True)
    written = {"device": _name(place), "seconds": raw}
    (folder / f"topk_{place.type}.json").write_text(json.dumps(written, indent=1))
    return table


def _times(
    shape: Shape, backward: bool, rivals: Sequence[Provider], place: torch.device, seconds: float
) -> dict[str, float]:
    """Seconds per call, the median."""
    case = Case(shape, max(shape.n // 10, 1), _TEMPERATURE)
    scores = case.scores().to(place)
    prepare = _with_gradient if backward else _forward
    calls = {provider.name: prepare(provider.bind(case), scores) for provider in rivals}
    return {name: _median(call, place, seconds) for name, call in calls.items()}


def _forward(operator: Operator, scores: torch.Tensor) -> Callable[[], object]:
    return lambda: operator(scores)


def _with_gradient(operator: Operator, scores: torch.Tensor) -> Callable[[], object]:
    leaf = scores.clone().requires_grad_()
    upstream = torch.randn_like(operator(scores))
    return lambda: torch.autograd.grad(operator(leaf), leaf, upstream)


def _median(call: Callable[[], object], place: torch.device, seconds: float) -> float:
    clock = _events if place.type == "cuda" else _wall
    clock(call)  # compiles
    samples, spent = [clock(call)], 0.0
    while spent < seconds:
        samples.append(clock(call))
        spent += samples[-1]
    return statistics.median(samples)


def _events(call: Callable[[], object]) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    call()
    end.record()
    end.synchronize()
    return 1e-3 * start.elapsed_time(end)


def _wall(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _cell(seconds: float, yardstick: float) -> str:
    return f"{1e3 * seconds:.4g} ({seconds / yardstick:.2g})"


def _name(place: torch.device) -> str:
    return torch.cuda.get_device_name(place) if place.type == "cuda" else str(place)

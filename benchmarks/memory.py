"""How memory is measured: the peak of a forward pass, and what the graph keeps for backward."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks.cases import Problem
from benchmarks.providers import Operator, Provider

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


@dataclass(frozen=True)
class Memory:
    """Bytes that one provider needs on one case."""

    case: Problem
    provider: Provider
    forward: int | None  # peak during the forward pass, its output included; None: not measured
    saved: int  # kept by the graph until backward


def measure(case: Problem, provider: Provider) -> Memory:
    """The case should have some MB: resident pages are counted in batches."""
    operator, scores = provider.bind(case), case.scores()
    return Memory(case, provider, peak(operator, scores), saved(operator, scores))


def peak(operator: Operator, scores: torch.Tensor) -> int | None:
    """What the process grew by, which counts native buffers as well as tensors; Linux only."""
    if sys.platform != "linux":
        return None
    operator(scores[..., :100_000].contiguous())  # lazy initialisation happens here
    return growth(lambda: operator(scores))


def growth(call: Callable[[], object]) -> int:
    """The peak of the process during the call, above what it had before; its result included."""
    _give_back()
    _CLEAR.write_text("5")  # forget the peak so far
    before = _status("VmRSS")
    output = call()
    grown = _status("VmHWM") - before
    del output
    return grown


def _give_back() -> None:
    """Freed memory that the allocator kept would be used again, and not show in the peak."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's
    if trim is not None:
        trim(0)


def _status(field: str) -> int:
    lines = _STATUS.read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) * 1024


def saved(operator: Operator, scores: torch.Tensor) -> int:
    """What the graph of one call keeps until backward, each storage once."""
    sizes: dict[int, int] = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        if not (tensor.is_sparse or tensor.is_nested):  # constants of a network; views of values
            storage = tensor.untyped_storage()
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        operator(scores.clone().requires_grad_())
    return sum(sizes.values())

"""Rank, sort and their graphs take a few numbers per score, whatever the method."""

import sys

import pytest
import torch

import softorder as so
from tests.oracles.densities import BUILT_IN
from tests.runtime.processes import run

_OPERATORS = pytest.mark.parametrize("operator", [so.soft_rank, so.soft_sort], ids=["rank", "sort"])
_PER_SCORE = 64  # bytes: sorted values, their order, and roots with their slopes

_PEAK = """
import torch
import softorder as so

def status(field):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) * 1024

torch.set_num_threads(2)
scores = torch.randn({n})
so.{operator}(scores[:100_000].contiguous(), method="{method}", temperature=0.01)
open("/proc/self/clear_refs", "w").write("5")  # forget the peak so far
before = status("VmRSS")
result = so.{operator}(scores, method="{method}", temperature=0.01)
print(status("VmHWM") - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
@_OPERATORS
def test_peak_of_a_long_row(operator):
    n = 2**22
    script = _PEAK.format(n=n, operator=operator.__name__, method="laplace")
    assert int(run(script, SOFTORDER_KERNELS="native")) <= _PER_SCORE * n


@_OPERATORS
@pytest.mark.parametrize("method", BUILT_IN)
def test_the_graph_keeps_a_few_numbers_per_score(kernel, operator, method):
    sizes = {}

    def pack(tensor):
        sizes[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    scores = torch.randn(2, 300, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        operator(scores, method=method, temperature=0.1)
    assert sizes, "nothing was saved for backward"
    assert sum(sizes.values()) <= _PER_SCORE * scores.numel() + 1024

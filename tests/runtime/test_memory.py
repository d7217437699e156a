"""Forward needs its output and one buffer; the graph keeps one tensor of n."""

import sys

import pytest
import torch

import softorder as so
from tests.oracles.densities import BUILT_IN
from tests.runtime.processes import run

_ROW = 2**24  # 64 MiB of float32: far above everything else that comes and goes

_PEAK = """
import torch
import softorder as so

def status(field):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) * 1024

torch.set_num_threads(2)
scores = torch.randn({shape})
so.soft_topk(scores[..., :100_000].contiguous(), 1000, method="{method}")
open("/proc/self/clear_refs", "w").write("5")  # forget the peak so far
before = status("VmRSS")
p = so.soft_topk(scores, 1000, method="{method}")
print(status("VmHWM") - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
@pytest.mark.parametrize("shape", [(_ROW,), (16, _ROW // 16)], ids=str)
@pytest.mark.parametrize("method", BUILT_IN)
@pytest.mark.slow
def test_forward_needs_its_output_and_one_row_sized_buffer(method, shape):
    script = _PEAK.format(shape=shape, method=method)
    peak = int(run(script, SOFTORDER_KERNELS="native"))
    output, buffer = 4 * _ROW, 4 * shape[-1]
    assert peak <= output + buffer + 4 * 2**20


@pytest.mark.parametrize("method", BUILT_IN)
@pytest.mark.parametrize("shape", [(1, 5000), (7, 500)], ids=str)
def test_the_graph_keeps_one_tensor_of_n_and_little_per_row(kernel, method, shape):
    sizes = {}

    def pack(tensor):
        sizes[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    scores = torch.randn(shape, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        so.soft_topk(scores, 20, method=method, temperature=0.1)
    rows, n = shape
    assert sizes, "nothing was saved for backward"
    assert sum(sizes.values()) <= 4 * rows * n + 64 * rows

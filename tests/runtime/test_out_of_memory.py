"""When memory runs out a call raises, and the next, smaller one works."""

import sys

import pytest

from tests.runtime.processes import run_fresh

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")

# The limit rises step by step until a call has all it wants. On the way first torch cannot have the
# results, and then a kernel cannot have what it works with.
_SCRIPT = """
import re, resource
import torch
import softorder as so

torch.set_num_threads({threads})

def permutation(method):
    return lambda x: so.soft_permutation(x, k=1, method=method, descending=True)

CALLS = dict(
    topk_forward=lambda x: so.soft_topk(x, 10.5, method="logistic"),
    sort=so.hard.sort,
    soft_rank_forward=so.soft_rank,
    soft_sort_forward=so.soft_sort,
    fsum_invert=lambda x: so.soft_quantile(x, torch.linspace(0.1, 0.9, 5), method="uniform"),
    permutation_forward=permutation("laplace"),
    projected_rank_forward=lambda x: so.soft_rank(x, method="permutahedron"),
    projected_sort_forward=lambda x: so.soft_sort(x, method="permutahedron_kl"),
    network=lambda x: so.soft_sort(x, method="network", temperature=0.1),
    row_softmax=permutation("neuralsort"),
)
LONG = {{"network": (32, 1_000)}}
STEP = 2**18

def scores(shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))

def address_space():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmSize")) * 1024

def allow(bytes):
    resource.setrlimit(resource.RLIMIT_AS, (bytes, resource.RLIM_INFINITY))

def attempt(call, x, allowed):
    allow(allowed)
    try:
        call(x)
        return "had"
    except MemoryError as error:
        kernel = re.search("the kernel ([a-z_]+) could not have [1-9][0-9]+ bytes", str(error))
        return kernel[1] if kernel else "python"
    except RuntimeError as error:
        assert "can't allocate memory" in str(error), error
        return "torch"
    finally:
        allow(resource.RLIM_INFINITY)

few = scores((4, 50))
expected = {{name: call(few) for name, call in CALLS.items()}}
for name, call in CALLS.items():
    long = scores(LONG.get(name, {shape}))
    call(long)  # now the threads are there: OpenMP ends a process that cannot have them
    start, outcomes = address_space(), []
    while "had" not in outcomes:
        outcomes.append(attempt(call, long, start + STEP * len(outcomes)))
        assert torch.equal(call(few), expected[name]), "the next call"
    print(name, *sorted(set(outcomes)))
"""

_ENVIRONMENT = {
    "SOFTORDER_KERNELS": "native",
    "OMP_WAIT_POLICY": "passive",
    "MALLOC_MMAP_THRESHOLD_": "65536",  # nothing is kept for later: what a call wants it asks for
}


_ROW, _MATRIX = (2**18,), (4, 2**17)


@pytest.mark.parametrize(
    ("threads", "shape"),
    [(1, _ROW), *(pytest.param(2, shape, marks=pytest.mark.slow) for shape in (_ROW, _MATRIX))],
    ids=str,
)
def test_a_kernel_without_memory(threads, shape):
    """Where malloc has kept something for later, a kernel that wants little has it: try again."""
    script, lacked, missing = _SCRIPT.format(threads=threads, shape=shape), set(), None
    for _ in range(4):
        printed = [line.split() for line in run_fresh(script, **_ENVIRONMENT).splitlines()]
        assert len(printed) == 10
        lacked.update(name for name, *outcomes in printed if name in outcomes)
        missing = {name for name, *_ in printed} - lacked
        if not missing:
            return
    raise AssertionError(f"never lacked memory: {missing}")

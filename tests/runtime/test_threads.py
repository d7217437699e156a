"""Many Python threads at once, and no more OpenMP threads than torch allows."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

import softorder as so
from tests.runtime import calls
from tests.runtime.processes import run, run_fresh

_SIZES = (5, 1000, 60_000)


def _work(seed):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(3, _SIZES[seed % 3], generator=generator, requires_grad=True)
    method = ("laplace", "cauchy", "uniform", "logistic")[seed % 4]
    p = so.soft_topk(scores, 1 + seed % 3, method=method, temperature=0.1 + seed / 10)
    (gradient,) = torch.autograd.grad(p.square().sum(), scores)
    return p.detach(), gradient


def test_threads_do_not_disturb_each_other(kernel):
    seeds = range(24)
    alone = [_work(seed) for seed in seeds]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(_work, [*seeds, *seeds]))
    torch.testing.assert_close(together, alone + alone)


def test_all_operators_at_once():
    """Every operator, forward and backward, in eight threads, as if it were alone."""
    long = ("soft_topk, laplace", "soft_rank, laplace")
    tasks = [(name, calls.scores(seed)) for seed in range(3) for name in calls.NAMES]
    tasks += [(name, calls.scores(0, (2, 20_000))) for name in long]
    alone = [calls.call(*task) for task in tasks]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda task: calls.call(*task), tasks))
    torch.testing.assert_close(together, alone)


_SEVERAL_COUNTS = """
import torch
from tests.runtime import calls

long = ("soft_topk, laplace", "soft_sort, laplace")
tasks = [(name, calls.scores(0)) for name in calls.NAMES]
tasks += [(name, calls.scores(1, (200_000,))) for name in long]
expected = [calls.call(*task) for task in tasks]
for threads in (1, 3, 100, 2):
    torch.set_num_threads(threads)
    torch.testing.assert_close([calls.call(*task) for task in tasks], expected)
print(torch.get_num_threads())
"""


@pytest.mark.parametrize("at_first", ["1", "64"])
@pytest.mark.slow
def test_the_number_of_threads_may_change_between_calls(at_first):
    passive = {"OMP_WAIT_POLICY": "passive", "SOFTORDER_KERNELS": "native"}
    assert run_fresh(_SEVERAL_COUNTS, OMP_NUM_THREADS=at_first, **passive).strip() == "2"


_COUNT_THREADS = """
import os, torch
torch.set_num_threads({threads})
import softorder as so
tasks = lambda: len(os.listdir("/proc/self/task"))
before = tasks()
so.soft_topk(torch.randn(1_000_000), 1000)
so.soft_topk(torch.randn(256, 5_000), 10, method="normal")
print(tasks() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_starts_no_more_threads_than_torch_allows(threads):
    started = int(run(_COUNT_THREADS.format(threads=threads), SOFTORDER_KERNELS="native"))
    assert started <= threads - 1


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_number_of_threads_does_not_change_the_result(kernel, threads):
    scores = torch.randn(300_000, generator=torch.Generator().manual_seed(0))
    expected = so.soft_topk(scores, 1000)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        found = so.soft_topk(scores, 1000)
    finally:
        torch.set_num_threads(before)
    torch.testing.assert_close(found, expected)

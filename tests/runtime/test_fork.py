"""Forked children work, also after the parent has used all its threads."""

import os
import signal
import threading
import time

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import softorder as so
from softorder.kernels import _native
from tests.runtime import calls

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system"),
    pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning"),
]

_PATIENCE = 60  # seconds, before a child counts as hung


class _Masks(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return so.soft_topk(_row(index), 7, method="logistic")


def _row(index, n=50_000):
    return torch.randn(n, generator=torch.Generator().manual_seed(index))


def _use_all_threads():
    so.soft_topk(_row(0, n=1_000_000), 1000, method="logistic")
    so.soft_topk(_row(0).expand(64, -1).clone(), 1000, method="logistic")


def test_dataloader_workers(kernel):
    _use_all_threads()
    loader = DataLoader(
        _Masks(), batch_size=2, num_workers=2, multiprocessing_context="fork", timeout=_PATIENCE
    )
    found = torch.cat(list(loader))
    expected = torch.stack([so.soft_topk(_row(i), 7, method="logistic") for i in range(8)])
    torch.testing.assert_close(found, expected)


def test_child_of_fork():
    """Only ours: torch's own long operations wait forever for threads that the child lacks."""
    scores, upstream = _row(1, n=1_000_000).requires_grad_(), _row(2, n=1_000_000)
    with _native.use("native"):
        _use_all_threads()
        expected = _forward_and_backward(scores, upstream)
        child = os.fork()
        if child == 0:
            found = _forward_and_backward(scores, upstream)
            os._exit(0 if _equal(found, expected) else 1)
        assert _exit_code(child) == 0
        assert _equal(_forward_and_backward(scores, upstream), expected), "the parent afterwards"


def test_fork_while_other_threads_compute():
    """The child takes one thread, as DataLoader's do: torch's own exp would wait for more."""
    scores, done = calls.scores(0), threading.Event()
    others = [threading.Thread(target=_compute_until, args=(done,)) for _ in range(4)]
    with _native.use("native"):
        expected = {name: calls.call(name, scores) for name in calls.NAMES}
        for other in others:
            other.start()
        try:
            for name in calls.NAMES:
                child = os.fork()
                if child == 0:
                    torch.set_num_threads(1)
                    os._exit(0 if _equal(calls.call(name, scores), expected[name]) else 1)
                assert _exit_code(child) == 0, name
        finally:
            done.set()
            for other in others:
                other.join()


def _compute_until(done):
    scores = calls.scores(1, (2, 20_000))
    while not done.is_set():
        for name in ("soft_topk, laplace", "soft_rank, laplace", "soft_sort, laplace"):
            calls.call(name, scores)


def _forward_and_backward(scores, upstream):
    p = so.soft_topk(scores, 1000)
    (gradient,) = torch.autograd.grad(p, scores, upstream)
    return p.detach().numpy(), gradient.numpy()


def _equal(found, expected):
    pairs = zip(found, expected, strict=True)
    return all(np.allclose(one, other, rtol=1e-5, atol=1e-7) for one, other in pairs)


def _exit_code(child):
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    pytest.fail("the child hangs")

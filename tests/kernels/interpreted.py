"""Triton's interpreter in the place of a GPU, and the laws that its kernels keep."""

import numpy as np
import pytest

from softorder.kernels import _native, _triton
from tests.laws.all_laws import EAGER
from tests.laws.registry import cases


@pytest.fixture
def triton_serves(monkeypatch):
    """Triton serves, and a test whose kernels did not run fails.

    The interpreter scans a tile entry by entry. Here it takes doubling steps, as a GPU does, each
    of them for the whole tile.
    """
    from triton.runtime import interpreter

    monkeypatch.setattr(interpreter.ScanOps, "generic_scan", _scan)
    before = _triton.calls.total()
    with _native.use("triton"):
        yield
    assert _triton.calls.total() > before, "no Triton kernel ran"


@pytest.fixture
def only_triton(triton_serves, monkeypatch):
    """Tests that compare all kinds of kernels with an oracle meet Triton's alone."""
    monkeypatch.setattr(_native, "KINDS", ("triton",))


def laws(operator, methods, turn):
    """The laws of an operator, by default a few of them for the first method.

    Some are about no scores at all, for which nothing is launched.
    """
    for number, law in enumerate(EAGER):
        for case in cases():
            concerned = case.operator == operator and case.name in methods and law.binds(case)
            if concerned and "empty" not in str(law):
                chosen = number % 30 == turn and case.name == methods[0]
                yield pytest.param(law, case, marks=[] if chosen else [pytest.mark.slow])


def _scan(self, values):
    data, types = [value.handle.data for value in values], [value.dtype for value in values]
    places = np.arange(data[0].shape[self.axis])
    places = places.reshape([-1 if i == self.axis else 1 for i in range(data[0].ndim)])
    step = 1
    while step < places.size:
        earlier = [np.roll(d, step, self.axis) for d in data]
        joined = self.combine_fn.fn(*map(self.to_tensor, (*earlier, *data), (*types, *types)))
        joined = joined if isinstance(joined, tuple) else (joined,)
        data = [
            np.where(places < step, d, j.handle.data) for d, j in zip(data, joined, strict=True)
        ]
        step *= 2
    return list(map(self.to_tensor, data, types))

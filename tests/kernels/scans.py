"""Triton's interpreter takes the entries of a tile one by one where it scans: here all at once."""

import numpy as np
import pytest


@pytest.fixture
def quick_scans(monkeypatch):
    """Scans in doubling steps, as a GPU takes them, each a call for the whole tile."""
    from triton.runtime import interpreter

    monkeypatch.setattr(interpreter.ScanOps, "generic_scan", _scan)


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

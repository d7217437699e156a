"""The sort: what torch.sort(stable=True) gives, bit for bit, and which kernel ran."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from softorder.kernels import _native
from softorder.kernels.sort import sort
from tests import bank
from tests.runtime.processes import run

_DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
_BITS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


def _assert_sorted(scores):
    values, order = sort(scores)
    expected, places = torch.sort(scores, dim=-1, stable=True)
    assert torch.equal(order, places)
    bits = _BITS[scores.element_size()]
    assert values.dtype == scores.dtype
    assert torch.equal(values.view(bits), expected.view(bits))


_NUMBERS = st.one_of(
    st.floats(width=16),
    st.floats(),
    st.sampled_from([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 1.0 + 2**-52, 1e30, 1e-310]),
)


@pytest.mark.parametrize("dtype", _DTYPES, ids=str)
@given(row=st.lists(_NUMBERS, max_size=300))
def test_any_row(kernel, dtype, row):
    _assert_sorted(torch.tensor(row, dtype=torch.float64).to(dtype))


@pytest.mark.parametrize("dtype", _DTYPES, ids=str)
@pytest.mark.parametrize("family", bank.FAMILIES)
def test_the_bank(kernel, dtype, family):
    for n in (2, 25, 100, 3000, 40_000):
        _assert_sorted(torch.from_numpy(bank.row(family, n)).to(dtype))


@pytest.mark.parametrize("dtype", _DTYPES, ids=str)
def test_every_shape(kernel, dtype):
    for shape in ((0,), (1,), (3, 0), (0, 3), (2, 3, 5), (70, 300), (3, 33_000)):
        _assert_sorted(torch.randn(shape).to(dtype))
    _assert_sorted(torch.randn(40, 30).to(dtype).T)


@pytest.mark.parametrize("dtype", _DTYPES, ids=str)
@pytest.mark.parametrize("n", [50, 2000, 50_000])
def test_keys_that_share_their_leading_bits(kernel, dtype, n):
    rng = np.random.default_rng(n)
    near = np.frombuffer(
        (rng.integers(3, size=n) + np.float64(1).view(np.int64)).tobytes(), np.float64
    )
    _assert_sorted(torch.from_numpy(near.copy()).to(dtype))
    two_crowds = np.where(rng.random(n) < 0.5, near, 1e30 * near)
    _assert_sorted(torch.from_numpy(np.append(two_crowds, [np.nan, -np.inf, -0.0, 0.0])).to(dtype))


def test_the_intended_kernel_runs():
    for kind, times in (("native", 1), ("torch", 0)):
        before = _native.calls["sort"]
        with _native.use(kind):
            sort(torch.randn(5))
        assert _native.calls["sort"] - before == times


_CASES = """
import torch
from softorder.kernels import _native
from softorder.kernels.sort import sort
torch.set_num_threads({threads})
for n in (30, 1000, 10450, 100_000):
    for dtype in (torch.float32, torch.float64, torch.float16):
        row = torch.randn(n, generator=torch.manual_seed(n)).to(dtype)
        assert torch.equal(sort(row).order, torch.sort(row, stable=True).indices)
print(_native.level())
"""


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.slow
def test_every_simd_level_and_number_of_threads(level, threads):
    used = run(_CASES.format(threads=threads), SOFTORDER_SIMD=level, SOFTORDER_KERNELS="native")
    assert used.strip() == level


def test_vmap_and_compile():
    scores = torch.randn(3, 4, 5)
    expected = sort(scores).order
    assert torch.equal(torch.vmap(sort, in_dims=1, out_dims=1)(scores).order, expected)
    compiled = torch.compile(lambda s: sort(s).order, fullgraph=True, backend="eager")
    assert torch.equal(compiled(scores), expected)

"""The plain-torch solver: nothing but tensor operations, and no question to the device."""

import math

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from softorder import _check
from softorder.densities import BUILT_IN, UserDensity
from softorder.kernels._density_numbers import number_of
from softorder.kernels.threshold import reference
from tests.user_density import Student

_LAWS = {**BUILT_IN, "user": UserDensity(Student())}
_BY_LAW = pytest.mark.parametrize("law", _LAWS.values(), ids=_LAWS)
_DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)


class NoQuestions(TorchDispatchMode):
    """Refuses every operation whose answer, or whose shape, the host would have to wait for."""

    _WAITING = ("_local_scalar_dense", "nonzero", "item", "is_nonzero", "equal", "_unique2")

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        assert func.overloadpacket.__name__ not in self._WAITING, func
        return func(*args, **(kwargs or {}))


def _problems(dtype, device="cpu"):
    """Rows of every kind: smooth, sharp, a wide gap, ties, infinities, NaN, no root."""
    scores = torch.randn(10, 40, dtype=dtype, generator=torch.Generator().manual_seed(0))
    scores[2] = scores[2].round()
    scores[3, :5], scores[3, 5:] = 1e6, -1e6
    scores[4, ::3], scores[5, :2], scores[6, :9] = -math.inf, math.inf, math.inf
    scores[7, 1] = math.nan
    k = torch.tensor([4, 4, 7.5, 5, 5, 5, 4, 3, 0, 40], dtype=torch.float64)
    temperature = torch.tensor([1.0, 1e-6, 0.1, 1e-3, 1, 1, 1, 1, 1, 1], dtype=torch.float64)
    return scores.to(device), k.to(device), temperature.to(device)


@_DTYPES
@_BY_LAW
def test_asks_the_device_nothing(law, dtype):
    """And finds what it finds on a CPU, where it may look and leave early."""
    scores, _, temperature = problems = _problems(dtype)
    number = number_of(law)
    seen, b = reference.forward(*problems, None, number)
    upstream = torch.linspace(-1, 1, 40, dtype=dtype).expand(10, 40)
    gradients = reference.backward(upstream, scores, temperature, b, None, number, True)
    with NoQuestions():
        blind, _ = reference.forward(*problems, None, number)
        same = reference.backward(upstream, scores, temperature, b, None, number, True)
    tolerance = 2e-12 if dtype is torch.float64 else 2e-6
    torch.testing.assert_close(blind, seen, rtol=0, atol=tolerance, equal_nan=True)
    torch.testing.assert_close(same, gradients, rtol=tolerance, atol=tolerance, equal_nan=True)


def test_a_question_would_be_noticed():
    with NoQuestions(), pytest.raises(AssertionError, match="_local_scalar_dense"):
        bool(torch.ones(3).sum() > 2)


def test_numbers_on_a_cpu_are_at_hand_and_no_others():
    value = torch.ones(3)
    assert _check.at_hand(value)
    assert not _check.at_hand(value.to("meta"))
    with FakeTensorMode() as mode:
        assert not _check.at_hand(mode.from_tensor(value))


@_BY_LAW
@pytest.mark.parametrize(
    "shape", [(2, 5, 40), *(pytest.param(s, marks=pytest.mark.slow) for s in ((40,), (10, 40)))]
)
def test_runs_without_values(law, shape):
    """On the meta device and on fake tensors: no length depends on the scores."""
    number = number_of(law)
    one = torch.tensor(1.0, dtype=torch.float64)  # k and temperature may be numbers on the host
    on_meta = reference.solve(torch.randn(shape, device="meta"), one, one, number)
    with FakeTensorMode() as mode:
        problem = (mode.from_tensor(v) for v in (torch.randn(shape), one, one))
        faked = reference.solve(*problem, number)
    for b, sweeps in (on_meta, faked):
        assert (b.shape, b.dtype) == ((2, *shape[:-1]), torch.float32)
        assert (sweeps.shape, sweeps.dtype) == (shape[:-1], torch.int32)


@_DTYPES
@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 5)], ids=str)
def test_empty_rows_and_batches(dtype, shape):
    k = torch.tensor(0.0, dtype=torch.float64)
    laplace = number_of(BUILT_IN["laplace"])
    b, sweeps = reference.solve(torch.empty(shape, dtype=dtype), k, k + 1, laplace)
    assert (b.shape, b.dtype) == ((2, *shape[:-1]), dtype)
    assert sweeps.shape == shape[:-1]
    assert (b == math.inf).all()  # k <= 0

"""Which kernels run, and who decides."""

from collections import Counter

import pytest
import torch

import softorder as so
from softorder.kernels import _native
from tests.oracles.densities import BUILT_IN
from tests.runtime.processes import run
from tests.user_density import Student

_ENABLED = "from softorder.kernels import _native; print(_native.enabled())"


def _forward_and_backward(method):
    """How often each compiled kernel ran meanwhile."""
    before = Counter(_native.calls)
    scores = torch.randn(3, 20, requires_grad=True)
    so.soft_topk(scores, 2, method=method).square().sum().backward()
    return Counter(_native.calls) - before


@pytest.mark.parametrize("method", BUILT_IN)
def test_native_kernels_run_when_asked_for(method):
    with _native.use("native"):
        assert _forward_and_backward(method) == {"topk_forward": 1, "topk_backward": 1}


@pytest.mark.parametrize("method", BUILT_IN)
def test_native_kernels_rest_when_torch_is_asked_for(method):
    with _native.use("torch"):
        assert not _forward_and_backward(method)


@pytest.mark.parametrize("method", BUILT_IN)
def test_the_logarithm_uses_the_native_solver(method):
    before = Counter(_native.calls)
    with _native.use("native"):
        so.log_soft_topk(torch.randn(3, 20), 2, method=method)
    assert Counter(_native.calls) - before == {"topk_forward": 1}


def test_the_density_of_a_user_runs_on_torch():
    with _native.use("native"):
        assert not _forward_and_backward(Student())


def test_the_choice_ends_with_its_block():
    before = _native.enabled()
    for kind in _native.KINDS:
        with _native.use(kind):
            assert _native.enabled() == (kind == "native")
        assert _native.enabled() == before


@pytest.mark.parametrize(("kind", "expected"), [("torch", "False"), ("native", "True")])
def test_the_environment_chooses(kind, expected):
    assert run(_ENABLED, SOFTORDER_KERNELS=kind).strip() == expected


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match=r"torch, native.*'cuda'"), _native.use("cuda"):
        pass

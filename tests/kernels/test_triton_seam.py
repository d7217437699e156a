"""When Triton serves, what happens where it cannot, and that nothing waits for another device."""

import os
import re
import subprocess
import sys

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

import softorder as so
from softorder.kernels import _native, _triton, row_softmax

needs_triton = pytest.mark.skipif(_triton.problem() is not None, reason=str(_triton.problem()))


def test_the_operators_are_registered_for_cuda():
    names = ["threshold", "soft_topk_forward", "soft_topk_backward"]
    fused = ["soft_rank", "soft_sort", "soft_permutation", "row_softmax", "network"]
    names += ["fsum", "fsum_invert", *fused, *(f"{name}_vjp" for name in fused)]
    for name in names:
        assert torch._C._dispatch_has_kernel_for_dispatch_key(f"softorder::{name}", "CUDA")


@needs_triton
def test_an_operator_without_a_triton_kernel_is_served_by_plain_torch():
    scores = torch.randn(3, 5, generator=torch.Generator().manual_seed(0))
    with _native.use("torch"):
        expected = so.soft_rank(scores, method="permutahedron")
    before = _triton.calls.total()
    with _native.use("triton"):
        torch.testing.assert_close(so.soft_rank(scores, method="permutahedron"), expected)
    assert _triton.calls.total() == before


def test_a_user_density_is_served_by_plain_torch():
    from tests.user_density import Student

    scores = torch.randn(3, 5, generator=torch.Generator().manual_seed(0))
    with _native.use("torch"):
        expected = so.soft_topk(scores, 2, method=Student())
    if _triton.problem() is None:
        with _native.use("triton"):
            torch.testing.assert_close(so.soft_topk(scores, 2, method=Student()), expected)


def test_asking_for_what_cannot_be_had(monkeypatch):
    monkeypatch.setattr(_triton, "problem", lambda: "Triton is missing: pip install it")
    with pytest.raises(_native.UnusableError, match="asked for, but Triton is missing: pip inst"):
        _native.use("triton").__enter__()


@needs_triton
@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_and_without_the_interpreter(monkeypatch):
    monkeypatch.delenv("TRITON_INTERPRET")
    with pytest.raises(_native.UnusableError, match="Set TRITON_INTERPRET=1"):
        _native.use("triton").__enter__()


def test_a_missing_triton_is_said_once(monkeypatch):
    monkeypatch.setattr(_triton, "problem", lambda: "Triton is missing")
    _triton._usable.cache_clear()
    with FakeTensorMode():
        scores = torch.empty(2, 3, device="cuda")
    with pytest.warns(RuntimeWarning, match="plain torch on this GPU.*Triton is missing"):
        assert not _triton.serves(scores)
    assert not _triton.serves(scores)  # a second warning would be an error
    _triton._usable.cache_clear()


def test_an_old_triton_is_named(monkeypatch):
    old = type(sys)("triton")
    old.__version__ = "2.1.0"
    monkeypatch.setitem(sys.modules, "triton", old)
    assert "Triton 2.1.0 is too old, 3.3 is the oldest: pip install -U" in _triton.problem()


def test_a_kernel_that_does_not_compile_says_what_to_do():
    class Broken:
        __name__ = "broken"

        def __getitem__(self, grid):
            raise TypeError("no such instruction")

    with pytest.raises(RuntimeError, match=r"broken could not be compiled.*no such.*KERNELS=torch"):
        _triton.launch(Broken(), (1,), torch.device("cpu"), 4)


# ---- nothing waits for another device -----------------------------------------------------------


class _NoQuestions(TorchDispatchMode):
    """No tensor may be asked for a number."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        assert function is not torch.ops.aten._local_scalar_dense.default, "asked the device"
        return function(*args, **(kwargs or {}))


@needs_triton
@pytest.mark.parametrize("n", [5, 300, 5000, 40_000])
def test_launches_ask_nothing(n):
    """With numbers on the device of the scores, as a CUDA graph needs it."""
    from softorder.kernels.threshold import triton as kernels

    scores = torch.randn(1, n, generator=torch.Generator().manual_seed(0))
    k, tau = torch.tensor([n / 10], dtype=torch.float64), torch.tensor([0.5], dtype=torch.float64)
    with _native.use("triton"), _NoQuestions():
        p, b = kernels.forward(scores, k, tau, None, 0)
        gradient, _ = kernels.backward(scores, scores, tau, b, None, 0, True)
    assert abs(p.sum().item() - n / 10) < 1e-5 * n
    assert gradient.double().sum().abs() < 1e-6 * n


@needs_triton
@pytest.mark.parametrize("n", [5, 300])
@pytest.mark.parametrize("family", ["softsort", "neuralsort"])
def test_launches_of_rows_ask_nothing(family, n):
    from softorder.kernels.row_softmax import triton as kernels

    scores = torch.randn(2, n, generator=torch.Generator().manual_seed(0))
    tau = torch.tensor([0.5, 1.0], dtype=torch.float64)
    with _native.use("triton"), _NoQuestions():
        p, order, taken = kernels.rows(scores, tau, True, family, 3)
        gradient, _ = kernels.vjp(p, (scores, p, order, taken), tau, True, False, family, 3)
    torch.testing.assert_close(p.sum(-1), torch.ones(2, 3))
    assert gradient.double().sum().abs() < 1e-5 * n


@needs_triton
@pytest.mark.parametrize("matrix", [False, True])
def test_launches_of_networks_ask_nothing(matrix):
    from softorder.kernels.network import triton as kernels

    scores = torch.randn(2, 5, generator=torch.Generator().manual_seed(0))
    settings = None, "cauchy", 2, matrix
    tau = torch.tensor([0.5, 1.0], dtype=torch.float64)
    with _native.use("triton"), _NoQuestions():
        (result,) = kernels.run(scores, tau, True, *settings)
        gradient, _ = kernels.vjp(torch.ones_like(result), [scores], tau, True, False, *settings)
    assert result.shape == ((2, 2, 5) if matrix else (2, 2))
    assert gradient.shape == scores.shape


def test_a_kernel_runs_where_its_tensors_are(monkeypatch):
    """Without the dispatcher on a CPU, and by it elsewhere."""
    forward = row_softmax.rows.forward
    monkeypatch.setattr(forward, "dispatched", lambda *arguments: "GPU")
    monkeypatch.setattr(forward, "on_cpu", lambda *arguments: "CPU")
    with FakeTensorMode():
        assert forward.here(torch.empty(2, 3, device="cuda")) == "GPU"
    assert forward.here(torch.empty(2, 3)) == "CPU"


@pytest.mark.parametrize("operator", [so.soft_topk, so.log_soft_topk])
@pytest.mark.parametrize("number", [lambda v: v, lambda v: torch.tensor(v, device="cuda")])
def test_soft_topk_on_a_device_that_is_not_there(operator, number):
    """Tensors without memory: asking for a number, or mixing devices, would raise."""
    with FakeTensorMode():
        scores = torch.empty(3, 7, device="cuda")
        for method in ("laplace", "uniform"):
            result = operator(scores, number(2.0), method=method, temperature=number(0.5))
            assert result.device.type == "cuda"
            assert result.shape == scores.shape


@pytest.mark.parametrize("method", ["laplace", "uniform"])
def test_the_cross_entropy_of_a_permutation_without_memory(method):
    with FakeTensorMode():
        scores = torch.empty(3, 7, device="meta", requires_grad=True)
        target = torch.empty(3, 7, device="meta", dtype=torch.int64)
        loss = so.losses.permutation_cross_entropy(scores, target, method=method)
        assert torch.autograd.grad(loss, scores)[0].is_meta


# ---- the compiler -------------------------------------------------------------------------------


@needs_triton
@pytest.mark.parametrize(
    "choice",
    [
        pytest.param(("sm_90", "laplace", "64", ": p,"), marks=pytest.mark.slow),
        pytest.param(("sm_80", "logistic", "1000", "gradient τ"), marks=pytest.mark.slow),
        pytest.param(("sm_100", "normal", "1000000", "threshold"), marks=pytest.mark.slow),
        pytest.param(("gfx942", "cauchy", "4096", ": p,"), marks=pytest.mark.slow),
        pytest.param(("sm_90", "uniform", "16", ": p,"), marks=pytest.mark.slow),
    ],
    ids=lambda choice: "-".join(choice[:3]),
)
def test_the_compiler_spills_nothing(choice):
    target, density, n, kernel = choice
    options = ["--target", target, "--density", density, "--n", n, "--kernel", kernel]
    options += ["--folder", "threshold", "--dtype", "float32"]
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    command = [sys.executable, "-c", "import sys; from softorder.cli import main; sys.exit(main())"]
    done = subprocess.run(
        [*command, "gpu", *options], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^[1-9]\d* kernels, 0 with spills", done.stdout, re.MULTILINE), done.stdout
    assert "torch.softmax" in done.stdout

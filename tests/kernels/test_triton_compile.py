"""What the compilers of NVIDIA and AMD say about the Triton kernels: `softorder gpu`."""

import os
import subprocess
import sys

import pytest

from softorder.kernels import _triton

pytestmark = pytest.mark.skipif(_triton.problem() is not None, reason=str(_triton.problem()))


def _gpu(*options):
    """Runs the command, without Triton's interpreter."""
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    command = [sys.executable, "-c", "import sys; from softorder.cli import main; sys.exit(main())"]
    return subprocess.run(
        [*command, "gpu", *options], capture_output=True, text=True, env=environment, check=False
    )


@pytest.mark.parametrize(
    ("folder", "kernel", "n"),
    [
        pytest.param("row_softmax", "neuralsort: rows, desc", 1024, marks=pytest.mark.slow),
        pytest.param("network", "cauchy: gradient of matrix, desc", 128, marks=pytest.mark.slow),
        pytest.param("fsum", "laplace: gradient of ranks", 64, marks=pytest.mark.slow),
        pytest.param("fsum", "uniform: tree over 64 scores", 64, marks=pytest.mark.slow),
        pytest.param("order", "laplace: gradient of soft ranks", 1024, marks=pytest.mark.slow),
        pytest.param("permutation", "normal: gradient of a permu", 1000, marks=pytest.mark.slow),
        pytest.param("row_softmax", "softsort", 16384, marks=pytest.mark.slow),
        pytest.param("network", "logistic: ", 2048, marks=pytest.mark.slow),
        pytest.param("threshold", "gradient, ", 16384, marks=pytest.mark.slow),
    ],
)
def test_nothing_is_spilled(folder, kernel, n):
    choice = ("--folder", folder, "--kernel", kernel, "--n", str(n))
    done = _gpu(*choice, "--target", "sm_90", "--dtype", "float32")
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 with spills" in done.stdout
    assert f"{folder} float32" in done.stdout


def test_every_folder_says_what_it_may_launch():
    """For float32 and float64, under names that tell the kernels apart."""
    from softorder.kernels import _triton_compile

    folders = _triton_compile.folders()
    assert set(folders) == {"fsum", "network", "order", "permutation", "row_softmax", "threshold"}
    for folder in folders:
        for dtype in ("fp32", "fp64"):
            names = [kernel.name for kernel in _triton_compile.configurations(folder, dtype)]
            assert names
            assert len(names) == len(set(names)), folder


def test_an_unknown_folder_is_named():
    done = _gpu("--folder", "thresholds")
    assert done.returncode != 0
    assert "--folder must be one of fsum, network, " in done.stderr
    assert "but got 'thresholds'" in done.stderr


@pytest.mark.slow
def test_processes_find_the_same():
    choice = ("--folder", "row_softmax", "--kernel", "order, ", "--n", "10", "--target", "sm_90")
    one, two = (_gpu(*choice, "--jobs", jobs) for jobs in ("1", "2"))
    assert one.returncode == two.returncode == 0
    assert one.stdout == two.stdout
    assert "4 kernels, 0 with spills" in one.stdout

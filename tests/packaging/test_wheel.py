"""What `make wheel` has put into dist/: its content, and that it works where it is installed.

The tests build the kernels once more and install torch afresh, so only `make test-wheel` runs them.
"""

import os
import re
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from softorder.kernels import _native
from tests.kernels.elf import section_size
from tests.packaging.environments import ROOT, Environment

_DIST = os.environ.get("SOFTORDER_DIST")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not _DIST, reason="run by `make test-wheel`"),
]

_USE_TWICE = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import torch, softorder as so
    for k in 1, 2:
        so.soft_topk(torch.randn(3, 40, requires_grad=True), k).square().sum().backward()
for warning in caught:
    print(warning.category.__name__, warning.message)
"""


@pytest.fixture(scope="module")
def wheel():
    (found,) = Path(_DIST).absolute().glob("*.whl")
    return found


@pytest.fixture(scope="module")
def sdist():
    (found,) = Path(_DIST).absolute().glob("*.tar.gz")
    return found


@pytest.fixture(scope="module")
def with_torch(tmp_path_factory):
    environment = Environment(tmp_path_factory.mktemp("torch"))
    environment.install("numpy", "torch")
    return environment


def _run_the_readme(environment):
    """Its examples, on the compiled kernels and with warnings as errors."""
    doctest = ("-W", "error", "-m", "doctest", "-v", str(ROOT / "README.md"))
    assert "Test passed." in environment.python(*doctest, SOFTORDER_KERNELS="native")


# ---- what is in them -----------------------------------------------------------------------------


def test_the_wheel_serves_every_python(wheel):
    assert re.fullmatch(r"softorder-[\d.]+-py3-none-manylinux_2_\d+_\w+\.whl", wheel.name)


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    added = re.compile(r"/$|\.dist-info/|/libsoftorder_\w+\.so$")
    with zipfile.ZipFile(wheel) as archive:
        found = {name for name in archive.namelist() if not added.search(name)}
    files = [path for path in (ROOT / "src").rglob("*") if path.is_file()]
    package = {path for path in files if "__pycache__" not in path.parts}
    assert found == {path.relative_to(ROOT / "src").as_posix() for path in package}


def test_the_wheel_holds_a_stripped_library_for_every_level(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    libraries = list(tmp_path.rglob("*.so*"))
    expected = {f"libsoftorder_{name}.so" for name in ("cpu", *_native.LEVELS)}
    assert {path.name for path in libraries} == expected
    assert {section_size(path, ".symtab") for path in libraries} == {0}


def test_the_sdist_holds_what_git_does(sdist):
    if not (ROOT / ".git").exists():
        pytest.skip("not in a git repository")
    tracked = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines()
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names == {
        "PKG-INFO",
        *(name for name in tracked if not name.startswith((".ci/", ".github/"))),
    }


# ---- installed -----------------------------------------------------------------------------------


def test_the_wheel_works_without_a_compiler(wheel, with_torch, tmp_path):
    environment = Environment(tmp_path, compiler=False, shared=with_torch)
    environment.install_file(wheel)
    _run_the_readme(environment)


def test_the_sdist_builds_its_kernels(sdist, with_torch, tmp_path):
    environment = Environment(tmp_path, shared=with_torch)
    assert "without its compiled kernels" not in environment.install_file(sdist)
    _run_the_readme(environment)


def test_without_a_compiler_the_sdist_uses_plain_torch_and_says_so(sdist, with_torch, tmp_path):
    environment = Environment(tmp_path, compiler=False, shared=with_torch)
    assert "without its compiled kernels" in environment.install_file(sdist)
    (told,) = environment.python("-c", _USE_TWICE).splitlines()
    assert told.startswith("RuntimeWarning softorder uses plain torch")
    assert "has no compiled kernels" in told

"""The READMEs of kernels/ and csrc/ list the files that exist, and no others."""

import re
from pathlib import Path

import pytest

_ROOT = Path(__file__).parent.parent
_BACKENDS = {"__init__.py", "contract.py", "reference.py", "cpu.py", "triton.py"}


def _named(readme):
    """Files and folders in the first column of its tables."""
    rows = re.findall(r"^\|([^|]+)\|", readme.read_text(), flags=re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([\w/]+(?:\.\w+|/))`", row)}


@pytest.mark.parametrize(
    ("folder", "pattern"), [("src/softorder/kernels", "*.py"), ("csrc", "*.[cph][py]*")]
)
def test_the_table_of_files_is_complete(folder, pattern):
    root = _ROOT / folder
    named = _named(root / "README.md") - _BACKENDS
    files = {str(path.relative_to(root)) for path in root.rglob(pattern)}
    folders = {f"{path.parent.relative_to(root)}/" for path in root.glob(f"*/{pattern}")}
    described = {path for path in files if Path(path).name not in _BACKENDS}
    assert named == described | folders


def test_csrc_mirrors_the_folders_of_the_kernels():
    kernels = {p.parent.name for p in (_ROOT / "src/softorder/kernels").glob("*/cpu.py")}
    compiled = {p.parent.name for p in (_ROOT / "csrc").glob("*/*.cpp")}
    assert kernels - {"ragged"} == compiled  # which calls those of others


def test_every_kernel_has_a_contract_and_a_reference():
    for path in (_ROOT / "src/softorder/kernels").glob("*/__init__.py"):
        assert {p.name for p in path.parent.glob("*.py")} >= {"contract.py", "reference.py"}

"""What a package index shows: links that lead somewhere, and where the project lives."""

import re
import shutil
import subprocess
import sys

try:
    import tomllib
except ImportError:  # Python 3.10
    tomllib = None
import pytest

from tests.packaging.environments import ROOT

_REPOSITORY = "https://example.org/someone/softorder"


@pytest.mark.skipif(tomllib is None, reason="tomllib is of Python 3.11")
def test_a_release_has_absolute_links(tmp_path):
    for name in ("README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    script = ROOT / ".github" / "addresses.py"
    subprocess.run([sys.executable, script, _REPOSITORY, "v1.2.3"], cwd=tmp_path, check=True)
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]*)\)", text)
    assert len(links) > 10
    for link in links:
        assert link.startswith("https://")
        path = link.partition(f"{_REPOSITORY}/blob/v1.2.3/")[2]
        assert (ROOT / path).exists()  # the root itself for a link to another site
    project = tomllib.loads((tmp_path / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["urls"]["Repository"] == _REPOSITORY
    assert (ROOT / project["urls"]["Documentation"].partition("v1.2.3/")[2]).exists()

"""The command line: what a newcomer types first."""

import subprocess
import sys

import pytest

import softorder as so
from softorder.cli import main


def _printed(capsys, *arguments):
    assert main(arguments) == 0
    return capsys.readouterr().out


def test_alone_it_helps(capsys):
    assert "start here:" in _printed(capsys)


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"softorder {so.__version__}\n"


def test_python_m_is_the_command():
    run = subprocess.run(
        [sys.executable, "-m", "softorder", "--version"], capture_output=True, text=True
    )
    assert run.stdout == f"softorder {so.__version__}\n"


def test_every_method_says_what_it_is_good_for(capsys):
    printed = _printed(capsys, "methods")
    assert max(map(len, printed.splitlines())) < 100
    for row in so.methods():
        assert row.good_for
        assert f"\n{row.name} " in printed


def test_one_method_in_full(capsys):
    printed = _printed(capsys, "methods", "softsort")
    rows = [row for row in so.methods() if row.name == "softsort"]
    for fact in {fact for row in rows for fact in (row.operator, row.cost, row.paper, *row.breaks)}:
        assert fact in printed
    assert max(map(len, printed.splitlines())) < 100


def test_the_whole_table(capsys):
    assert _printed(capsys, "methods", "--all") == f"{so.methods()}\n"


def test_the_demo_names_one_extra(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SystemExit, match=r'pip install "softorder\[demo\]"'):
        main(["demo"])

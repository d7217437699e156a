"""Commands of the repository: they work in a checkout, and elsewhere say that they need one."""

import sys

import pytest

from softorder.cli import _checkout, main

_commands = pytest.mark.parametrize("command", _checkout.COMMANDS)


def _help(capsys) -> str:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    return capsys.readouterr().out


@_commands
def test_a_checkout_has_the_command(command, capsys):
    assert f"\n    {command}" in _help(capsys)
    with pytest.raises(SystemExit, match="0"):
        main([command, "--help"])
    assert f"usage: softorder {command}" in capsys.readouterr().out


@_commands
def test_elsewhere_it_asks_for_a_checkout(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert command not in _help(capsys)
    with pytest.raises(SystemExit, match=f"softorder {command} needs a checkout"):
        main([command, "--whatever"])


def test_it_is_read_from_the_current_folder(tmp_path, monkeypatch):
    folder = tmp_path / "some_checkout"
    folder.mkdir()
    (folder / "command.py").write_text(
        "def add_parser(commands): commands.add_parser('bench').set_defaults(run=lambda _: 7)"
    )
    monkeypatch.setattr(_checkout, "COMMANDS", {"bench": "some_checkout.command"})
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.chdir(tmp_path)
    assert main(["bench"]) == 7


def test_elsewhere_the_other_commands_work(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["methods"]) == 0
    assert "laplace" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["no_such"], "unknown suite no_such; known are topk"), (["--only", "x"], "unknown x; known")],
)
def test_bench_answers_wrong_names_with_the_right_ones(arguments, message):
    pytest.importorskip("matplotlib")
    with pytest.raises(SystemExit, match=message):
        main(["bench", *arguments])

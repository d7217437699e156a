"""`softorder demo --quick`: the whole way, from the digits to the report."""

import re

import pytest

from softorder.cli import main


def test_the_quick_demo_writes_its_report(tmp_path, capsys):
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    report = tmp_path / "report.html"
    assert main(["demo", "--quick", "--output", str(report)]) == 0
    printed = capsys.readouterr().out
    assert all(method in printed for method in ("laplace", "logistic", "softmax"))
    text = report.read_text(encoding="utf-8")
    assert "<html" in text
    assert not re.search(r"""(src|href)=["']https?:""", text), "the report needs the network"

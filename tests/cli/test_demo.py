"""`softorder demo --quick`: the whole way, from the digits to the report."""

import io
import re
from contextlib import redirect_stdout

import pytest

from softorder.cli import main


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """What the command prints, and the report."""
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    report = tmp_path_factory.mktemp("demo") / "report.html"
    with redirect_stdout(io.StringIO()) as printed:
        assert main(["demo", "--quick", "--output", str(report)]) == 0
    return printed.getvalue(), report.read_text(encoding="utf-8")


def test_the_quick_demo_writes_its_report(quick):
    printed, text = quick
    assert all(method in printed for method in ("laplace", "logistic", "softmax"))
    assert "<html" in text
    assert "±" not in printed + text  # of one split
    assert not re.search(r"""(src|href)=["']https?:""", text), "the report needs the network"


def test_the_training_plot_has_a_line_of_every_density(quick):
    from softorder.cli.demo.session import METHODS

    training = quick[1].partition("<h2>Training</h2>")[2].partition("</figure>")[0]
    curves = [path for path in re.findall(r'<path d="(M[^"]*)"', training) if path.count("L") >= 10]
    assert len(curves) == len(METHODS)
    assert len(set(curves)) == len(METHODS)

"""What the examples print, and the curves of their losses, for the page of examples.

    python -m benchmarks.example_results transformer_layer sharded_classifier

Examples that compare arms write their own results; this is for those that train one model and print
"step 100  loss 0.123".
"""

from __future__ import annotations

import io
import re
import runpy
import sys
from contextlib import redirect_stdout
from pathlib import Path

import torch

EXAMPLES = Path(__file__).parents[1] / "examples"
_STEP = re.compile(r"step +(\d+) +loss +([\d.]+)")


def write(name: str) -> None:
    """Runs the example; its last line becomes NAME.md, its losses NAME.png."""
    with redirect_stdout(io.StringIO()) as printed:
        sys.argv = [name]
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    lines = printed.getvalue().splitlines()
    output = EXAMPLES / "results"
    output.mkdir(exist_ok=True)
    points = [(int(step), float(loss)) for step, loss in _STEP.findall(printed.getvalue())]
    (output / f"{name}.md").write_text(f"```\n{lines[-1]}\n```\n", encoding="utf-8")
    _draw(points, output / f"{name}.png")


def _draw(points: list[tuple[int, float]], path: Path) -> None:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 2.6), layout="constrained")
    axes.plot(*zip(*points, strict=True), marker="o", color="#d9480f")
    axes.set(xlabel="step", ylabel="training loss", ylim=(0, None))
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for example in sys.argv[1:]:
        write(example)

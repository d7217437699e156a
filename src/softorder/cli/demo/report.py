"""The report: one HTML file with everything inside."""

from __future__ import annotations

import platform
from importlib import resources
from pathlib import Path
from string import Template

import torch

import softorder as so
from softorder.cli.demo import plots
from softorder.cli.demo.session import Session


def write(session: Session, path: Path) -> None:
    template = resources.files(__package__).joinpath("report.html").read_text(encoding="utf-8")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(Template(template).substitute(_contents(session)), encoding="utf-8")


def _contents(session: Session) -> dict[str, str]:
    return {
        "machine": f"softorder {so.__version__}, torch {torch.__version__}, "
        f"Python {platform.python_version()}, {torch.get_num_threads()} threads",
        "spread_note": session.spread_note(),
        "accuracy_table": session.accuracy_table().html(),
        "accuracy": plots.accuracy(session),
        "losses": plots.losses(session),
        "faces": plots.faces(session),
        "weights": plots.weights(session),
        "temperature_note": session.temperature_note(),
        "speed_table": session.speed_table().html(),
        "speeds": plots.speeds(session),
        "speed_note": session.speed_note(),
    }

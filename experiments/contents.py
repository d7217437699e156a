"""results/index.html: what has been run, with links to the pages."""

from __future__ import annotations

import html
from collections.abc import Iterable
from pathlib import Path
from string import Template

from experiments.experiment import Experiment
from experiments.trials import Trials

_PAGE = Path(__file__).parent / "contents.html"


def write(experiments: Iterable[Experiment], output: Path) -> Path:
    """Over all experiments that have a page in the folder."""
    done = [e for e in experiments if (output / e.name / "index.html").exists()]
    rows = "\n".join(_row(experiment, output / experiment.name) for experiment in done)
    page = output / "index.html"
    text = Template(_PAGE.read_text(encoding="utf-8")).substitute(rows=rows)
    page.write_text(text, encoding="utf-8")
    return page


def _row(experiment: Experiment, folder: Path) -> str:
    runs = {p: folder / f"{p}.json" for p in experiment.presets}
    kept = {preset: Trials.read(path) for preset, path in runs.items() if path.exists()}
    presets = "<br>".join(
        f"{preset}: {len(trials.records)} trials, {trials.minutes():.1f} min"
        for preset, trials in kept.items()
    )
    plots = "".join(
        f'<a href="{experiment.name}/index.html">'
        f'<img alt="{html.escape(trials.title)}" src="{experiment.name}/{preset}.png"></a>'
        for preset, trials in kept.items()
    )
    link = f'<a href="{experiment.name}/index.html">{experiment.name}</a>'
    title = html.escape(experiment.title)
    return f"<tr><td>{link}<br>{title}</td><td>{presets}</td><td>{plots}</td></tr>"

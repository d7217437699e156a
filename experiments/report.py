"""Plots and the HTML page of an experiment."""

from __future__ import annotations

import base64
import html
import json
from pathlib import Path
from string import Template

from experiments import panels, ranking
from experiments.experiment import Experiment
from experiments.paper import NOT_RUN, Paper, beside
from experiments.reading import reading
from experiments.trials import Trials
from softorder.cli._table import Table

_PAGE = Path(__file__).parent / "page.html"


def write(experiment: Experiment, output: Path) -> list[Path]:
    """A plot of every preset that has results, and one page of all; returns the files."""
    folder = output / experiment.name
    plots = []
    for preset in experiment.presets:
        kept = folder / f"{preset}.json"
        if kept.exists():
            plots.append(kept.with_suffix(".png"))
            (experiment.draw or _dots(experiment))(Trials.read(kept), plots[-1])
    page = folder / "index.html"
    page.write_text(_page(experiment, folder), encoding="utf-8")
    return [*plots, page]


def _dots(experiment: Experiment):  # type: ignore[no-untyped-def]
    """A panel per figure: a dot per seed, a bar at the mean."""

    def draw(trials: Trials, path: Path) -> None:
        from matplotlib.figure import Figure

        columns = [
            c for c in experiment.columns if any(trials.values(a, c.key) for a in trials.arms)
        ]
        size = (2.4 + 2.8 * len(columns), 1.2 + 0.3 * len(trials.arms))
        figure = Figure(figsize=size, layout="constrained")
        row = figure.subplots(1, len(columns), sharey=True, squeeze=False)[0]
        for axes, column in zip(row, columns, strict=True):
            panels.dots(axes, trials, column)
        row[0].invert_yaxis()
        figure.suptitle(trials.title, fontsize=10)
        figure.savefig(path, dpi=120)

    return draw


def _page(experiment: Experiment, folder: Path) -> str:
    paper = Paper.of(experiment)
    sections = "\n".join(_section(experiment, paper, folder, name) for name in experiment.presets)
    return Template(_PAGE.read_text(encoding="utf-8")).substitute(
        title=html.escape(experiment.title),
        source=html.escape(paper.source),
        setting=html.escape(paper.setting),
        findings=html.escape(paper.findings),
        sections=sections,
    )


def _section(experiment: Experiment, paper: Paper, folder: Path, preset: str) -> str:
    command = f"softorder reproduce {experiment.name} --preset {preset}"
    parts = [f"<h2>{preset}</h2>", f"<pre>{command}</pre>"]
    parts.append(f"<p>{html.escape(paper.differences.get(preset, ''))}</p>")
    kept = folder / f"{preset}.json"
    if not kept.exists():
        return "\n".join([*parts, f"<p>{NOT_RUN}</p>"])
    trials = Trials.read(kept)
    image = base64.b64encode(kept.with_suffix(".png").read_bytes()).decode()
    about = ", ".join(f"{key} {value}" for key, value in trials.about.items())
    parts += [
        beside(experiment, paper, trials).html(),
        f"<p>{html.escape(reading(experiment, paper, trials))}</p>",
        f'<img alt="{html.escape(trials.title)}" src="data:image/png;base64,{image}">',
        *_ranks(experiment, trials, kept.with_suffix(".ranks.png")),
        f"<p>{html.escape(about)}</p>",
        "<details><summary>Every trial</summary>",
        _every(trials).html(),
        "</details><details><summary>Configuration</summary>",
        f"<pre>{html.escape(json.dumps(trials.config, indent=1, ensure_ascii=False))}</pre>",
        "</details>",
    ]
    return "\n".join(parts)


def _ranks(experiment: Experiment, trials: Trials, path: Path) -> list[str]:
    """The critical-difference diagrams, if there are enough cases for one."""
    found = ranking.cases(experiment, trials)
    if not found:
        return []
    ranking.draw(found, path)
    image = base64.b64encode(path.read_bytes()).decode()
    return [
        f'<img alt="Average ranks" src="data:image/png;base64,{image}">',
        ranking.table(found).html(),
        f"<p>{html.escape(ranking.note(found))}</p>",
    ]


def _every(trials: Trials) -> Table:
    """Without the curves."""
    curves = {k for r in trials.records for k, value in r.items() if isinstance(value, list)}
    keys = [k for k in dict.fromkeys(k for r in trials.records for k in r) if k not in curves]
    table = Table(keys)
    for record in trials.records:
        table.add(*(str(record.get(key, "-")) for key in keys))
    return table

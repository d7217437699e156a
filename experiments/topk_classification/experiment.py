"""Which loss gives the best top-1 and top-5 accuracy: every method, a single k and mixtures."""

from __future__ import annotations

from dataclasses import asdict
from functools import cache

from experiments.data import SOURCES
from experiments.experiment import Experiment, Setting, Trial
from experiments.topk_classification.candidates import Candidate, candidates
from experiments.topk_classification.config import PRESETS, Config
from experiments.topk_classification.data import load, source
from experiments.topk_classification.splits import Data
from experiments.topk_classification.training import run
from experiments.topk_classification.tuning import tuned
from experiments.trials import Column, Figures, Trials

COLUMNS = (
    Column("top1", "top-1, %", 2, 100),
    Column("top5", "top-5, %", 2, 100),
    Column("temperature", "τ", 2),
    Column("step", "ms a step", 2),
)


def named(config: Config) -> dict[str, Candidate]:
    every = candidates(config.methods, config.mixed, config.protocol)
    return {str(candidate): candidate for candidate in every}


def session(config: Config, setting: Setting, done: Trials) -> Trial:
    @cache
    def data() -> Data:
        return load(config.data, config.small, setting)

    @cache
    def chosen(arm: str) -> Candidate:
        """All seeds of an arm have the same temperature; an earlier run may have found it."""
        candidate = named(config)[arm]
        known = done.values(arm, "temperature")
        return candidate.at(known[0]) if known else tuned(data(), candidate, config.temperatures)

    def trial(arm: str, seed: int) -> Figures:
        result = run(data(), chosen(arm), seed, data().test)
        figures = asdict(result)
        return {column.key: figures[column.key] for column in COLUMNS}

    return trial


def needs(config: Config, _arm: str) -> tuple[str, ...]:
    return tuple({source(config.data)} & SOURCES.keys())


EXPERIMENT = Experiment(
    name="topk_classification",
    title="Top-k classification",
    presets=PRESETS,
    columns=COLUMNS,
    arms=lambda config: list(named(config)),
    session=session,
    shared=lambda arm, seed: arm,  # its temperature
    needs=needs,
)

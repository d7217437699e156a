"""Which loss gives the best top-1 and top-5 accuracy: every method, a single k and mixtures."""

from __future__ import annotations

from functools import cache

from experiments.data import SOURCES
from experiments.experiment import Experiment, Setting, Trial
from experiments.topk_classification.candidates import Candidate, candidates
from experiments.topk_classification.config import PRESETS, Config
from experiments.topk_classification.data import Data, load
from experiments.topk_classification.training import run
from experiments.topk_classification.tuning import tuned
from experiments.trials import Column, Figures, Trials

COLUMNS = (
    Column("top1", "top-1, %", 2, 100),
    Column("top5", "top-5, %", 2, 100),
    Column("temperature", "τ", 1),
)


def named(config: Config) -> dict[str, Candidate]:
    return {str(c): c for c in candidates() if c.method in config.methods}


def session(config: Config, setting: Setting, _: Trials) -> Trial:
    @cache
    def data() -> Data:
        return load(config.data, config.small, setting)

    def trial(arm: str, seed: int) -> Figures:
        chosen = tuned(data(), named(config)[arm])
        result = run(data(), chosen, seed, data().test)
        return {"top1": result.top1, "top5": result.top5, "temperature": result.temperature}

    return trial


EXPERIMENT = Experiment(
    name="topk_classification",
    title="Top-k classification",
    presets=PRESETS,
    columns=COLUMNS,
    arms=lambda config: list(named(config)),
    session=session,
    needs=lambda config, arm: (config.data,) if config.data in SOURCES else (),
)

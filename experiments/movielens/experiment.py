"""Films for users: losses by five metrics, each loss with the rate and temperature that suit it."""

from __future__ import annotations

from functools import cache
from itertools import product

from experiments.data.movielens import load
from experiments.experiment import Experiment, Setting, Trial
from experiments.movielens.config import PRESETS, Config
from experiments.movielens.data import split
from experiments.movielens.training import Choice, judge, train
from experiments.trials import Column, Figures, Trials

_SEED = 1_000_000  # that no trial uses: settings are chosen on a split of its own

COLUMNS = (
    Column("ndcg", "NDCG@10, %", 2, 100),
    Column("mrr", "MRR, %", 2, 100),
    Column("map", "MAP, %", 2, 100),
    Column("recall", "recall@10, %", 2, 100),
    Column("precision", "precision@10, %", 2, 100),
    Column("epoch_seconds", "CPU seconds an epoch", 3),
)


def session(config: Config, setting: Setting, trials: Trials) -> Trial:
    ratings = load(setting.data, setting.fetch)

    @cache
    def tuned(arm: str) -> Choice:
        """By NDCG on the validation part; what an earlier run chose stays."""
        known = next((r for r in trials.records if r["arm"] == arm), None)
        if known is not None:
            return Choice(known["rate"], known["temperature"])
        data = split(ratings, config, _SEED)
        choices = [Choice(*pair) for pair in product(config.rates, config.temperatures)]
        scores = {c: train(arm, data, config, c, _SEED).validation for c in choices}
        return max(scores, key=scores.__getitem__)

    def trial(arm: str, seed: int) -> Figures:
        choice, data = tuned(arm), split(ratings, config, seed)
        outcome = train(arm, data, config, choice, seed)
        return {
            **judge(outcome.model, data.test, config),
            "epoch_seconds": outcome.seconds,
            "rate": choice.rate,
            "temperature": choice.temperature,
            "epoch": outcome.epoch,
            "validation": outcome.validation,
        }

    return trial


def of_arm(arm: str, _seed: int) -> object:
    """All seeds of a loss share its tuning."""
    return arm


EXPERIMENT = Experiment(
    name="movielens",
    title="Losses of lists: films of MovieLens-100k",
    presets=PRESETS,
    columns=COLUMNS,
    arms=lambda config: config.arms,
    session=session,
    needs=lambda config, arm: ("movielens",),
    shared=of_arm,
    devices=("cpu",),
)

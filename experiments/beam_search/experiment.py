"""Spelling to sound: teacher forcing alone against a part of soft beam search."""

from __future__ import annotations

import copy
import time

import torch

import softorder as so
from experiments.beam_search.config import PRESETS, Config
from experiments.beam_search.data import END, START, Data, Words, load
from experiments.beam_search.model import Speller
from experiments.experiment import Experiment, Setting, Trial
from experiments.trials import Column, Figures, Trials

COLUMNS = (
    Column("phones", "phone errors, %", 2, 100),
    Column("words", "word errors, %", 2, 100),
    Column("before", "word errors before, %", 2, 100),
    Column("tuning", "seconds of tuning", 0),
    Column("updates", "updates", 0),
)


class Session:
    """The arms of a seed start from the same network, trained by teacher forcing."""

    def __init__(self, config: Config, setting: Setting, trials: Trials) -> None:
        self._config, self._setting, self._trials = config, setting, trials
        self._start: dict[int, tuple[Data, Speller, Figures]] = {}

    def trial(self, arm: str, seed: int) -> Figures:
        config = self._config
        data, start, before = self._started(seed)
        torch.manual_seed(1000 + seed)  # the same batches for every arm
        model, search = copy.deepcopy(start), _search(arm, config)
        if arm.endswith("same time"):
            rival = self._trials.find("soft beam, laplace", seed)
            if rival is None:
                raise SystemExit(f"{arm!r} needs 'soft beam, laplace' to run before it")
            seconds, updates = rival["tuning"], None
        else:
            seconds, updates = None, config.updates
        clock = time.perf_counter()
        done = _train(model, search, data.training, config.fine_rate, config, updates, seconds)
        tuning = time.perf_counter() - clock
        errors = _errors(model, data.test, config)
        return {**errors, "before": before["words"], "tuning": tuning, "updates": done}

    def _started(self, seed: int) -> tuple[Data, Speller, Figures]:
        if seed not in self._start:
            config = self._config
            data = load(self._setting, config.words, config.test_words, config.letters, seed)
            model = Speller(len(data.names), config.hidden)
            search = _search("teacher forcing", config)
            rate = config.learning_rate
            _train(model, search, data.training, rate, config, config.pretraining, None)
            self._start = {seed: (data, model, _errors(model, data.test, config))}
        return self._start[seed]


def _search(arm: str, config: Config) -> so.nn.SoftBeamSearch:
    soft = arm.startswith("soft beam, ")
    return so.nn.SoftBeamSearch(
        config.k,
        start=START,
        end=END,
        max_length=2 * config.letters,
        teacher_forcing=config.teacher_forcing if soft else 1.0,
        preselect=config.preselect,
        method=arm.removeprefix("soft beam, ") if soft else "laplace",
        temperature=config.temperature,
    )


def _train(
    model: Speller,
    search: so.nn.SoftBeamSearch,
    words: Words,
    rate: float,
    config: Config,
    updates: int | None,
    seconds: float | None,
) -> int:
    """For so many updates or so many seconds; the learning rate falls to 0. Returns the updates."""
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    start, done = time.perf_counter(), 0
    model.train()
    while True:
        part = done / updates if updates else (time.perf_counter() - start) / (seconds or 1.0)
        if part >= 1:
            return done
        for group in optimiser.param_groups:
            group["lr"] = rate * (1 - part)
        items = torch.randint(len(words.spellings), (config.batch,)).tolist()
        loss = search(model, model.phones, model.read(*words.letters(items)), words.phones(items))
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        done += 1


@torch.no_grad()
def _errors(model: Speller, words: Words, config: Config) -> Figures:
    """Of the best of k beams, against the nearest of the ways to say the word."""
    search = so.nn.BeamSearch(config.k, start=START, end=END, max_length=2 * config.letters)
    wrong_phones = wrong_words = phones = 0
    model.eval()
    for items in torch.arange(len(words.spellings)).split(256):
        state = model.read(*words.letters(items.tolist()))
        found = search(model, model.phones, state)
        best = zip(items.tolist(), found.tokens[:, 0], found.lengths[:, 0], strict=True)
        for item, tokens, length in best:
            said = [t for t in tokens[:length].tolist() if t != END]
            ways = [[t for t in way if t != END] for way in words.spoken[item]]
            distance, way = min((edit_distance(said, way), i) for i, way in enumerate(ways))
            wrong_phones += distance
            wrong_words += distance > 0
            phones += len(ways[way])
    return {"phones": wrong_phones / phones, "words": wrong_words / len(words.spellings)}


def edit_distance(a: list[int], b: list[int]) -> int:
    """Insertions, deletions and replacements that lead from a to b.

    >>> edit_distance([1, 2, 3], [2, 3, 3])
    2
    """
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


def session(config: Config, setting: Setting, trials: Trials) -> Trial:
    return Session(config, setting, trials).trial


def needs(_config: Config, _arm: str) -> tuple[str, ...]:
    return ("cmudict",)


EXPERIMENT = Experiment(
    name="beam_search",
    title="Training through a soft beam search: spelling to sound",
    presets=PRESETS,
    columns=COLUMNS,
    arms=lambda config: config.arms,
    session=session,
    needs=needs,
    shared=lambda arm, seed: seed,  # the network that they start from
    devices=("cpu",),
)

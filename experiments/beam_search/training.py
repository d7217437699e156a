"""Training from a network on, and the errors of a hard beam search."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch

import softorder as so
from experiments.beam_search.config import Candidate, Config
from experiments.beam_search.data import END, START, Words
from experiments.beam_search.model import Speller
from experiments.trials import Figures


@dataclass
class Fit:
    """What came out of a training."""

    updates: int
    seconds: float  #: of the updates
    curve: dict[str, list[float]]  #: of the errors on the validation part


@dataclass(frozen=True)
class Plan:
    """How to train: by an arm's loss, for so many updates or so many seconds."""

    arm: str
    candidate: Candidate
    rate: float
    updates: int | None = None
    seconds: float | None = None


def longest(config: Config) -> int:
    return 2 * config.letters * config.phrase


def searching(plan: Plan, config: Config) -> so.nn.SoftBeamSearch:
    soft, candidate = plan.arm.startswith("soft beam, "), plan.candidate
    return so.nn.SoftBeamSearch(
        candidate.k or config.k,
        start=START,
        end=END,
        max_length=longest(config),
        teacher_forcing=config.teacher_forcing if soft else 1.0,
        preselect=config.preselect,
        method=plan.arm.removeprefix("soft beam, ") if soft else "laplace",
        temperature=candidate.temperature or config.temperature,
    )


def _clock(model: Speller) -> float:
    """Seconds of this process alone, whatever else the machine does; on a GPU, of the wall."""
    on_cpu = next(model.parameters()).is_cpu
    return time.process_time() if on_cpu else time.perf_counter()


def train(
    model: Speller, plan: Plan, words: Words, config: Config, validation: Words | None = None
) -> Fit:
    """The learning rate falls to 0. The clock stands still while errors are counted."""
    search = searching(plan, config)
    optimiser = torch.optim.Adam(model.parameters(), lr=plan.rate)
    fit = Fit(0, 0.0, {"curve_updates": [], "curve_phones": []})
    start, looked = _clock(model), 0
    model.train()
    while True:
        fit.seconds = _clock(model) - start
        part = fit.updates / plan.updates if plan.updates else fit.seconds / (plan.seconds or 1.0)
        if validation and validation.spellings and part >= looked / config.looks:
            errors_now = errors(model, validation, config)
            fit.curve["curve_updates"].append(fit.updates)
            fit.curve["curve_phones"].append(float(errors_now["phones"]))
            model.train()
            looked += 1
            start = _clock(model) - fit.seconds
        if part >= 1:
            return fit
        for group in optimiser.param_groups:
            group["lr"] = plan.rate * (1 - part)
        items = torch.randint(len(words.spellings), (config.batch,)).tolist()
        state, target = model.read(*words.letters(items)), words.phones(items)
        if plan.candidate.sampling:
            loss = model.scheduled(state, target, plan.candidate.sampling)
        else:
            loss = search(model, model.phones, state, target)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        fit.updates += 1


@torch.no_grad()
def errors(model: Speller, words: Words, config: Config) -> Figures:
    """Of the best of k beams, against the nearest of the ways to say the word."""
    search = so.nn.BeamSearch(config.k, start=START, end=END, max_length=longest(config))
    wrong_phones = wrong_words = phones = 0
    model.eval()
    for items in torch.arange(len(words.spellings)).split(256):
        state = model.read(*words.letters(items.tolist()))
        found = search(model, model.phones, state)
        best = zip(items.tolist(), found.tokens[:, 0], found.lengths[:, 0], strict=True)
        for item, tokens, length in best:
            said = _phones(tokens[:length].tolist())
            ways = [_phones(way) for way in words.spoken[item]]
            distance, way = min((edit_distance(said, way), i) for i, way in enumerate(ways))
            wrong_phones += distance
            wrong_words += distance > 0
            phones += len(ways[way])
    return {"phones": wrong_phones / phones, "words": wrong_words / len(words.spellings)}


@torch.no_grad()
def exposure(model: Speller, words: Words, config: Config) -> Figures:
    """Errors of the most likely next phone: where the right ones are read before it, and where
    those are that were said. What the second has more comes of reading one's own errors.

    Both are shares of the phones of the usual way to say the word, the end not counted; their mean
    number is the length.
    """
    search = so.nn.BeamSearch(1, start=START, end=END, max_length=longest(config))
    forced = own = phones = 0
    model.eval()
    for items in torch.arange(len(words.spellings)).split(256):
        chosen = items.tolist()
        before, target = model.read(*words.letters(chosen)), words.phones(chosen)
        spoken = (target != END) & (target >= 0)
        said = model.forced(before, target).argmax(-1)
        forced += int(((said != target) & spoken).sum())
        phones += int(spoken.sum())
        found = search(model, model.phones, before)
        for item, tokens, length in zip(
            chosen, found.tokens[:, 0], found.lengths[:, 0], strict=True
        ):
            own += edit_distance(_phones(tokens[:length].tolist()), _phones(words.spoken[item][0]))
    many = len(words.spellings)
    return {"length": phones / many, "forced": forced / phones, "own": own / phones}


def _phones(tokens: Sequence[int]) -> list[int]:
    return [token for token in tokens if token != END]


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

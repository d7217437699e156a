"""English to French: a small transformer with softmax and with top-k attention."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import torch
from torch import nn

from experiments.experiment import Experiment, Learning, Setting, Trial
from experiments.topk_attention import pictures
from experiments.topk_attention.config import PRESETS, Candidate, Config, candidates
from experiments.topk_attention.data import PAD, Data, Pairs, load
from experiments.topk_attention.model import Translator
from experiments.trials import Column, Figures, Trials

_LOOKS = 7
COLUMNS = (
    Column("bleu", "BLEU", 2),
    Column("hard", "BLEU, hard at inference", 2),
    Column("loss", "test loss per word", 3),
)


def trial(arm: str, seed: int, config: Config, setting: Setting, done: Trials) -> Figures:
    """Train in every way that there is to choose from, translate with the best, count.

    The first seed chooses for the others.
    """
    data = _data(setting, config, seed)
    every, known = candidates(arm, config), done.values(arm, "choice")
    numbers = known[:1] or range(len(every))
    fits = {i: _trained(arm, seed, config, data, every[i]) for i in numbers}
    losses = {i: curve[-1] for i, (_, curve) in fits.items() if curve}
    best = min(fits, key=lambda i: losses.get(i, 0.0))
    model, curve = fits[best]
    figures: dict[str, Any] = {
        "bleu": _bleu(model, data, config),
        "loss": _loss(model, data, data.test),
    }
    if arm != "softmax":
        model.hard(True)
        figures["hard"] = _bleu(model, data, config)
        model.hard(False)
    if losses:
        figures |= {"choice": best, "validation_loss": losses[best]}
        figures |= {"curve_updates": looks(config.updates), "curve_loss": curve}
    if seed == 0:
        figures |= pictures.map_of(model, data, config.words + 4)
    return figures


def looks(updates: int) -> list[int]:
    """After how many updates the loss on the validation part is kept; at the end in any case.

    >>> looks(700), looks(3)
    ([100, 200, 300, 400, 500, 600, 700], [1, 2, 3])
    """
    many = min(_LOOKS, updates)
    return [updates * (i + 1) // many for i in range(many)]


def _trained(
    arm: str, seed: int, config: Config, data: Data, choice: Candidate
) -> tuple[Translator, list[float]]:
    """The network, and its loss on the validation part on the way."""
    method = arm.removeprefix("top-k, ") if arm != "softmax" else None
    sizes = (len(data.english.names), len(data.french.names))
    torch.manual_seed(seed)
    model = Translator(config, *sizes, method, choice)
    torch.manual_seed(1000 + seed)  # the same batches for every arm
    rate = choice.rate * config.learning_rate
    return model, _train(model, data, replace(config, learning_rate=rate))


@lru_cache(maxsize=1)
def _data(setting: Setting, config: Config, seed: int) -> Data:
    sizes = (config.pairs, config.test_pairs, config.words, config.vocabulary)
    return load(setting, *sizes, seed, config.validation_pairs)


def _train(model: Translator, data: Data, config: Config) -> list[float]:
    optimiser = torch.optim.Adam(model.parameters(), lr=config.learning_rate, betas=(0.9, 0.98))
    criterion = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=config.label_smoothing)
    model.train()
    look_after, curve = looks(config.updates) if data.validation else [], []
    for update in range(config.updates):
        done = update / config.updates
        rate = min(
            (update + 1) / (config.warm_up * config.updates), (1 - done) / (1 - config.warm_up)
        )
        for group in optimiser.param_groups:
            group["lr"] = config.learning_rate * rate
        items = torch.randint(len(data.training), (config.batch,)).tolist()
        english = data.english.tensor([data.training[i][0] for i in items], wrap=False)
        french = data.french.tensor([data.training[i][1] for i in items], wrap=True)
        logits = model(english, french[:, :-1])
        loss = criterion(logits.flatten(0, 1), french[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        if update + 1 in look_after:
            curve.append(_loss(model, data, data.validation))
            model.train()
    return curve


@torch.no_grad()
def _loss(model: Translator, data: Data, pairs: Pairs) -> float:
    """Cross-entropy of the reference, without smoothing."""
    criterion = nn.CrossEntropyLoss(ignore_index=PAD, reduction="sum")
    model.eval()
    total = words = 0.0
    for part in _parts(pairs):
        english = data.english.tensor([pair[0] for pair in part], wrap=False)
        french = data.french.tensor([pair[1] for pair in part], wrap=True)
        logits = model(english, french[:, :-1])
        total += criterion(logits.flatten(0, 1), french[:, 1:].flatten()).item()
        words += (french[:, 1:] != PAD).sum().item()
    return total / words


def _bleu(model: Translator, data: Data, config: Config) -> float:
    """Of the words as they are tokenised here, in lower case: tokenize="none"."""
    from sacrebleu.metrics import BLEU

    model.eval()
    said = []
    for part in _parts(data.test):
        english = data.english.tensor([pair[0] for pair in part], wrap=False)
        rows = model.translate(english, config.words + 4).tolist()
        said += [data.french.text(row) for row in rows]
    wanted = [" ".join(pair[1]) for pair in data.test]
    return BLEU(tokenize="none", force=True).corpus_score(said, [wanted]).score


def _parts(pairs: Pairs) -> list[Pairs]:
    return [pairs[i : i + 250] for i in range(0, len(pairs), 250)]


def session(config: Config, setting: Setting, done: Trials) -> Trial:
    return partial(trial, config=config, setting=setting, done=done)


def needs(_config: Config, _arm: str) -> tuple[str, ...]:
    return ("english_french",)


EXPERIMENT = Experiment(
    name="topk_attention",
    title="Top-k attention: English to French",
    presets=PRESETS,
    columns=COLUMNS,
    arms=lambda config: config.arms,
    session=session,
    learning=Learning(
        "curve_loss", "curve_updates", "loss per word on the validation part", "updates"
    ),
    needs=needs,
    shared=lambda arm, seed: arm,  # what was chosen for it
    devices=("cpu",),
    draw=pictures.draw,
)

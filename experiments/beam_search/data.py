"""CMUdict: how 126,000 English words are spoken."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

import torch
from torch import Tensor

from experiments.data import locate
from experiments.experiment import Setting

FILE = "cmudict.dict"
START, END = 0, 1
LETTERS = "'abcdefghijklmnopqrstuvwxyz"
PHRASE_LETTERS = LETTERS + " "
_WORD = re.compile(f"[{LETTERS}]+")


@dataclass(frozen=True)
class Words:
    """Spellings, and all the ways to say each of them, the usual one first."""

    spellings: list[str]
    spoken: list[list[tuple[int, ...]]]  #: tokens, END included

    def letters(self, items: list[int]) -> tuple[Tensor, Tensor]:
        """Letters (batch, length), 0 behind the word, and the lengths."""
        rows = [[1 + PHRASE_LETTERS.index(c) for c in self.spellings[i]] for i in items]
        return _padded(rows, 0), torch.tensor([len(row) for row in rows])

    def phones(self, items: list[int]) -> Tensor:
        """The usual phones (batch, length), -100 behind the end."""
        return _padded([list(self.spoken[i][0]) for i in items], -100)

    def phrases(self, size: int, seed: int) -> Words:
        """As many phrases of several words each, drawn at random."""
        if size == 1:
            return self
        generator = torch.Generator().manual_seed(seed)
        many = len(self.spellings)
        chosen = torch.randint(many, (many, size), generator=generator).tolist()
        return Words(
            [" ".join(self.spellings[i] for i in row) for row in chosen],
            [_joined([self.spoken[i] for i in row]) for row in chosen],
        )


@dataclass(frozen=True)
class Data:
    training: Words
    test: Words
    names: list[str]  #: of the tokens
    validation: Words


def load(
    setting: Setting,
    words: int,
    test_words: int,
    letters: int,
    seed: int,
    validation_words: int = 0,
    phrase: int = 1,
) -> Data:
    """Words are drawn anew for every seed; no word is in two parts."""
    spoken = _read(_text(setting), letters)
    spellings = sorted(spoken)
    order = torch.randperm(len(spellings), generator=torch.Generator().manual_seed(seed)).tolist()
    wanted = words + test_words + validation_words
    if len(order) < wanted:
        raise SystemExit(f"CMUdict: {wanted} words are wanted, there are {len(order)}")
    phones = sorted({p for ways in spoken.values() for way in ways for p in way})
    names = ["<start>", "<end>", *phones]
    tokens = {name: i for i, name in enumerate(names)}

    def part(chosen: list[int]) -> Words:
        names = [spellings[i] for i in chosen]
        ways = [[(*(tokens[p] for p in way), END) for way in spoken[name]] for name in names]
        return Words(names, ways).phrases(phrase, seed)

    test, training, validation = (
        part(order[start : start + count])
        for start, count in (
            (0, test_words),
            (test_words, words),
            (test_words + words, validation_words),
        )
    )
    return Data(training, test, names, validation)


def _joined(spoken: list[list[tuple[int, ...]]]) -> list[tuple[int, ...]]:
    """All the ways to say words one after the other, the usual one first."""
    ways = itertools.product(*spoken)
    return [(*(token for way in some for token in way if token != END), END) for some in ways]


def _text(setting: Setting) -> str:
    folder = locate("cmudict", setting.data, setting.fetch)
    return (folder / FILE).read_text(encoding="utf-8")


def _read(text: str, letters: int) -> dict[str, list[tuple[str, ...]]]:
    """Phones without their stress; `word(2)` is another way to say `word`."""
    spoken: dict[str, list[tuple[str, ...]]] = {}
    for line in text.splitlines():
        head, *phones = line.split("#")[0].split()
        word = head.split("(")[0]
        if _WORD.fullmatch(word) and len(word) <= letters:
            way = tuple(p.rstrip("012") for p in phones)
            if way not in spoken.setdefault(word, []):
                spoken[word].append(way)
    return spoken


def _padded(rows: list[list[int]], filling: int) -> Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [filling] * (longest - len(row)) for row in rows])

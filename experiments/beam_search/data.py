"""CMUdict: how 126,000 English words are spoken."""

from __future__ import annotations

import re
from dataclasses import dataclass

import torch
from torch import Tensor

from experiments.data import locate
from experiments.experiment import Setting

FILE = "cmudict.dict"
START, END = 0, 1
LETTERS = "'abcdefghijklmnopqrstuvwxyz"
_WORD = re.compile(f"[{LETTERS}]+")


@dataclass(frozen=True)
class Words:
    """Spellings, and all the ways to say each of them, the usual one first."""

    spellings: list[str]
    spoken: list[list[tuple[int, ...]]]  #: tokens, END included

    def letters(self, items: list[int]) -> tuple[Tensor, Tensor]:
        """Letters (batch, length), 0 behind the word, and the lengths."""
        rows = [[1 + LETTERS.index(c) for c in self.spellings[i]] for i in items]
        return _padded(rows, 0), torch.tensor([len(row) for row in rows])

    def phones(self, items: list[int]) -> Tensor:
        """The usual phones (batch, length), -100 behind the end."""
        return _padded([list(self.spoken[i][0]) for i in items], -100)


@dataclass(frozen=True)
class Data:
    training: Words
    test: Words
    names: list[str]  #: of the tokens


def load(setting: Setting, words: int, test_words: int, letters: int, seed: int) -> Data:
    """Words are drawn anew for every seed; no word is in both parts."""
    spoken = _read(_text(setting), letters)
    spellings = sorted(spoken)
    order = torch.randperm(len(spellings), generator=torch.Generator().manual_seed(seed)).tolist()
    if len(order) < words + test_words:
        raise SystemExit(f"CMUdict: {words + test_words} words are wanted, there are {len(order)}")
    phones = sorted({p for ways in spoken.values() for way in ways for p in way})
    names = ["<start>", "<end>", *phones]
    tokens = {name: i for i, name in enumerate(names)}

    def part(chosen: list[int]) -> Words:
        names = [spellings[i] for i in chosen]
        ways = [[(*(tokens[p] for p in way), END) for way in spoken[name]] for name in names]
        return Words(names, ways)

    return Data(part(order[test_words : test_words + words]), part(order[:test_words]), names)


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

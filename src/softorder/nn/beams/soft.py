from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils import _pytree as pytree

from softorder import _check
from softorder._auto import Temperature
from softorder.nn._tempered import Tempered
from softorder.nn.beams import steps
from softorder.nn.beams.hard import BeamSearch
from softorder.nn.beams.steps import Beams, Candidates, Choice, Decoder, Frontier, Task
from softorder.ops import soft_permutation


class SoftBeamSearch(Tempered):
    """A beam search to train through: beams are mixtures, weighted by a sorted soft top-k.

    At every step the continuations of all k beams are ranked softly: A[l, c] says how much
    candidate c, the token j after beam i, belongs to place l. The new beam l reads the mean
    embedding, from the mean state,

        E_l = Σ_c A[l, c] w_j(c)        h_l = Σ_c A[l, c] h_i(c)

    and its back-pointer and likelihood are those of the candidate with the largest weight. The
    likelihood of the target under the distributions that the best beam met on its way is what is
    trained; a part ρ of the loss is the usual one, by teacher forcing:

        loss = ρ · mean_t -log P(y_t | y_1..y_t-1) + (1 - ρ) · mean_t -log P(y_t | best beam at t)

    As the temperature goes to 0, this is `so.nn.BeamSearch`.

    Args:
        k: how many beams.
        start: the token that every sequence starts with.
        end: the token that ends a sequence.
        max_length: where `search` stops; the loss is as long as its target.
        length_penalty: as in `so.nn.BeamSearch`; used by `search`.
        teacher_forcing: ρ in [0, 1].
        preselect: how many of the k·V candidates enter the soft top-k, the best ones; the rest has
            weight 0. None: all of them.
        method: as in `so.soft_permutation`.
        temperature: in units of log-likelihood (over length^length_penalty).
        learnable_temperature: make it a parameter.

    Paper: SOFT top-k (Xie et al. 2020), appendix D, algorithm 2 and appendix I.2.

    >>> import torch, softorder as so
    >>> class Bigrams(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.next = torch.nn.Linear(3, 3)
    ...
    ...     def step(self, embedding, state):
    ...         return self.next(embedding), state
    >>> _ = torch.manual_seed(0)
    >>> decoder, state = Bigrams(), torch.zeros(1, 0)
    >>> search = so.nn.SoftBeamSearch(2, start=0, end=0, max_length=5, temperature=0.1)
    >>> target = torch.tensor([[2, 1, 0]])
    >>> optimiser = torch.optim.Adam(decoder.parameters(), lr=0.1)
    >>> for _ in range(50):
    ...     optimiser.zero_grad()
    ...     search(decoder, torch.eye(3), state, target).backward()
    ...     optimiser.step()
    >>> search.search(decoder, torch.eye(3), state).tokens[0, 0]
    tensor([2, 1, 0])
    """

    numbers = (*BeamSearch.numbers, "teacher_forcing", "preselect", *Tempered.numbers)

    def __init__(
        self,
        k: int,
        *,
        start: int,
        end: int,
        max_length: int,
        length_penalty: float = 0.0,
        teacher_forcing: float = 0.8,
        preselect: int | None = 64,
        method: str | object = "laplace",
        temperature: Temperature = 0.1,
        learnable_temperature: bool = False,
    ) -> None:
        super().__init__("soft_permutation", method, temperature, learnable_temperature)
        _check.beams.search(k, start, end, max_length, length_penalty)
        _check.share("teacher_forcing", teacher_forcing)
        if preselect is not None:
            _check.count("preselect", preselect, least=k)
        self.k = k
        self.start = start
        self.end = end
        self.max_length = max_length
        self.length_penalty = length_penalty
        self.teacher_forcing = teacher_forcing
        self.preselect = preselect

    def forward(
        self,
        decoder: Decoder,
        embedding: nn.Embedding | Tensor,
        state: Any,
        target: Tensor,
        *,
        ignore_index: int = -100,
    ) -> Tensor:
        """The loss, a scalar: the mean over the tokens of the target.

        The beams are as long as the target: none of them ends before it.

        Args:
            decoder: an object with `step`, see `so.nn.Decoder`.
            embedding: (V, features), or a module that holds it.
            state: the decoder's first state: tensors with the batch on their first axis, in any
                nesting of tuples, lists and dicts.
            target: (batch, T) tokens, the end token included, then ignore_index.
            ignore_index: marks what is behind the end.
        """
        task = steps.task(decoder, embedding, state, self.start, self.end)
        _check.beams.sequences(target, task.batch, len(task.table), ignore_index)
        valid = target != ignore_index
        tokens = torch.where(valid, target, self.end)
        loss = task.table.new_zeros(())
        if self.teacher_forcing > 0:
            logs = _teacher_forced(task, tokens)
            loss = loss - self.teacher_forcing * _mean(logs, valid)
        if self.teacher_forcing < 1:
            logs = self._along_the_best_beam(task, tokens, valid)
            loss = loss - (1 - self.teacher_forcing) * _mean(logs, valid)
        return loss

    def search(self, decoder: Decoder, embedding: nn.Embedding | Tensor, state: Any) -> Beams:
        """The sequences of the soft beams; scores are differentiable. To decode for use, take
        `so.nn.BeamSearch`."""
        task = steps.task(decoder, embedding, state, self.start, self.end)
        advance = partial(
            self._advance, table=task.table, penalty=self.length_penalty, may_end=True
        )
        return steps.search(task, self.k, self.max_length, self.length_penalty, advance)

    def _along_the_best_beam(self, task: Task, tokens: Tensor, valid: Tensor) -> Tensor:
        """log P(y_t | best beam at t), (batch, T)."""
        frontier = steps.start(task, self.k)
        logs, choices = [], []
        last = tokens.shape[1] - 1
        for t, column in enumerate(tokens.unbind(1)):
            found, frontier = steps.step(task, frontier)
            wanted = column[:, None, None].expand(-1, self.k, 1)
            logs.append(found.gather(-1, wanted).squeeze(-1))
            if t < last:
                frontier, choice = self._advance(found, frontier, task.table, 0.0, False)
                choices.append(choice)
        return _followed(logs, choices, valid.sum(1))

    def _advance(
        self, logs: Tensor, frontier: Frontier, table: Tensor, penalty: float, may_end: bool
    ) -> tuple[Frontier, Choice]:
        most = self.preselect or self.k * logs.shape[-1]
        found = steps.candidates(logs, frontier, self.end, penalty, most, may_end)
        weights = self._weights(found).to(table.dtype)
        by_beam = weights.new_zeros(*weights.shape[:2], self.k)
        by_beam = by_beam.scatter_add(-1, found.beams.unsqueeze(1).expand_as(weights), weights)

        def mixed(leaf: Tensor, parents: Tensor) -> Tensor:
            if not leaf.dtype.is_floating_point:
                return steps.select(leaf, parents)
            flat = leaf.reshape(*leaf.shape[:2], -1)
            return (by_beam.to(leaf.dtype) @ flat).reshape(leaf.shape)

        inputs = weights @ table[found.tokens]
        return steps.advance(frontier, found, weights.argmax(-1), self.end, inputs, mixed)

    def _weights(self, found: Candidates) -> Tensor:
        """A, (batch, k, candidates)."""
        return soft_permutation(
            found.ranked,
            k=self.k,
            method=self.method,
            temperature=self.temperature,
            descending=True,
        )

    def extra_repr(self) -> str:
        names = *BeamSearch.numbers, "teacher_forcing", "preselect", "method", "temperature"
        return self.describe(*names)


def _teacher_forced(task: Task, tokens: Tensor) -> Tensor:
    """log P(y_t | y_1..y_t-1), (batch, T)."""
    state: Any = pytree.tree_unflatten(task.leaves, task.spec)
    inputs, logs = task.first(task.batch), []
    for column in tokens.unbind(1):
        logits, state = task.decoder.step(inputs, state)
        logs.append(-F.cross_entropy(steps.precise(logits), column, reduction="none"))
        inputs = task.table[column]
    return torch.stack(logs, 1)


def _followed(logs: list[Tensor], choices: list[Choice], lengths: Tensor) -> Tensor:
    """Of the beams (batch, k) at each time, those on the way to the best at the target's end."""
    beam = torch.zeros_like(lengths)
    followed = [logs[-1][:, :1]]
    for t in range(len(choices) - 1, -1, -1):
        back = choices[t].parents.gather(1, beam.unsqueeze(1)).squeeze(1)
        # Before the target's end follow the pointers; at it, and behind, stand on the best beam.
        beam = torch.where(t < lengths - 1, back, 0)
        followed.append(logs[t].gather(1, beam.unsqueeze(1)))
    return torch.cat(followed[::-1], 1)


def _mean(logs: Tensor, valid: Tensor) -> Tensor:
    return torch.where(valid, logs, 0.0).sum() / valid.sum().clamp(min=1)

"""What the hard and the soft beam search share: beams, candidates, back-pointers.

Beams are kept as (batch, k); the decoder sees them as batch·k rows, the k beams of an item beside
each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from softorder import _check


@runtime_checkable
class Decoder(Protocol):
    """What a beam search can search with."""

    def step(self, embedding: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Reads one token of every row.

        Args:
            embedding: (rows, features), of the token that was chosen last.
            state: tensors with rows on their first axis, in any nesting of tuples, lists and dicts.

        Returns:
            Logits (rows, V) of the next token, and the new state, nested in the same way. What does
            not change (an encoder's output) should be returned as the same tensor: it is then
            neither copied nor mixed.
        """
        ...


class Beams(NamedTuple):
    """The result of a search, the best beam first."""

    tokens: Tensor  #: (batch, k, steps), filled up with the end token
    scores: Tensor  #: (batch, k), log-likelihood / length^length_penalty
    lengths: Tensor  #: (batch, k), the end token included


class Frontier(NamedTuple):
    """The beams at one time."""

    likelihoods: Tensor  #: (batch, k), logarithms
    lengths: Tensor  #: (batch, k)
    finished: Tensor  #: (batch, k)
    inputs: Tensor  #: (batch·k, features), what the decoder reads next
    leaves: list[Tensor]  #: of the state, (batch·k, ...)
    shared: list[bool]  #: leaves that no step has touched: the same in all beams of an item


class Candidates(NamedTuple):
    """The m best continuations of all beams of an item, the best first."""

    ranked: Tensor  #: (batch, m), what they are sorted by
    likelihoods: Tensor  #: (batch, m)
    beams: Tensor  #: (batch, m), which beam they continue
    tokens: Tensor  #: (batch, m), by what


class Choice(NamedTuple):
    """What became of the beams in one step."""

    parents: Tensor  #: (batch, k)
    tokens: Tensor  #: (batch, k)


class Task(NamedTuple):
    """What is searched with, in checked parts."""

    decoder: Decoder
    table: Tensor  #: the embedding, (V, features)
    leaves: list[Tensor]  #: of the first state, (batch, ...)
    spec: pytree.TreeSpec  #: how they are nested
    start: int
    end: int

    @property
    def batch(self) -> int:
        return self.leaves[0].shape[0]

    def first(self, rows: int) -> Tensor:
        """Embeddings of the start token."""
        return self.table[self.start].expand(rows, -1)


def task(
    decoder: Decoder, embedding: nn.Embedding | Tensor, state: Any, start: int, end: int
) -> Task:
    table = _check.beams.embedding(embedding, start, end)
    leaves, spec = pytree.tree_flatten(state)
    _check.beams.decoding(decoder, leaves)
    return Task(decoder, table, leaves, spec, start, end)


def search(
    task: Task,
    k: int,
    max_length: int,
    length_penalty: float,
    advance: Callable[[Tensor, Frontier], tuple[Frontier, Choice]],
) -> Beams:
    """From the start token until all beams have ended, at most max_length steps."""
    frontier, choices = start(task, k), []
    for _ in range(max_length):
        logs, frontier = step(task, frontier)
        frontier, choice = advance(logs, frontier)
        choices.append(choice)
        if _check.eager() and bool(frontier.finished.all()):
            break
    return trace(choices, frontier, length_penalty)


def start(task: Task, k: int) -> Frontier:
    """k times the start token; all but the first are out of the running."""
    batch, device = task.batch, task.table.device
    likelihoods = torch.full((batch, k), -math.inf, device=device)
    likelihoods[:, 0] = 0.0
    return Frontier(
        likelihoods,
        torch.zeros(batch, k, dtype=torch.long, device=device),
        torch.zeros(batch, k, dtype=torch.bool, device=device),
        task.first(batch * k),
        [leaf.repeat_interleave(k, 0) for leaf in task.leaves],
        [True] * len(task.leaves),
    )


def step(task: Task, frontier: Frontier) -> tuple[Tensor, Frontier]:
    """Log-probabilities (batch, k, V) of the next token, and the frontier with the new state."""
    state = pytree.tree_unflatten(frontier.leaves, task.spec)
    logits, state = task.decoder.step(frontier.inputs, state)
    leaves = pytree.tree_leaves(state)
    old = zip(frontier.shared, frontier.leaves, leaves, strict=True)
    shared = [was and before is after for was, before, after in old]
    logs = precise(logits).log_softmax(-1).unflatten(0, frontier.finished.shape)
    return logs, frontier._replace(leaves=leaves, shared=shared)


def candidates(
    logs: Tensor, frontier: Frontier, end: int, length_penalty: float, most: int, may_end: bool
) -> Candidates:
    """A finished beam has one continuation, by another end token at no cost."""
    vocabulary = logs.shape[-1]
    is_end = torch.arange(vocabulary, device=logs.device) == end
    again = torch.where(is_end, 0.0, -math.inf).to(logs.dtype)
    if not may_end:
        logs = torch.where(is_end, -math.inf, logs)
    logs = torch.where(frontier.finished.unsqueeze(-1), again, logs)
    likelihoods = frontier.likelihoods.unsqueeze(-1) + logs
    ranked = likelihoods
    if length_penalty:
        ranked = penalised(likelihoods, _longer(frontier).unsqueeze(-1), length_penalty)
    ranked, index = ranked.flatten(1).topk(min(most, ranked[0].numel()), 1)
    likelihoods = likelihoods.flatten(1).gather(1, index)
    return Candidates(ranked, likelihoods, index // vocabulary, index % vocabulary)


def advance(
    frontier: Frontier,
    found: Candidates,
    chosen: Tensor,
    end: int,
    inputs: Tensor,
    mixed: Callable[[Tensor, Tensor], Tensor],
) -> tuple[Frontier, Choice]:
    """The chosen candidates (batch, k) become the beams.

    Args:
        inputs: (batch, k, features), what the decoder reads next.
        mixed: from a leaf (batch, k, ...) and the parents to the leaf of the new beams.
    """
    parents, tokens = found.beams.gather(1, chosen), found.tokens.gather(1, chosen)
    rows = frontier.finished.shape
    leaves = [
        leaf if same else mixed(leaf.unflatten(0, rows), parents).flatten(0, 1)
        for leaf, same in zip(frontier.leaves, frontier.shared, strict=True)
    ]
    after = Frontier(
        found.likelihoods.gather(1, chosen),
        _longer(frontier).gather(1, parents),
        frontier.finished.gather(1, parents) | (tokens == end),
        inputs.flatten(0, 1),
        leaves,
        frontier.shared,
    )
    return after, Choice(parents, tokens)


def trace(choices: list[Choice], frontier: Frontier, length_penalty: float) -> Beams:
    """The sequences, from the last step back to the first."""
    batch, k = frontier.finished.shape
    beam = torch.arange(k, device=frontier.finished.device).expand(batch, k)
    tokens = []
    for choice in reversed(choices):
        tokens.append(choice.tokens.gather(1, beam))
        beam = choice.parents.gather(1, beam)
    scores = penalised(frontier.likelihoods, frontier.lengths, length_penalty)
    return Beams(torch.stack(tokens[::-1], -1), scores, frontier.lengths)


def select(leaf: Tensor, parents: Tensor) -> Tensor:
    """leaf[b, parents[b, j]]."""
    rows = torch.arange(len(parents), device=parents.device).unsqueeze(-1)
    return leaf[rows, parents]


def precise(logits: Tensor) -> Tensor:
    """In float32 at least: likelihoods are added up."""
    return logits if logits.dtype == torch.float64 else logits.float()


def penalised(likelihoods: Tensor, lengths: Tensor, length_penalty: float) -> Tensor:
    if not length_penalty:
        return likelihoods
    return likelihoods / lengths.to(likelihoods.dtype) ** length_penalty


def _longer(frontier: Frontier) -> Tensor:
    return frontier.lengths + (~frontier.finished).long()

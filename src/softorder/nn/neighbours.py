from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from softorder import _check
from softorder._auto import Temperature
from softorder.kernels.shards import WHOLE, Shards, Whole
from softorder.nn._tempered import Tempered
from softorder.nn.functional.neighbours import (
    DISTANCES,
    distances,
    nearest_neighbours,
)
from softorder.ops import _cut, calibrate_temperature, log_soft_topk, soft_topk

_LOSSES = {"share": "soft_topk", "log_share": "log_soft_topk"}


class SoftKNN(Tempered):
    """k nearest neighbours whose features are learned through a soft top-k.

    A network maps queries and templates to features; A_i = so.soft_topk(-distance, k) says how much
    template i is a neighbour of a query. The loss of a query of class y is

        "share":      1 - (1/k) Σ_{i: y_i = y} A_i      the neighbours that are of another class
        "log_share":  -log((1/k) Σ_{i: y_i = y} A_i)    computed without taking a rounded logarithm

    and prediction is the k-nearest-neighbour vote as usual, exact and in blocks.

    Args:
        network: from inputs to features; whatever it returns is flattened to (N, features).
        k: how many neighbours.
        method: as in `so.soft_topk`; "log_share" needs one that serves `so.log_soft_topk`.
        temperature: in units of the distance. `calibrate` finds one for a batch.
        learnable_temperature: make it a parameter.
        distance: "euclidean", or "squared" for its square.
        loss: "share" or "log_share". Under "log_share" a query whose class has no weight at all,
            not even a tiny one, has no gradient and takes no part in the mean.

    Paper: SOFT top-k (Xie et al. 2020), appendix C, whose loss has the sign of a reward.

    >>> import torch, softorder as so
    >>> _ = torch.manual_seed(0)
    >>> x, labels = torch.randn(40, 2), torch.arange(40) % 2
    >>> x[:, 0] *= 5  # only noise: the class is in the other feature
    >>> x[:, 1] += 4 * labels
    >>> model = so.nn.SoftKNN(torch.nn.Linear(2, 2), k=3)
    >>> _ = model.calibrate(x)
    >>> optimiser = torch.optim.Adam(model.parameters(), lr=0.05)
    >>> for _ in range(100):
    ...     optimiser.zero_grad()
    ...     loss = model(x, labels)  # leave one out: every item is a query to the others
    ...     loss.backward()
    ...     optimiser.step()
    >>> model.remember(x, labels).predict(torch.tensor([[9.0, 0.0], [-9.0, 4.0]]))
    tensor([0, 1])
    """

    numbers = ("k", *Tempered.numbers)
    templates: Tensor
    template_labels: Tensor

    def __init__(
        self,
        network: nn.Module,
        k: int,
        *,
        method: str | object = "laplace",
        temperature: Temperature = 1.0,
        learnable_temperature: bool = False,
        distance: str = "euclidean",
        loss: str = "share",
    ) -> None:
        _check.choice("loss", loss, _LOSSES)
        super().__init__(_LOSSES[loss], method, temperature, learnable_temperature)
        _check.count("k", k, least=1)
        _check.choice("distance", distance, DISTANCES)
        self.network = network
        self.k = k
        self.distance = distance
        self.loss = loss
        self.register_buffer("templates", torch.empty(0, 0))
        self.register_buffer("template_labels", torch.empty(0, dtype=torch.long))

    def features(self, inputs: Tensor) -> Tensor:
        """(N, features) of the network."""
        return self.network(inputs).flatten(1)

    def forward(
        self,
        queries: Tensor,
        labels: Tensor,
        templates: Tensor | None = None,
        template_labels: Tensor | None = None,
        *,
        group: Any = None,
    ) -> Tensor:
        """The loss, a scalar: the mean over the queries.

        Args:
            queries: inputs of the network, (Q, ...).
            labels: their classes, (Q,), integers >= 0.
            templates: inputs of the network, (T, ...). None: the queries are each other's
                templates, and none is its own.
            template_labels: their classes, (T,).
            group: a process group whose ranks have templates of their own, perhaps none, and the
                same queries. The loss is that of all templates, alike on all ranks; `backward()`
                gives every rank its own share of the gradients of the network, to be added up:
                `so.distributed.sum_gradients`.
        """
        _check.neighbours.labels("labels", labels, len(queries))
        _check.together(templates=templates, template_labels=template_labels)
        shards = _shards(group, templates)
        scores = self._scores(queries, templates, shards)
        if template_labels is None:
            template_labels = labels
        _check.neighbours.labels("template_labels", template_labels, scores.shape[1])
        return self._loss(scores, labels.unsqueeze(1) == template_labels, shards)

    def _scores(self, queries: Tensor, templates: Tensor | None, shards: Whole = WHOLE) -> Tensor:
        """Minus the distances; -inf of an item to itself."""
        features = self.features(queries)
        if templates is not None:
            _check.neighbours.enough(self.k, _total(len(templates), queries, shards))
            return -distances(features, self.features(templates), self.distance)
        _check.neighbours.enough(self.k, len(features) - 1)
        scores = -distances(features, features, self.distance)
        itself = torch.eye(len(scores), dtype=torch.bool, device=scores.device)
        return torch.where(itself, -math.inf, scores)

    def _loss(self, scores: Tensor, same: Tensor, shards: Whole = WHOLE) -> Tensor:
        options: dict[str, Any] = {"method": self.method, "temperature": self.temperature}
        if isinstance(shards, Shards):
            options |= {"dim": -1, "mask": None, "largest": True, "shards": shards}
        if self.loss == "share":
            weights = _operator("soft_topk", shards)(scores, self.k, **options)
            return 1 - shards.common((weights * same).sum(-1)).mean() / self.k
        logs = _operator("log_soft_topk", shards)(scores, self.k, **options)
        logs = torch.where(same, logs, -math.inf)
        nothing = logs.new_full((len(logs), 1), -math.inf)
        top = shards.most(torch.cat([logs.detach(), nothing], -1).amax(-1, keepdim=True))
        teaches = (top > -math.inf).squeeze(-1)
        # A row of -inf alone has no derivative: it is replaced before, and left out after.
        parts = torch.exp(logs - torch.where(top > -math.inf, top, 0.0))
        total = shards.common(parts.sum(-1))
        own = torch.where(teaches, total, 1.0).log() + torch.where(teaches, top.squeeze(-1), 0.0)
        losses = torch.where(teaches, own - math.log(self.k), 0.0)
        return -losses.sum() / teaches.sum().clamp(min=1)

    @torch.no_grad()
    def calibrate(
        self, queries: Tensor, templates: Tensor | None = None, *, softness: float = 0.3
    ) -> float:
        """Sets the temperature to that of a stated softness, as `so.calibrate_temperature` has it.

        Of the mass that others than the k nearest have when nothing is decided, they keep this
        part. Returns the temperature. The network as it is now sets the scale: call it before
        training.
        """
        scores = self._scores(queries, templates)
        options: dict[str, Any] = {"softness": softness, "method": self.method, "shared": True}
        temperature = calibrate_temperature(scores, self.k, **options).item()
        self.temperature = temperature
        return temperature

    @torch.no_grad()
    def remember(
        self, inputs: Tensor, labels: Tensor, *, batch: int = 1024, group: Any = None
    ) -> SoftKNN:
        """Keeps the features of these inputs, the templates of all predictions. Returns self.

        They are part of the state dict. After further training, call it again. With a process group
        every rank remembers templates of its own, and all predict together, the same.
        """
        _check.neighbours.labels("labels", labels, len(inputs))
        self._shards = _shards(group, inputs)
        self.templates = self._features_in_batches(inputs, batch)
        self.template_labels = labels.to(self.templates.device, torch.long)
        _check.neighbours.enough(self.k, _total(len(inputs), self.templates, self._shards))
        return self

    @torch.no_grad()
    def kneighbors(
        self, queries: Tensor, *, batch: int = 1024, block: int = 4096
    ) -> tuple[Tensor, Tensor]:
        """Distances and indices of the k nearest remembered templates, (Q, k) each."""
        found = self._neighbours(queries, batch, block)
        return found.distances, found.indices

    def predict_proba(self, queries: Tensor, *, batch: int = 1024, block: int = 4096) -> Tensor:
        """The share of every class among the k nearest: (Q, classes)."""
        labels = self._neighbours(queries, batch, block).labels
        highest = torch.cat([self.template_labels, self.template_labels.new_zeros(1)]).max()
        classes = int(self._shards.most(highest)) + 1
        votes = torch.zeros(len(labels), classes, device=labels.device)
        return votes.scatter_add_(1, labels, torch.full_like(labels, 1 / self.k, dtype=votes.dtype))

    def predict(self, queries: Tensor, *, batch: int = 1024, block: int = 4096) -> Tensor:
        """The class of most of the k nearest; of equal ones, the first."""
        return self.predict_proba(queries, batch=batch, block=block).argmax(-1)

    def _neighbours(self, queries: Tensor, batch: int, block: int) -> _Neighbours:
        """The k nearest of one's own templates; then, with other ranks, the k nearest of those."""
        shards, own = self._shards, len(self.templates)
        _check.neighbours.remembered(_total(own, queries, shards), "remember")
        features = self._features_in_batches(queries, batch)
        k = min(self.k, own)
        if k == 0:
            lengths, indices = features.new_empty(len(features), 0), _no_places(features)
        else:
            lengths, indices = nearest_neighbours(
                features, self.templates, k, distance=self.distance, block=block
            )
        labels = self.template_labels[indices]
        if not isinstance(shards, Shards):
            return _Neighbours(lengths, indices, labels)
        missing = (0, self.k - k)
        lengths = pad(lengths, missing, value=math.inf)
        places = pad(indices + shards.before(own, features), missing, value=-1)
        every = [shards.gather(v) for v in (lengths, places, pad(labels, missing))]
        best, chosen = every[0].topk(self.k, largest=False)
        return _Neighbours(best, *(v.gather(-1, chosen) for v in every[1:]))

    def _features_in_batches(self, inputs: Tensor, batch: int) -> Tensor:
        _check.count("batch", batch, least=1)
        with _evaluating(self.network):
            return torch.cat([self.features(part) for part in inputs.split(batch)])

    _shards: Whole = WHOLE  # that have templates, too

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        # The templates come in the number in which they were saved.
        for name in ("templates", "template_labels"):
            saved = state_dict.get(prefix + name)
            if saved is not None:
                setattr(self, name, torch.empty_like(saved, device=getattr(self, name).device))
        super()._load_from_state_dict(state_dict, prefix, *args)

    def extra_repr(self) -> str:
        return self.describe("k", "method", "temperature", "distance", "loss")


class _Neighbours(NamedTuple):
    distances: Tensor
    indices: Tensor
    labels: Tensor


def _no_places(features: Tensor) -> Tensor:
    return torch.empty(len(features), 0, dtype=torch.long, device=features.device)


def _shards(group: Any, templates: Tensor | None) -> Whole:
    if group is None:
        return WHOLE
    _check.distributed.initialised()
    _check.needed("templates", templates, "with a group")
    return Shards(group)


def _total(own: int, like: Tensor, shards: Whole) -> int:
    """The number of templates on all ranks."""
    if shards.alone:
        return own
    return int(shards.add(torch.tensor(float(own), device=like.device)).item())


def _operator(name: str, shards: Whole) -> Callable[..., Tensor]:
    if isinstance(shards, Shards):
        return partial(_cut.topk, name)
    return {"soft_topk": soft_topk, "log_soft_topk": log_soft_topk}[name]


@contextmanager
def _evaluating(module: nn.Module) -> Iterator[None]:
    """In eval mode, and afterwards as before."""
    modes = {m: m.training for m in module.modules()}
    module.eval()
    try:
        yield
    finally:
        for m, mode in modes.items():
            m.training = mode

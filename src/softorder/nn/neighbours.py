from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from softorder import _check
from softorder.nn._tempered import Tempered
from softorder.nn.functional.neighbours import (
    DISTANCES,
    distances,
    nearest_neighbours,
)
from softorder.ops import calibrate_temperature, log_soft_topk, soft_topk

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

    templates: Tensor
    template_labels: Tensor

    def __init__(
        self,
        network: nn.Module,
        k: int,
        *,
        method: str | object = "laplace",
        temperature: float | Tensor = 1.0,
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
    ) -> Tensor:
        """The loss, a scalar: the mean over the queries.

        Args:
            queries: inputs of the network, (Q, ...).
            labels: their classes, (Q,), integers >= 0.
            templates: inputs of the network, (T, ...). None: the queries are each other's
                templates, and none is its own.
            template_labels: their classes, (T,).
        """
        _check.neighbours.labels("labels", labels, len(queries))
        _check.together(templates=templates, template_labels=template_labels)
        scores = self._scores(queries, templates)
        if template_labels is None:
            template_labels = labels
        _check.neighbours.labels("template_labels", template_labels, scores.shape[1])
        return self._loss(scores, labels.unsqueeze(1) == template_labels)

    def _scores(self, queries: Tensor, templates: Tensor | None) -> Tensor:
        """Minus the distances; -inf of an item to itself."""
        features = self.features(queries)
        if templates is not None:
            _check.neighbours.enough(self.k, len(templates))
            return -distances(features, self.features(templates), self.distance)
        _check.neighbours.enough(self.k, len(features) - 1)
        scores = -distances(features, features, self.distance)
        itself = torch.eye(len(scores), dtype=torch.bool, device=scores.device)
        return torch.where(itself, -math.inf, scores)

    def _loss(self, scores: Tensor, same: Tensor) -> Tensor:
        options: dict[str, Any] = {"method": self.method, "temperature": self.temperature}
        if self.loss == "share":
            weights = soft_topk(scores, self.k, **options)
            return 1 - (weights * same).sum(-1).mean() / self.k
        logs = torch.where(same, log_soft_topk(scores, self.k, **options), -math.inf)
        teaches = (logs > -math.inf).any(-1)
        # A row of -inf alone has no derivative: it is replaced before, and left out after.
        own = torch.where(teaches.unsqueeze(-1), logs, 0.0).logsumexp(-1) - math.log(self.k)
        return -torch.where(teaches, own, 0.0).sum() / teaches.sum().clamp(min=1)

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
    def remember(self, inputs: Tensor, labels: Tensor, *, batch: int = 1024) -> SoftKNN:
        """Keeps the features of these inputs, the templates of all predictions. Returns self.

        They are part of the state dict. After further training, call it again.
        """
        _check.neighbours.labels("labels", labels, len(inputs))
        _check.neighbours.enough(self.k, len(inputs))
        self.templates = self._features_in_batches(inputs, batch)
        self.template_labels = labels.to(self.templates.device, torch.long)
        return self

    @torch.no_grad()
    def kneighbors(
        self, queries: Tensor, *, batch: int = 1024, block: int = 4096
    ) -> tuple[Tensor, Tensor]:
        """Distances and indices of the k nearest remembered templates, (Q, k) each."""
        _check.neighbours.remembered(len(self.templates), "remember")
        features = self._features_in_batches(queries, batch)
        return nearest_neighbours(
            features, self.templates, self.k, distance=self.distance, block=block
        )

    def predict_proba(self, queries: Tensor, *, batch: int = 1024, block: int = 4096) -> Tensor:
        """The share of every class among the k nearest: (Q, classes)."""
        _, indices = self.kneighbors(queries, batch=batch, block=block)
        classes = int(self.template_labels.max()) + 1
        votes = torch.zeros(len(indices), classes, device=indices.device)
        labels = self.template_labels[indices]
        return votes.scatter_add_(1, labels, torch.full_like(labels, 1 / self.k, dtype=votes.dtype))

    def predict(self, queries: Tensor, *, batch: int = 1024, block: int = 4096) -> Tensor:
        """The class of most of the k nearest; of equal ones, the first."""
        return self.predict_proba(queries, batch=batch, block=block).argmax(-1)

    def _features_in_batches(self, inputs: Tensor, batch: int) -> Tensor:
        _check.count("batch", batch, least=1)
        with _evaluating(self.network):
            return torch.cat([self.features(part) for part in inputs.split(batch)])

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        # The templates come in the number in which they were saved.
        for name in ("templates", "template_labels"):
            saved = state_dict.get(prefix + name)
            if saved is not None:
                setattr(self, name, torch.empty_like(saved, device=getattr(self, name).device))
        super()._load_from_state_dict(state_dict, prefix, *args)

    def extra_repr(self) -> str:
        return self.describe("k", "method", "temperature", "distance", "loss")


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

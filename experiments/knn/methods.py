"""The arms that have a soft top-k: its method, its loss, and where its temperature comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

import softorder as so
from experiments.knn.config import Config
from softorder.kernels.formulas import inverse
from softorder.nn.functional.neighbours import distances
from softorder.relaxations._base import Method, find
from softorder.relaxations.baselines import SequentialSoftmax


class RelaxSubSample(SequentialSoftmax):
    """Xie & Ermon (2019): the k softmaxes of log w + Gumbel noise, drawn anew in every call, where
    w = exp(-distance/τ): a relaxed sample of k templates, those near more likely."""

    name = "relax_sub_sample"

    def _mask(
        self, x: Tensor, live: Tensor, k: Tensor, temperature: Tensor, most: int | None
    ) -> Tensor:
        logs = x * inverse(temperature, x.dtype)
        noise = -torch.empty_like(x).exponential_().log()
        return super()._mask(logs + noise, live, k, torch.ones_like(temperature), most)


class SinkhornSort(Method):
    """Cuturi et al. (2019), as SOFT top-k adapts it: the whole soft permutation by entropic
    transport, of which the first k rows are added."""

    name = "sinkhorn_sort"
    operators = ("soft_topk",)

    def soft_topk(self, scores: Tensor, k: Tensor, temperature: Tensor) -> Tensor:
        sort = find("soft_permutation", "sinkhorn_sort")
        rows: Tensor = sort.soft_permutation(scores, temperature, True, int(k.max()))  # type: ignore[attr-defined]
        return rows.sum(-2)


_OBJECTS: dict[str, object] = {
    "RelaxSubSample": RelaxSubSample(),
    "sinkhorn_sort": SinkhornSort(),
}
#: a stated softness has no one temperature, or one at which nothing is learned, or takes long
UNCALIBRATED = ("softmax_k_times", "sequential_softmax", "RelaxSubSample", "sinkhorn_sort")


@dataclass(frozen=True)
class Arm:
    method: str
    loss: str
    learned: bool = False  #: the temperature
    units: float | None = None  #: a given temperature, in units of the spread of the distances

    def __str__(self) -> str:
        parts = [self.method, self.loss]
        if self.learned:
            parts.append("learned τ")
        if self.units is not None:
            parts.append(f"τ = {self.units:g}")
        return ", ".join(parts)

    def model(self, body: torch.nn.Module, k: int, distance: str = "euclidean") -> so.nn.SoftKNN:
        return so.nn.SoftKNN(
            body,
            k,
            method=_OBJECTS.get(self.method, self.method),
            loss=self.loss,
            distance=distance,
            learnable_temperature=self.learned,
        )


def every(config: Config) -> Iterator[Arm]:
    served = {row.name for row in so.methods() if row.operator == "log_soft_topk"}
    units: tuple[float | None, ...] = config.sweep or (None,)
    for loss in config.losses:
        for method in config.methods:
            if loss == "share" or method in served:
                yield from (Arm(method, loss, units=unit) for unit in units)
    for method in config.learned:
        yield from (Arm(method, "share", learned=True, units=unit) for unit in units)


@torch.no_grad()
def spread(model: so.nn.SoftKNN, queries: Tensor, templates: Tensor | None) -> float:
    """The standard deviation of the distances from a query to the templates, on average."""
    features = model.features(queries)
    if templates is not None:
        return distances(features, model.features(templates), model.distance).std(-1).mean().item()
    every = distances(features, features, model.distance)
    others = ~torch.eye(len(every), dtype=torch.bool, device=every.device)
    return every[others].view(len(every), -1).std(-1).mean().item()


def middle(
    arm: Arm, model: so.nn.SoftKNN, queries: Tensor, templates: Tensor | None, softness: float
) -> float:
    """The temperature that factors are taken of: that of a softness, where there is one."""
    if arm.units is not None or arm.method in UNCALIBRATED:
        return spread(model, queries, templates)
    many = len(queries) - 1 if templates is None else len(templates)
    outside = 1 - model.k / many  # what others have when nothing is decided
    return model.calibrate(queries, templates, softness=min(softness / outside, 0.95))

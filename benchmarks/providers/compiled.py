"""An operator as torch.compile makes it, alone or between the layers of a small model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn

import softorder as so
from benchmarks.cases import OrderingCase
from benchmarks.providers._provider import Operator, Provider

_FEW = 5  # rows of a permutation, or classes, that are asked for


def _loss(scores: Tensor, temperature: float) -> Tensor:
    target = torch.arange(len(scores)) % scores.shape[-1]
    return so.losses.top_k_cross_entropy(scores, target, [0.5, 0.0, 0.5], temperature=temperature)


CALLS: dict[str, Callable[[Tensor, float], Tensor]] = {
    "soft_topk": lambda x, t: so.soft_topk(x, _FEW, temperature=t),
    "soft_topk logistic": lambda x, t: so.soft_topk(x, _FEW, temperature=t, method="logistic"),
    "log_soft_topk": lambda x, t: so.log_soft_topk(x, _FEW, temperature=t),
    "soft_rank": lambda x, t: so.soft_rank(x, temperature=t),
    "soft_sort": lambda x, t: so.soft_sort(x, temperature=t),
    "soft_permutation": lambda x, t: so.soft_permutation(x, k=_FEW, temperature=t),
    "softsort": lambda x, t: so.soft_permutation(x, k=_FEW, temperature=t, method="softsort"),
    "neuralsort": lambda x, t: so.soft_permutation(x, k=_FEW, temperature=t, method="neuralsort"),
    "network": lambda x, t: so.soft_permutation(x, k=_FEW, temperature=t, method="network"),
    "permutahedron": lambda x, t: so.soft_rank(x, temperature=t, method="permutahedron"),
    "top-k loss": _loss,
}


def eager(name: str) -> Provider:
    def bind(case: OrderingCase) -> Operator:
        return lambda scores: CALLS[name](scores, case.temperature)

    return Provider(f"{name}-eager", f"{name}, eager", bind)


def relu_beside(name: str) -> Provider:
    """Nothing of ours, in the same place: what torch makes of that."""
    return Provider(f"{name} relu-eager", f"relu beside {name}, eager", lambda case: torch.relu)


def in_model(provider: Provider) -> Provider:
    """Between two linear layers, which take most of the time."""

    def bind(case: OrderingCase) -> Operator:
        operator, n = provider.bind(case), case.shape.n
        before, behind = nn.Linear(n, n), nn.Linear(n, n)
        return lambda scores: behind(operator(before(scores)).reshape(-1, n))

    return replace(provider, bind=bind)


def compiled(provider: Provider) -> Provider:
    def bind(case: OrderingCase) -> Operator:
        torch.compiler.reset()  # all cases share their code, and graphs for one piece of it are few
        return torch.compile(provider.bind(case), fullgraph=True)

    name, key = (v.replace("eager", "compiled") for v in (provider.name, provider.key))
    return replace(provider, key=key, name=name, bind=bind)

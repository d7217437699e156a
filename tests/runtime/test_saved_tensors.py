"""Hooks on what autograd keeps: harmless ones change nothing, others are an error, not a crash."""

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks

import softorder as so
from softorder.relaxations import find

_TARGET, _TAU = torch.tensor([0, 5, 2]), torch.tensor(0.5, dtype=torch.float64)
_LAPLACE = find("log_soft_topk", "laplace")
_CALLS = {
    "soft_topk": lambda x: so.soft_topk(x, 2),
    "soft_rank": so.soft_rank,
    "soft_sort": so.soft_sort,
    "soft_permutation": lambda x: so.soft_permutation(x, k=3),
    "permutahedron": lambda x: so.soft_rank(x, method="permutahedron"),
    "softsort": lambda x: so.soft_permutation(x, k=3, method="softsort"),
    "network": lambda x: so.soft_permutation(x, k=3, method="network"),
    "one entry": lambda x: _LAPLACE.log_masses(x, _TARGET, (1, 2), _TAU),
}


def _gradient(call, pack=lambda v: v, unpack=lambda v: v):
    scores = torch.linspace(-1, 1, 24).reshape(3, 8).requires_grad_()
    with saved_tensors_hooks(pack, unpack):
        result = call(scores)
    result.square().sum().backward()
    return scores.grad


@pytest.mark.parametrize("call", _CALLS.values(), ids=_CALLS)
def test_what_comes_back_as_it_was_is_fine(call):
    moved = _gradient(call, lambda v: v.clone(), lambda v: v.clone())
    assert torch.equal(moved, _gradient(call))


@pytest.mark.parametrize("call", _CALLS.values(), ids=_CALLS)
@pytest.mark.parametrize(
    "unpack",
    [
        lambda v: v.half() if v.is_floating_point() and v.dim() > 1 else v,
        lambda v: v[..., :1] if v.dim() > 1 else v,
        lambda v: v.reshape(-1)[:0],
    ],
    ids=["dtype", "shape", "nothing"],
)
def test_what_comes_back_as_something_else_is_an_error(call, unpack):
    with pytest.raises(RuntimeError, match="look for saved_tensors_hooks"):
        _gradient(call, unpack=unpack)

"""Sums over ranks and their derivatives."""

import pytest
import torch

from softorder.kernels.shards import Shards


def _maps(name):
    shards = Shards()
    x = torch.arange(3.0, dtype=torch.float64) + shards.rank
    x.requires_grad_()
    result = getattr(shards, name)(x)
    upstream = torch.full_like(x, 10.0 + shards.rank, requires_grad=True)
    (gradient,) = torch.autograd.grad(result, x, upstream, create_graph=True)
    (second,) = torch.autograd.grad(gradient.sum(), upstream)
    _, tangent = torch.func.jvp(getattr(shards, name), (x.detach(),), (x.detach(),))
    return [v.detach() for v in (x, result, gradient, second, tangent)]


@pytest.mark.parametrize("name", ["total", "common", "shared"])
def test_maps(team, name):
    answers = team.run(_maps, name)
    there, back = name != "shared", name != "common"
    x = torch.stack([answer[0] for answer in answers])
    ranks = torch.arange(len(answers), dtype=torch.float64)
    for rank, (own, result, gradient, second, tangent) in enumerate(answers):
        expected = x.sum(0) if there else own
        torch.testing.assert_close(result, expected)
        torch.testing.assert_close(tangent, expected)
        upstream = (10 + ranks).sum() if back else 10.0 + rank
        torch.testing.assert_close(gradient, torch.full_like(own, upstream))
        torch.testing.assert_close(second, torch.full_like(own, len(x) if there else 1.0))


def _most():
    shards = Shards()
    return shards.most(torch.tensor([float(shards.rank), -float(shards.rank)]))


def test_maximum(team):
    for answer in team.run(_most):
        assert answer.tolist() == [team.size - 1.0, 0.0]


def _fail():
    raise ValueError("on purpose")


def test_an_error_on_a_rank_is_an_error(pair):
    with pytest.raises(AssertionError, match="on purpose"):
        pair.run(_fail)

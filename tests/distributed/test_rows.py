"""Results for whole rows that are cut among ranks, and hard ones."""

import math

import numpy as np
import pytest
import torch
from torch import distributed
from torch.distributed import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

import softorder as so
from tests import bank
from tests.distributed.parts import own, special_rows


def _quantiles(scores, q, tau, density, how=None):
    x = torch.from_numpy(scores if how is None else own(scores, how)).clone().requires_grad_()
    q, tau = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (q, tau))
    function = so.soft_quantile if how is None else so.distributed.soft_quantile
    t = function(x, q, temperature=tau, method=density)
    gradients = torch.autograd.grad((t * t.detach().cos()).sum(), (x, q, tau))
    return [v.detach().numpy() for v in (t, *gradients)]


@pytest.mark.parametrize("density", ["laplace", "logistic", "normal", "cauchy", "uniform"])
def test_quantiles(team, density):
    scores = np.random.default_rng(0).standard_normal((4, 13))
    arguments = scores, [0.1, 0.5, 0.83], 0.4, density
    expected = _quantiles(*arguments)
    answers = team.run(_quantiles, *arguments, "uneven")
    for answer in answers:
        for one, other in zip(answer[:1] + answer[2:], expected[:1] + expected[2:], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)
    gradient = np.concatenate([answer[1] for answer in answers], -1)
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-11, atol=1e-12)


def _special_quantiles(scores, how=None):
    x = torch.from_numpy(scores if how is None else own(scores, how))
    function = so.soft_median if how is None else so.distributed.soft_median
    return function(x, temperature=0.3).numpy()


def test_medians_of_special_rows(team):
    expected = _special_quantiles(special_rows())
    for answer in team.run(_special_quantiles, special_rows(), "uneven"):
        np.testing.assert_allclose(answer, expected, rtol=1e-12)


def _hard(scores, k, how=None):
    x = torch.from_numpy(scores if how is None else own(scores, how))
    function = so.hard.topk if how is None else so.distributed.hard_topk
    return function(x, torch.from_numpy(k)).numpy()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_hard_topk(team, dtype):
    _, scores, k, _ = bank.problems(bank.FAMILIES, 40, dtype, temperatures=(1.0,))
    for rows, sizes in ((scores, k), (special_rows().astype(dtype), np.full(6, 2.5))):
        found = np.concatenate(team.run(_hard, rows, sizes, "uneven"), -1)
        np.testing.assert_array_equal(found, _hard(rows, sizes))


def _dtensors():
    scores = torch.randn(4, 6, 5, generator=torch.Generator().manual_seed(0)).double()
    mesh = init_device_mesh("cpu", (distributed.get_world_size(),))
    q = torch.tensor([0.2, 0.7], dtype=torch.float64)
    for placement in (Shard(0), Shard(1), Shard(2), Replicate()):
        x = distribute_tensor(scores, mesh, [placement])
        for dim in (2, (0, 2), None):
            for level in (0.4, q):
                for keepdim in (False, True):
                    found = so.soft_quantile(x, level, dim=dim, keepdim=keepdim, temperature=0.3)
                    options = {"dim": dim, "keepdim": keepdim, "temperature": 0.3}
                    expected = so.soft_quantile(scores, level, **options)
                    assert found.shape == expected.shape
                    torch.testing.assert_close(found.full_tensor(), expected)
            hard = so.hard.topk(x, 3, dim=dim)
            torch.testing.assert_close(hard.full_tensor(), so.hard.topk(scores, 3, dim=dim))


def test_dtensors(pair):
    pair.run(_dtensors)


@pytest.mark.parametrize("dim", [(0, 2), None, (1,)], ids=str)
@pytest.mark.parametrize("keepdim", [False, True])
def test_quantiles_along_several_axes(dim, keepdim):
    scores = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(0))
    q = torch.tensor([0.25, 0.5])
    found = so.soft_quantile(scores, q, dim=dim, keepdim=keepdim, temperature=1e-3)
    axes = (0, 1, 2) if dim is None else dim
    rest = [axis for axis in range(3) if axis not in axes]
    flat = scores.permute(*rest, *axes).flatten(len(rest))
    expected = so.soft_quantile(flat, q, temperature=1e-3)
    shape = [1 if axis in axes else scores.shape[axis] for axis in range(3)]
    torch.testing.assert_close(found, expected.reshape(2, *shape) if keepdim else expected)


def test_hard_topk_of_a_batch():
    scores = torch.arange(12.0).reshape(3, 4)
    chosen = so.hard.topk(scores, 5, dim=None)
    assert chosen.sum() == 5
    assert math.isclose(scores[chosen > 0].min().item(), 7.0)


def _calibrations():
    scores = torch.randn(4, 9, generator=torch.Generator().manual_seed(0)).double()
    mesh = init_device_mesh("cpu", (distributed.get_world_size(),))
    for placement in (Shard(0), Shard(1)):
        for options in ({"shared": True}, {"dim": None} if placement.dim else {}):
            x = distribute_tensor(scores, mesh, [placement]).requires_grad_()
            y = scores.clone().requires_grad_()
            tau = so.calibrate_temperature(x, 2, differentiable=True, **options)
            expected = so.calibrate_temperature(y, 2, differentiable=True, **options)
            torch.testing.assert_close(tau.full_tensor(), expected, rtol=1e-9, atol=0)
            tau.sum().backward()
            expected.sum().backward()
            torch.testing.assert_close(x.grad.full_tensor(), y.grad, rtol=1e-7, atol=1e-10)


def test_calibrations(pair):
    pair.run(_calibrations)


def _orders():
    scores = torch.randn(4, 7, 5, generator=torch.Generator().manual_seed(0)).double()
    mesh = init_device_mesh("cpu", (distributed.get_world_size(),))
    for placement in (Shard(0), Shard(1), Shard(2)):
        for operator, dims in ((so.soft_rank, (1, (0, 1), None)), (so.soft_sort, (1, 2))):
            for dim in dims:
                x = distribute_tensor(scores, mesh, [placement]).requires_grad_()
                y = scores.clone().requires_grad_()
                options = {"dim": dim, "temperature": 0.3, "descending": True}
                found, expected = operator(x, **options), operator(y, **options)
                assert found.placements == x.placements
                torch.testing.assert_close(found.full_tensor(), expected)
                weights = distribute_tensor(scores.cos(), mesh, [placement])
                (found * weights).sum().backward()
                (expected * scores.cos()).sum().backward()
                torch.testing.assert_close(x.grad.full_tensor(), y.grad, rtol=1e-9, atol=1e-11)
    x = distribute_tensor(scores, mesh, [Shard(1)])
    with pytest.raises(TypeError, match="method must be 'laplace' for a DTensor whose rows are"):
        so.soft_rank(x, dim=1, method="logistic")
    with pytest.raises(TypeError, match="method must be a density for a DTensor"):
        so.soft_topk(x, 2, dim=1, method="softsort")


def test_ranks_and_sorts(pair):
    pair.run(_orders)


def test_ranks_along_several_axes():
    scores = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    expected = so.soft_rank(scores.flatten()).reshape(3, 4)
    torch.testing.assert_close(so.soft_rank(scores, dim=None), expected)
    hard = so.hard.rank(scores, dim=None)
    assert sorted(hard.flatten().tolist()) == list(range(1, 13))


def test_more_along_several_axes():
    scores = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    q = torch.tensor([0.25, 0.5])
    expected = so.hard.quantile(scores.flatten(), q)
    torch.testing.assert_close(so.hard.quantile(scores, q, dim=None), expected)
    kept = so.hard.quantile(scores, q, dim=(0, 1), keepdim=True)
    torch.testing.assert_close(kept, expected.reshape(2, 1, 1))
    target = so.hard.topk(scores, 5, dim=None)
    loss = so.losses.fenchel_young(scores, target, 5, dim=None)
    torch.testing.assert_close(loss, so.losses.fenchel_young(scores.flatten(), target.flatten(), 5))
    layer = so.nn.SoftTopK(5, dim=None)
    torch.testing.assert_close(layer(scores), so.soft_topk(scores, 5, dim=None))
    tau = so.calibrate_temperature(scores, 5, dim=None)
    torch.testing.assert_close(tau, so.calibrate_temperature(scores.flatten(), 5))

"""DTensors: cut along the axis of the scores, along others, along several dimensions of a mesh."""

import math

import pytest
import torch
from torch.distributed import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.debug import CommDebugMode

import softorder as so

_SHAPE = (6, 5, 9)


def _mesh(*sizes):
    return init_device_mesh("cpu", sizes)


def _scores(dtype=torch.float64):
    return torch.randn(_SHAPE, generator=torch.Generator().manual_seed(0), dtype=dtype)


def _expected(scores, k, tau, operator, **options):
    x = scores.clone().requires_grad_()
    k, tau = (v.clone().requires_grad_() if isinstance(v, torch.Tensor) else v for v in (k, tau))
    result = operator(x, k, temperature=tau, **options)
    wanted = [v for v in (x, k, tau) if isinstance(v, torch.Tensor)]
    return result.detach(), torch.autograd.grad((result * scores.cos()).sum(), wanted)


def _found(scores, k, tau, operator, mesh, placements, numbers, **options):
    x = distribute_tensor(scores, mesh, placements).requires_grad_()
    every = [Replicate()] * mesh.ndim
    given = []
    for value in (k, tau):
        if isinstance(value, torch.Tensor):
            value = value.clone()
            if numbers == "replicated":
                value = distribute_tensor(value, mesh, every)
            value.requires_grad_()
        given.append(value)
    result = operator(x, given[0], temperature=given[1], **options)
    assert isinstance(result, DTensor)
    assert result.placements == x.placements
    assert result.shape == x.shape
    weights = distribute_tensor(scores.cos(), mesh, placements)
    wanted = [v for v in (x, *given) if isinstance(v, torch.Tensor)]
    gradients = torch.autograd.grad((result * weights).sum(), wanted)
    assert gradients[0].placements == x.placements
    whole = [v.full_tensor() if isinstance(v, DTensor) else v for v in (result, *gradients)]
    return whole[0].detach(), whole[1:]


_PLACEMENTS = [
    [Shard(2)],
    [Shard(0)],
    pytest.param([Shard(1)], marks=pytest.mark.slow),
    pytest.param([Replicate()], marks=pytest.mark.slow),
]


def _compare(placements, k, tau, name, numbers, options):
    mesh = _mesh(*([2] * len(placements)))
    arguments = _scores(), k, tau, getattr(so, name)
    expected, gradients = _expected(*arguments, **options)
    found, others = _found(*arguments, mesh, placements, numbers, **options)
    for one, other in zip((found, *others), (expected, *gradients), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-12)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("placements", _PLACEMENTS, ids=str)
@pytest.mark.parametrize("name", ["soft_topk", "log_soft_topk"])
def test_placements(pair, placements, name):
    pair.run(_compare, placements, 2.5, 0.5, name, None, {})


@pytest.mark.parametrize("placements", _PLACEMENTS, ids=str)
@pytest.mark.parametrize("numbers", ["plain", "replicated"])
def test_numbers_that_learn(pair, placements, numbers):
    k = torch.linspace(0.5, 4, 30, dtype=torch.float64).reshape(_SHAPE[:2])
    pair.run(
        _compare, placements, k, torch.tensor(0.5, dtype=torch.float64), "soft_topk", numbers, {}
    )
    tau = torch.linspace(0.3, 2, 5, dtype=torch.float64)
    pair.run(
        _compare, placements, torch.tensor(2.5, dtype=torch.float64), tau, "soft_topk", numbers, {}
    )


@pytest.mark.parametrize("dim", [(0, 2), (1, 2), None, 1], ids=str)
@pytest.mark.parametrize("placements", [[Shard(2)], [Shard(0)]], ids=str)
def test_several_axes(pair, dim, placements):
    pair.run(_compare, placements, 3, 0.5, "soft_topk", None, {"dim": dim, "largest": False})


def _masked():
    mesh, scores = _mesh(2), _scores()
    mask = torch.rand(_SHAPE[1:], generator=torch.Generator().manual_seed(1)) < 0.6
    x = distribute_tensor(scores, mesh, [Shard(2)])
    found = so.soft_topk(x, 2, mask=mask)
    torch.testing.assert_close(found.full_tensor(), so.soft_topk(scores, 2, mask=mask))
    other = distribute_tensor(mask, mesh, [Shard(1)])
    torch.testing.assert_close(so.soft_topk(x, 2, mask=other).full_tensor(), found.full_tensor())


def test_masks(pair):
    pair.run(_masked)


def _partial():
    mesh, scores = _mesh(2), _scores()
    half = DTensor.from_local(scores / 2, mesh, [Partial()], run_check=False)
    found = so.soft_topk(half, 2)
    assert found.placements == (Replicate(),)
    torch.testing.assert_close(found.to_local(), so.soft_topk(scores, 2))


def test_what_is_partial_is_reduced_first(pair):
    pair.run(_partial)


def _no_gathering():
    x = distribute_tensor(_scores(), _mesh(2), [Shard(2)]).requires_grad_()
    with CommDebugMode() as there:
        p = so.soft_topk(x, 2)
    with CommDebugMode() as back:
        p.to_local().sum().backward()
    names = {str(name) for mode in (there, back) for name in mode.get_comm_counts()}
    assert names
    assert all("reduce" in name for name in names), names
    assert back.get_total_counts() == 1


def test_no_scores_are_gathered(pair):
    pair.run(_no_gathering)


def _grid():
    mesh = _mesh(2, 2)
    scores = _scores()
    for placements in ([Shard(2), Shard(0)], [Shard(0), Shard(2)], [Shard(2), Shard(2)]):
        for dim in (2, None):
            expected = _expected(scores, 2.5, 0.5, so.soft_topk, dim=dim)
            options = {"dim": dim}
            found = _found(scores, 2.5, 0.5, so.soft_topk, mesh, placements, None, **options)
            for one, other in zip((found[0], *found[1]), (expected[0], *expected[1]), strict=True):
                torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-12)


@pytest.mark.slow
def test_two_dimensions_of_a_mesh(four):
    four.run(_grid)


def _second_order(x):
    p = so.soft_topk(x, 2.5, temperature=0.7, method="logistic")
    (gradient,) = torch.autograd.grad((p * p).sum(), x, create_graph=True)
    return torch.autograd.grad((gradient * gradient).sum(), x)[0]


def _second_orders():
    scores = _scores()
    expected = _second_order(scores.clone().requires_grad_())
    for placement in (Shard(2), Shard(0)):
        x = distribute_tensor(scores, _mesh(2), [placement]).requires_grad_()
        found = _second_order(x).full_tensor()
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)


def test_second_order(pair):
    pair.run(_second_orders)


def _refused():
    x = distribute_tensor(_scores(), _mesh(2), [Shard(2)])
    with pytest.raises(ValueError, match=r"k must be between 0 and 9, the number of scores"):
        so.soft_topk(x, 10)
    with pytest.raises(TypeError, match="method must be a density for a DTensor"):
        so.soft_topk(x, 2, method="softsort")
    with pytest.raises(ValueError, match="temperature must be finite and > 0, but got 0"):
        so.soft_topk(x, 2, temperature=0)
    with pytest.raises(ValueError, match="mask must broadcast"):
        so.soft_topk(x, 2, mask=torch.ones(4, dtype=torch.bool))


def test_wrong_arguments(pair):
    pair.run(_refused)


# ---- several axes of plain tensors --------------------------------------------------------------


@pytest.mark.parametrize("dim", [(0, 2), (2, 0), (1,), None, (-1, -2)], ids=str)
def test_axes_of_plain_tensors(dim):
    scores = _scores()
    p = so.soft_topk(scores, 4, dim=dim, mask=scores > -1)
    axes = range(3) if dim is None else [axis % 3 for axis in dim]
    rest = [axis for axis in range(3) if axis not in axes]
    order = [*rest, *sorted(axes)]
    flat = scores.permute(order).flatten(len(rest))
    expected = so.soft_topk(flat, 4, mask=flat > -1)
    torch.testing.assert_close(p.permute(order).flatten(len(rest)), expected)
    total = p.sum(tuple(axes))
    torch.testing.assert_close(total, (scores > -1).sum(tuple(axes)).clamp(max=4).double())


def test_numbers_per_row_of_several_axes():
    scores, k = _scores(), torch.tensor([1.0, 2, 3, 4, 5], dtype=torch.float64)
    torch.testing.assert_close(so.soft_topk(scores, k, dim=(0, 2)).sum((0, 2)), k)


@pytest.mark.parametrize("dim", [(), (0, 0), (3,), ("a",), 1.5], ids=str)
def test_wrong_axes(dim):
    with pytest.raises((TypeError, ValueError), match="dim must"):
        so.soft_topk(_scores(), 2, dim=dim)


def test_k_of_several_axes_is_checked():
    with pytest.raises(ValueError, match=rf"between 0 and {math.prod(_SHAPE)}"):
        so.soft_topk(_scores(), 1000, dim=None)


def _new_forms():
    mesh, scores = _mesh(2), _scores()
    k = torch.linspace(0.5, 4, 30, dtype=torch.float64).reshape(*_SHAPE[:2], 1)  # kept its axis
    calls = {
        "hard": lambda x: so.soft_topk(x, 2.5, temperature=0.5, hard=True),
        "kept": lambda x: so.soft_topk(x, k, temperature=k),
        "kept by several": lambda x: so.soft_topk(x, k[:1, :, :1], dim=(0, 2)),
        "auto": lambda x: so.soft_topk(x, 2, temperature="auto"),
        "auto, shared": lambda x: so.soft_topk(x, 2, temperature=so.Auto(0.3, shared=True)),
        "hard ranks": lambda x: so.soft_rank(x, hard=True),
        "soft ranks": lambda x: so.soft_rank(x, temperature="auto"),
        "sort": lambda x: so.soft_sort(x, dim=(1, 2)),
    }
    whole_rows = {"hard ranks", "soft ranks", "sort"}
    for placement in (Shard(2), Shard(0), Replicate()):
        for name, call in calls.items():
            x = distribute_tensor(scores, mesh, [placement])
            if placement == Shard(2) and name in whole_rows:
                with pytest.raises(TypeError, match="rows are cut among ranks"):
                    call(x)
            else:
                found = call(x).full_tensor()
                torch.testing.assert_close(found, call(scores), rtol=1e-6, atol=1e-8)


def test_hard_auto_and_kept_numbers(pair):
    pair.run(_new_forms)

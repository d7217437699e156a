"""Losses whose classes are cut among ranks."""

import pytest
import torch
from torch import distributed
from torch.distributed import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.debug import CommDebugMode

import softorder as so
from tests.distributed.parts import own

_ROWS, _CLASSES = 6, 11


def _samples():
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(_ROWS, _CLASSES, generator=generator, dtype=torch.float64)
    target = torch.randint(_CLASSES, (_ROWS,), generator=generator)
    target[2] = -100
    return scores, target


def _weight():
    return torch.linspace(0.5, 2, _CLASSES, dtype=torch.float64)


def _numbers():
    tau = torch.tensor(0.4, dtype=torch.float64, requires_grad=True)
    p_k = torch.tensor([0.2, 0.3, 0.0, 0.5], dtype=torch.float64, requires_grad=True)
    return tau, p_k


_OPTIONS = {
    "operator": {"top1": "operator"},
    "softmax": {},
    "smooth": {"label_smoothing": 0.1},
    "smooth operator": {"label_smoothing": 0.1, "top1": "operator"},
    "few": {"m": 5},
    "few, smooth": {"m": 5, "label_smoothing": 0.1, "top1": "operator"},
    "few, softmax of them": {"m": 5, "label_smoothing": 0.1, "top1": "softmax_of_m"},
    "mixed, smooth": {"label_smoothing": 0.1, "top1": "mixed_softmax"},
    "few, mixed": {"m": 5, "label_smoothing": 0.1, "top1": "mixed_softmax"},
    "sum": {"reduction": "sum", "method": "logistic"},
    "rows": {"reduction": "none", "method": "normal"},
}


def _top_k(options, weighted, how=None):
    scores, target = _samples()
    x = scores if how is None else own(scores, how).clone()
    x = x.requires_grad_()
    (tau, p_k), weight = _numbers(), _weight() if weighted else None
    owner = so.losses if how is None else so.distributed
    loss = owner.top_k_cross_entropy(x, target, p_k, temperature=tau, weight=weight, **options)
    inputs = x, tau, p_k
    return [v.detach() for v in (loss, *torch.autograd.grad(loss.sum(), inputs))]


def _assert_alike(answers, expected):
    for answer in answers:
        for i in (0, *range(2, len(expected))):
            torch.testing.assert_close(answer[i], expected[i], rtol=1e-10, atol=1e-12)
    gradient = torch.cat([answer[1] for answer in answers], -1)
    torch.testing.assert_close(gradient, expected[1], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", _OPTIONS)
@pytest.mark.parametrize("weighted", [False, True])
def test_top_k_cross_entropy(team, name, weighted):
    options = _OPTIONS[name]
    answers = team.run(_top_k, options, weighted, "uneven")
    _assert_alike(answers, _top_k(options, weighted))


def _fenchel(density, how=None):
    scores, _ = _samples()
    target = torch.zeros_like(scores)
    target[:, ::4] = 1.0
    mask = torch.ones_like(scores, dtype=torch.bool)
    mask[1, 3] = False
    x = scores
    if how is not None:
        x, target, mask = (own(v, how) for v in (scores, target, mask))
    x = x.clone().requires_grad_()
    tau, _ = _numbers()
    owner = so.losses if how is None else so.distributed
    loss = owner.fenchel_young(x, target, method=density, temperature=tau, mask=mask)
    return [v.detach() for v in (loss, *torch.autograd.grad(loss, (x, tau)))]


@pytest.mark.parametrize("density", ["laplace", "logistic"])
def test_fenchel_young(team, density):
    _assert_alike(team.run(_fenchel, density, "uneven"), _fenchel(density))


def _dtensor(placements, reduction):
    scores, target = _samples()
    mesh = init_device_mesh("cpu", (2,) * len(placements))
    x = distribute_tensor(scores, mesh, placements).requires_grad_()
    reference = scores.clone().requires_grad_()
    criterion = so.losses.TopKCrossEntropyLoss([0.5, 0, 0.5], reduction=reduction, temperature=0.4)
    with CommDebugMode() as traffic:
        loss = criterion(x, target)
    gathered = [name for name in traffic.get_comm_counts() if "gather" in str(name)]
    assert not gathered
    assert isinstance(loss, DTensor)
    expected = criterion(reference, target)
    torch.testing.assert_close(loss.full_tensor(), expected)
    (expected.sum()).backward()
    (loss.sum()).backward()
    torch.testing.assert_close(x.grad.full_tensor(), reference.grad, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("placement", [Shard(1), Shard(0), Replicate()], ids=str)
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_dtensors(pair, placement, reduction):
    pair.run(_dtensor, [placement], reduction)


def _per_sample():
    scores, target = _samples()
    mesh = init_device_mesh("cpu", (distributed.get_world_size(),))
    p_k = torch.rand(_ROWS, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    p_k /= p_k.sum(-1, keepdim=True)
    criterion = so.losses.TopKCrossEntropyLoss([1.0], temperature=0.4)
    x = distribute_tensor(scores, mesh, [Shard(1)])
    torch.testing.assert_close(
        criterion(x, target, p_k).full_tensor(), criterion(scores, target, p_k)
    )
    x = distribute_tensor(scores, mesh, [Shard(0)])
    with pytest.raises(TypeError, match="per_sample must be False for a DTensor whose samples"):
        criterion(x, target, p_k)


def test_weights_of_each_sample(pair):
    pair.run(_per_sample)


@pytest.mark.slow
def test_classes_and_samples_cut(four):
    four.run(_dtensor, [Shard(0), Shard(1)], "mean")


def _fenchel_dtensor():
    scores, _ = _samples()
    target = torch.zeros_like(scores)
    target[:, :3] = 1.0
    mesh = init_device_mesh("cpu", (distributed.get_world_size(),))
    for placement in (Shard(0), Shard(1)):
        x = distribute_tensor(scores, mesh, [placement]).requires_grad_()
        loss = so.losses.fenchel_young(x, target, 3, "logistic")
        reference = scores.clone().requires_grad_()
        expected = so.losses.fenchel_young(reference, target, 3, "logistic")
        torch.testing.assert_close(loss.full_tensor(), expected)
        loss.backward()
        expected.backward()
        torch.testing.assert_close(x.grad.full_tensor(), reference.grad)


def test_fenchel_young_of_dtensors(pair):
    pair.run(_fenchel_dtensor)

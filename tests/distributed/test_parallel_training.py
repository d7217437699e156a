"""torch's own ways to train on many ranks, with these operators inside: as on one."""

import pytest
import torch
from torch import distributed, nn
from torch.distributed import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    loss_parallel,
    parallelize_module,
)
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

import softorder as so

_CLASSES = 10


class _Model(nn.Module):
    """A soft top-k of features inside, and logits."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 8)
        self.choice = so.nn.SoftTopK(3, temperature=0.5, learnable_temperature=True)
        self.head = nn.Linear(8, _CLASSES)

    def forward(self, x):
        features = self.body(x)
        return self.head(features * self.choice(features))


def _model():
    torch.manual_seed(0)
    return _Model().double()


def _batch():
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(8, 6, generator=generator, dtype=torch.float64)
    return x, torch.randint(_CLASSES, (8,), generator=generator)


def _criterion():
    return so.losses.TopKCrossEntropyLoss([0.5, 0, 0.5], temperature=0.4)


def _expected():
    model, (x, y) = _model(), _batch()
    loss = _criterion()(model(x), y)
    loss.backward()
    return loss.detach(), [parameter.grad for parameter in model.parameters()]


def _whole(value):
    return value.full_tensor() if isinstance(value, DTensor) else value


def _own_rows(value):
    return value.chunk(distributed.get_world_size())[distributed.get_rank()]


def _assert_trained(loss, model):
    expected, gradients = _expected()
    torch.testing.assert_close(_whole(loss.detach()), expected)
    for parameter, gradient in zip(model.parameters(), gradients, strict=True):
        torch.testing.assert_close(_whole(parameter.grad), gradient, rtol=1e-9, atol=1e-12)


def _data_parallel():
    model = DistributedDataParallel(_model())
    x, y = map(_own_rows, _batch())
    loss = _criterion()(model(x), y)
    loss.backward()
    mean = loss.detach().clone()
    distributed.all_reduce(mean)
    _assert_trained(mean / distributed.get_world_size(), model.module)


def _fully_sharded():
    mesh = init_device_mesh("cpu", (distributed.get_world_size(),))
    model = _model()
    scalar = model.choice.log_temperature  # which torch wants to be left out
    fully_shard(model.head, mesh=mesh)
    fully_shard(model, mesh=mesh, ignored_params={scalar})
    x, y = map(_own_rows, _batch())
    loss = _criterion()(model(x), y)
    loss.backward()
    distributed.all_reduce(scalar.grad)
    scalar.grad /= distributed.get_world_size()
    mean = loss.detach().clone()
    distributed.all_reduce(mean)
    _assert_trained(mean / distributed.get_world_size(), model)


def _tensor_parallel():
    """The classes are cut: every rank has the logits of its own."""
    mesh = init_device_mesh("cpu", (distributed.get_world_size(),))
    model = _model()
    plan = {"head": ColwiseParallel(output_layouts=Shard(-1), use_local_output=False)}
    parallelize_module(model, mesh, plan)
    x, y = _batch()
    logits = model(x)
    assert isinstance(logits, DTensor)
    assert logits.placements == (Shard(1),)
    loss = _criterion()(logits, y)
    loss.backward()
    _assert_trained(loss, model)


def _beside_loss_parallel():
    """With torch's own loss of classes that are cut."""
    mesh = init_device_mesh("cpu", (distributed.get_world_size(),))
    model = _model()
    plan = {"head": ColwiseParallel(output_layouts=Shard(-1), use_local_output=False)}
    parallelize_module(model, mesh, plan)
    x, y = _batch()
    with loss_parallel():
        logits = model(x)
        target = DTensor.from_local(y, mesh, [Replicate()], run_check=False)
        loss = cross_entropy(logits, target) + _criterion()(logits, y)
        loss.backward()
    twin = _model()
    outputs = twin(x)
    expected = cross_entropy(outputs, y) + _criterion()(outputs, y)
    expected.backward()
    torch.testing.assert_close(_whole(loss.detach()), expected.detach())
    for one, other in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(_whole(one.grad), other.grad, rtol=1e-9, atol=1e-12)


_WAYS = [_data_parallel, _fully_sharded, _tensor_parallel, _beside_loss_parallel]


@pytest.mark.parametrize("way", _WAYS, ids=lambda way: way.__name__.strip("_"))
def test_on_two(pair, way):
    pair.run(way)


@pytest.mark.slow
@pytest.mark.parametrize("way", _WAYS, ids=lambda way: way.__name__.strip("_"))
def test_on_four(four, way):
    four.run(way)

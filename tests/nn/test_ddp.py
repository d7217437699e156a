"""The layers in two processes: DistributedDataParallel averages their gradients."""

import os
import socket

import torch
from torch import multiprocessing, nn
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import parametrize

import softorder as so
from tests.nn.decoders import Recurrent

PROCESSES = 2


class Everything(nn.Module):
    """Tokens, experts, features, neighbours, attention, a gate and a beam search, one loss."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        learnable = {"learnable_temperature": True}
        self.neighbours = so.nn.SoftKNN(nn.Linear(4, 3), 2, temperature=0.5, **learnable)
        self.attention = so.nn.TopKAttention(4, 2, 3, batch_first=True, **learnable)
        self.select = so.nn.TokenSelection(4, 3, **learnable)
        self.router = so.nn.TopKRouter(4, 3, 2, balance="exact", **learnable)
        self.experts = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.wide, self.few = nn.Linear(4, 8), so.nn.BatchTopK(8, 3, **learnable)
        mask = so.nn.TopKMask(2, group=4, **learnable)
        parametrize.register_parametrization(self.wide, "weight", mask)
        self.fewer = so.nn.TopKActivation(6, **learnable)
        self.gate = so.nn.KHotGate(4, 2)
        self.decoder = Recurrent(dtype=torch.float32)
        self.search = so.nn.SoftBeamSearch(
            2, start=0, end=1, max_length=4, temperature=0.5, **learnable
        )

    def forward(self, x, labels, target):
        x = self.select(x).tokens
        x = (
            x
            + self.router(x).mix(x, self.experts)
            + self.fewer(self.few(self.wide(x))).mean(-1, keepdim=True)
        )
        attended, _ = self.attention(x, x, x)
        near = self.neighbours(self.gate(attended.mean(1)), labels)
        state = self.decoder.start(len(x))
        return near + self.search(self.decoder, self.decoder.embedding, state, target)


def _batch(rank):
    generator = torch.Generator().manual_seed(rank)
    x = torch.randn(8, 5, 4, generator=generator)
    target = torch.randint(2, 5, (8, 3), generator=generator)
    return x, torch.arange(8) % 2, target


def _loss(model, rank):
    torch.manual_seed(rank)  # for the draws of the gate
    return model(*_batch(rank))


def _work(rank, port, folder):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.distributed.init_process_group("gloo", rank=rank, world_size=PROCESSES)
    model = DistributedDataParallel(Everything())
    _loss(model, rank).backward()
    grads = {name: p.grad for name, p in model.module.named_parameters()}
    torch.save(grads, os.path.join(folder, f"{rank}.pt"))
    torch.distributed.destroy_process_group()


def test_gradients_are_the_mean_of_those_of_the_processes(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    multiprocessing.spawn(_work, (port, str(tmp_path)), nprocs=PROCESSES)
    saved = [torch.load(tmp_path / f"{rank}.pt") for rank in range(PROCESSES)]
    model = Everything()
    (sum(_loss(model, rank) for rank in range(PROCESSES)) / PROCESSES).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        for grads in saved:
            torch.testing.assert_close(grads[name], parameter.grad, rtol=1e-4, atol=1e-6)

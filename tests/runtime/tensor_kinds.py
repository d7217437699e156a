"""Every kind of tensor that torch ships, made from a plain one, and back."""

import mmap
from collections.abc import Callable
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor
from torch._subclasses import FakeTensor, FakeTensorMode
from torch.autograd import forward_ad
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.masked import MaskedTensor
from torch.nn.parameter import UninitializedParameter
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils._pytree import tree_map_only


class Kind(NamedTuple):
    """How it is made of a plain tensor, and the word by which an error has to name it.

    Without a word it is as good as a plain tensor: no error is allowed.
    """

    make: Callable[[Tensor], Tensor]
    word: str | None = None
    error: type[Exception] = TypeError
    draws: bool = True  # the same random numbers as a plain tensor


class ByFunction(Tensor):
    """A subclass that adds nothing: torch keeps the class by __torch_function__."""


class OwnParameter(torch.nn.Parameter):
    """A parameter of a class of its own."""


class Wrapper(Tensor):
    """A tensor without memory that has another one inside, as logging tensors are."""

    @staticmethod
    def __new__(cls, inner):
        return Tensor._make_wrapper_subclass(
            cls, inner.shape, inner.stride(), dtype=inner.dtype, device=inner.device
        )

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        unwrap = tree_map_only(cls, lambda value: value.inner, (args, kwargs or {}))
        return tree_map_only(Tensor, cls, func(*unwrap[0], **unwrap[1]))


# ---- made of a plain tensor ---------------------------------------------------------------------


def _of_real_parts(x):
    return torch.complex(torch.zeros_like(x), -x).conj().imag


def _escaped(transform, x):
    """What a function saw under a transform, after its end."""
    seen = []

    def look(value):
        seen.append(value)
        return value.sum()

    transform(look)(x)
    return seen[0]


def _escaped_from_vmap(x):
    return _escaped(torch.vmap, x.expand(2, *x.shape))


def _outlived(x):
    with forward_ad.dual_level():
        return forward_ad.make_dual(x, torch.ones_like(x))


def _inference(x):
    with torch.inference_mode():
        return x.clone()


def _strided(x):
    """Every second number of a wider tensor, from the second on."""
    wide = torch.full((*x.shape[:-1], 2 * x.shape[-1] + 1), torch.nan, dtype=x.dtype)
    view = wide[..., 1::2]
    view.copy_(x)
    return view


def _offset(x):
    return torch.cat([torch.full((3,), torch.nan, dtype=x.dtype), x.flatten()])[3:].view(x.shape)


def _unaligned(x):
    memory = bytearray(b"\1" + x.numpy().tobytes())
    return torch.frombuffer(memory, dtype=x.dtype, offset=1).view(x.shape)


def _mapped(x):
    memory = mmap.mmap(-1, x.nbytes)
    memory.write(x.numpy().tobytes())
    return torch.from_numpy(np.frombuffer(memory, x.numpy().dtype)).view(x.shape)


def _distributed(placement):
    def make(x):
        mesh = init_device_mesh("cpu", (1,))
        return distribute_tensor(x, mesh, [placement])

    return make


def _quantized(x):
    return torch.quantize_per_tensor(x.float(), 0.1, 0, torch.qint8)


#: As good as plain: the right numbers come back.
PLAIN = {
    "parameter": Kind(lambda x: torch.nn.Parameter(x.clone())),
    "buffer": Kind(lambda x: torch.nn.Buffer(x.clone())),
    "not a leaf": Kind(lambda x: 1 * x.clone().requires_grad_()),
    "inference": Kind(_inference),
    "every second": Kind(_strided),
    "transposed": Kind(lambda x: x.movedim(-1, 0).contiguous().movedim(0, -1), draws=False),
    "expanded rows": Kind(lambda x: x[:1].expand_as(x)),
    "expanded columns": Kind(lambda x: x[..., :1].expand_as(x)),
    "offset": Kind(_offset),
    "unaligned": Kind(_unaligned),
    "read-only mapping": Kind(_mapped),
    "negative view": Kind(_of_real_parts),
    "zero": Kind(lambda x: torch._efficientzerotensor(x.shape, dtype=x.dtype)),
    "outlived dual": Kind(_outlived),
    "subclass by function": Kind(lambda x: x.as_subclass(ByFunction)),
    "subclass of Parameter": Kind(lambda x: OwnParameter(x.clone())),
}

#: Stands in front of other tensors: right numbers, wherever these need not be read one by one.
WRAPPERS = {
    "TwoTensor": Kind(lambda x: TwoTensor(x, x), "TwoTensor", Exception, draws=False),
    "wrapper": Kind(Wrapper, "Wrapper", Exception),
}

#: The right numbers, or an error that names it.
OTHER = {
    "DTensor, replicated": Kind(_distributed(Replicate()), "DTensor"),
    "DTensor, rows": Kind(_distributed(Shard(0)), "DTensor"),
    "DTensor, columns": Kind(_distributed(Shard(1)), "DTensor"),
    "MaskedTensor": Kind(lambda x: MaskedTensor(x, torch.ones_like(x).bool()), "MaskedTensor"),
    "fake": Kind(lambda x: FakeTensorMode().from_tensor(x), "FakeTensor"),
    "meta": Kind(lambda x: x.to("meta"), "meta", RuntimeError, draws=False),
    "functional": Kind(torch._to_functional_tensor, "functional", RuntimeError, draws=False),
    "escaped from vmap": Kind(_escaped_from_vmap, "vmap|functorch", RuntimeError),
    "escaped from grad": Kind(lambda x: _escaped(torch.func.grad, x), "grad", RuntimeError),
    "sparse COO": Kind(lambda x: x.to_sparse(), "sparse"),
}

#: The same, but torch's autograd takes none as the gradient of a plain tensor.
RAGGED = {
    "jagged": Kind(lambda x: torch.nested.nested_tensor(list(x), layout=torch.jagged), "jagged"),
}

#: An error that names it; autograd itself does not take them as gradients.
REFUSED = {
    "complex": Kind(lambda x: x.to(torch.complex64), "complex64"),
    "conjugated": Kind(lambda x: x.to(torch.complex64).conj(), "complex64"),
    "integer": Kind(lambda x: x.long(), "int64"),
    "uint8": Kind(lambda x: x.to(torch.uint8), "uint8"),
    "boolean": Kind(lambda x: x > 0, "bool"),
    "quantized": Kind(_quantized, "qint8"),
    "sparse CSR": Kind(lambda x: x.to_sparse_csr(), "sparse_csr"),
    "sparse BSR": Kind(lambda x: x.to_sparse_bsr((1, 1)), "sparse_bsr"),
    "mkldnn": Kind(lambda x: x.float().to_mkldnn(), "mkldnn"),
    "nested": Kind(lambda x: torch.nested.nested_tensor(list(x)), "nested"),
    "uninitialized": Kind(lambda x: UninitializedParameter(), "uninitialized", ValueError),
}

KINDS = PLAIN | WRAPPERS | OTHER | RAGGED | REFUSED


# ---- and back -----------------------------------------------------------------------------------


def dense(value):
    """The numbers that a tensor stands for, in a plain one; None where it has none."""
    value = value.detach()
    if isinstance(value, DTensor):
        return value.full_tensor()
    if isinstance(value, TwoTensor):
        return value.a
    if isinstance(value, Wrapper):
        return value.inner
    if isinstance(value, MaskedTensor):
        return value.get_data()
    if value.is_nested:
        return torch.stack(list(value.unbind()))
    if isinstance(value, FakeTensor) or value.is_meta:
        return None
    if torch._is_functional_tensor(value):
        torch._sync(value)
        return torch._from_functional_tensor(value)
    return torch.empty(value.shape, dtype=value.dtype).copy_(value.as_subclass(Tensor))


@contextmanager
def one_process():
    """A process group of one, for DTensor."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        yield
    finally:
        dist.destroy_process_group()

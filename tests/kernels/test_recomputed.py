"""Graphs that keep inputs and indices only: values and derivatives are those of the formula."""

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.func import jvp, vmap

from softorder.kernels._moved import moved, narrow, taken
from softorder.kernels._recomputed import recomputed
from softorder.kernels.sort.rows import sort_rows


def _formula(x, y, scale=None):
    value = (x.exp() * y.sin()).cumsum(-1).tanh()
    return value.square().sum(-1) if scale is None else (scale * value.square()).sum(-1)


def _again(x, y, scale=None):
    return recomputed(_formula, x, y, scale)


def _orders(x):
    return sort_rows(x.detach()).order


def _in_order(x):
    order = _orders(x)
    return moved(x, order, narrow(order), back=False)


def _at_origin(x):
    order = _orders(x)
    return moved(x, order, narrow(order), back=True)


def _some(x):
    return taken(x, torch.tensor([[3, 0], [1, 1], [4, 2]]))


_MOVES = {
    "in order": (_in_order, lambda x: x.gather(-1, _orders(x))),
    "at origin": (_at_origin, lambda x: torch.empty_like(x).scatter(-1, _orders(x), x)),
    "some": (_some, lambda x: x.gather(-1, torch.tensor([[3, 0], [1, 1], [4, 2]]))),
}
_MOVE = pytest.mark.parametrize(("move", "plain"), _MOVES.values(), ids=_MOVES)


def _inputs():
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randn(3, 5, generator=generator, dtype=torch.float64).requires_grad_()
        for _ in range(2)
    ]


def _kept(call, *inputs):
    found = []

    def pack(tensor):
        found.append(tensor)
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        call(*inputs)
    return found


def test_a_formula_is_what_it_is_with_derivatives_of_both_orders():
    x, y = _inputs()
    assert torch.equal(_again(x, y), _formula(x, y))
    assert torch.autograd.gradcheck(_again, (x, y))
    assert torch.autograd.gradgradcheck(_again, (x, y))


def test_only_the_inputs_of_a_formula_are_kept():
    x, y = _inputs()
    kept = _kept(_again, x, y, torch.tensor(2.0))
    assert {tensor.data_ptr() for tensor in kept} >= {x.data_ptr(), y.data_ptr()}
    assert len(kept) == 3
    assert len(_kept(_formula, x, y, torch.tensor(2.0))) > 3


def test_an_input_that_is_made_of_another_is_one_of_its_own():
    (x, _) = _inputs()

    def gradients(call):
        (first,) = torch.autograd.grad(call(x, 2 * x).sum(), x, create_graph=True)
        return first, *torch.autograd.grad(first.square().sum(), x)

    for ours, plain in zip(gradients(_again), gradients(_formula), strict=True):
        torch.testing.assert_close(ours, plain)


def test_an_input_that_a_formula_does_not_use_has_a_gradient_of_zeros():
    x, y = _inputs()
    recomputed(lambda x, y: x.sum(-1), x, y).sum().backward()
    assert torch.equal(x.grad, torch.ones_like(x))
    assert torch.equal(y.grad, torch.zeros_like(y))


def test_constants_and_missing_inputs_have_no_gradient():
    x, y = _inputs()
    _again(x, y.detach(), None).sum().backward()
    assert x.grad is not None
    assert not recomputed(_formula, x.detach(), y.detach()).requires_grad


def test_what_comes_back_changed_is_an_error():
    x, y = _inputs()
    with saved_tensors_hooks(lambda v: v, lambda v: v.float()):
        result = _again(x, y)
    with pytest.raises(RuntimeError, match="look for saved_tensors_hooks"):
        result.sum().backward()


@pytest.mark.parametrize("call", [_again, lambda x, y: _in_order(x) * _some(y).sum()])
def test_batches_of_gradients(call):
    x, y = _inputs()
    result = call(x, y)
    many = torch.randn(4, *result.shape, dtype=torch.float64)
    (batched,) = torch.autograd.grad(result, x, many, is_grads_batched=True, retain_graph=True)
    for one, upstream in zip(batched, many, strict=True):
        (expected,) = torch.autograd.grad(result, x, upstream, retain_graph=True)
        torch.testing.assert_close(one, expected)


def test_torch_func_and_the_compiler_see_the_formula():
    x, y = (v.detach() for v in _inputs())
    expected = jvp(lambda x: _formula(x, y), (x,), (y,))
    for ours, plain in zip(jvp(lambda x: _again(x, y), (x,), (y,)), expected, strict=True):
        torch.testing.assert_close(ours, plain)
    torch.testing.assert_close(vmap(_again)(x, y), vmap(_formula)(x, y))
    compiled = torch.compile(_again, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(x.requires_grad_(), y), _formula(x, y))


@_MOVE
def test_moves_are_gathers_and_scatters(move, plain):
    (x, _) = _inputs()
    assert torch.equal(move(x), plain(x))
    assert torch.autograd.gradcheck(move, (x,))
    assert torch.autograd.gradgradcheck(lambda x: move(x).square(), (x,))
    torch.testing.assert_close(vmap(lambda x: x * 2)(move(x)), 2 * plain(x))


@_MOVE
def test_moves_keep_no_entry(move, plain):
    (x, _) = _inputs()
    assert all(not tensor.is_floating_point() for tensor in _kept(move, x))


def test_an_order_is_kept_in_32_bits():
    (x, _) = _inputs()
    assert [tensor.dtype for tensor in _kept(_in_order, x)] == [torch.int32]

"""How top_k_cross_entropy runs: dtypes, memory, kernel calls, torch.func and torch.compile."""

import pytest
import torch

import softorder as so
from softorder.kernels import _native
from tests.losses.top_k.problem import EVEN, FIVE, MIX, problem

_loss = so.losses.top_k_cross_entropy


def test_autocast_computes_in_float32():
    scores, target = problem(5, 40, torch.float32)
    half = scores.bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for p_k in ([1.0], MIX, FIVE):
            for method in ("laplace", "softsort"):
                found = _loss(half, target, p_k, method=method)
                assert found.dtype == torch.float32
                torch.testing.assert_close(found, _loss(half.float(), target, p_k, method=method))
        _loss(scores.requires_grad_().bfloat16(), target, MIX).backward()
    assert scores.grad.dtype == torch.float32
    assert scores.grad.isfinite().all()
    assert _loss(half, target, MIX).dtype == torch.bfloat16


def test_the_graph_keeps_the_scores_and_a_softmax():
    def saved(p_k):
        sizes = {}

        def pack(tensor):
            sizes[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        scores, target = problem(50, 1000, torch.float32)
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            _loss(scores.requires_grad_(), target, p_k)
        return sum(sizes.values()) / scores.untyped_storage().nbytes()

    assert saved(EVEN) < 2.2
    assert saved(FIVE) < 1.2


@pytest.mark.parametrize("top1", ["softmax", "mixed_softmax", "operator"])
def test_one_kernel_there_and_one_back(top1):
    scores, target = problem(4, 30, torch.float32)
    names = ("one_entry_forward", "one_entry_backward", "topk_forward", "topk_backward")
    with _native.use("native"):
        before = [_native.calls[name] for name in names]
        _loss(scores.requires_grad_(), target, [0.5, 0, 0.25, 0, 0.25], top1=top1).backward()
        after = [_native.calls[name] for name in names]
    assert [b - a for a, b in zip(before, after, strict=True)] == [1, 1, 0, 0]


@pytest.mark.parametrize("top1", ["softmax", "mixed_softmax", "operator"])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_numbers_alone_take_the_short_way_to_the_same(top1, reduction):
    scores, target = problem(7, 30)
    options = {"top1": top1, "reduction": reduction, "temperature": 0.5, "method": "normal"}
    for p_k in (MIX, EVEN, FIVE):
        x, same = (scores.clone().requires_grad_() for _ in range(2))
        loss = _loss(x, target, p_k, **options)
        assert "_Loss" in loss.grad_fn.name()
        assert loss.grad_fn.statics[0].p_k == tuple(p_k)
        tensor = torch.tensor(p_k, dtype=torch.float64)
        expected = _loss(same, target, tensor, **options)
        torch.testing.assert_close(loss, expected, rtol=1e-12, atol=1e-12)
        found = torch.autograd.grad(3 * loss, x, retain_graph=True)[0]
        wanted = torch.autograd.grad(3 * expected, same, retain_graph=True)[0]
        torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-12)
        twice = torch.autograd.grad(3 * loss, x, create_graph=True)[0]
        torch.testing.assert_close(twice, wanted, rtol=1e-9, atol=1e-11)
        assert twice.requires_grad
        assert torch.equal(_loss(scores, target, tuple(p_k), **options), loss.detach())


def test_the_short_way_is_left_where_something_is_ignored_or_changes():
    scores, target = problem(7, 30)
    some = target.clone()
    some[2] = -100
    found = _loss(scores, some, MIX)
    torch.testing.assert_close(found, _loss(scores[some >= 0], some[some >= 0], MIX))
    loss = _loss(scores.requires_grad_(), some.clamp_(min=0), MIX)
    some.add_(1000)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_torch_func_and_compile():
    scores, target = problem(4, 6)
    criterion = so.losses.TopKCrossEntropyLoss(MIX, method="logistic", temperature=0.7)
    expected = torch.autograd.grad(criterion(scores.requires_grad_(), target), scores)[0]
    found = torch.func.grad(lambda x: criterion(x, target))(scores.detach())
    torch.testing.assert_close(found, expected)
    each = torch.func.vmap(lambda x, y: criterion(x, y))(scores.detach(), target)
    torch.testing.assert_close(each.mean(), criterion(scores, target))
    compiled = torch.compile(criterion, fullgraph=True, backend="aot_eager")
    with _native.use("native"):
        before = _native.calls["one_entry_backward"]
        again = torch.autograd.grad(compiled(scores, target), scores)[0]
        assert _native.calls["one_entry_backward"] == before + 1
    torch.testing.assert_close(again, expected)

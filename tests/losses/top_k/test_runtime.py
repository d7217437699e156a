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

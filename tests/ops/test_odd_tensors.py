"""Tensors whose memory is not what they say: batches of gradients, views that negate."""

import pytest
import torch

import softorder as so
from tests.oracles.densities import BUILT_IN


@pytest.mark.parametrize("method", BUILT_IN)
def test_a_batch_of_backward_passes_is_one_after_the_other(kernel, method):
    scores = torch.randn(3, 7, dtype=torch.float64, requires_grad=True)
    k = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
    temperature = torch.tensor(0.7, requires_grad=True)
    p = so.soft_topk(scores, k, method=method, temperature=temperature)
    inputs, upstream = (scores, k, temperature), torch.randn(5, 3, 7, dtype=torch.float64)

    together = torch.autograd.grad(p, inputs, upstream, retain_graph=True, is_grads_batched=True)
    apart = [torch.autograd.grad(p, inputs, v, retain_graph=True) for v in upstream]
    for batch, *alone in zip(together, *apart, strict=True):
        torch.testing.assert_close(batch, torch.stack(alone))


def test_a_negated_view_is_read_as_what_it_says(kernel):
    numbers = torch.randn(4, 9, dtype=torch.complex64)
    scores = numbers.conj().imag
    assert scores.is_neg()
    torch.testing.assert_close(so.soft_topk(scores, 3), so.soft_topk(0 - numbers.imag, 3))

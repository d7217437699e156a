"""top_k_cross_entropy: equations 2 and 4 of Petersen et al. without a k×n matrix."""

import numpy as np
import pytest
import torch

import softorder as so
from tests.losses.top_k.problem import EVEN, FIVE, MIX, problem
from tests.oracles import bisection
from tests.oracles.densities import BUILT_IN

_loss = so.losses.top_k_cross_entropy


def _oracle(scores, target, p_k, density, temperature, top1):
    """The formulas as they are printed, from p by bisection."""
    x, own = scores.numpy(), (np.arange(len(target)), target.numpy())
    shares = [
        bisection.soft_topk(x, k, temperature, density).p[own] for k in range(1, 1 + len(p_k))
    ]
    if top1 == "operator":
        return -np.log(sum(w * s for w, s in zip(p_k, shares, strict=True)))
    softmax = np.log(np.exp(x).sum(-1)) - x[own]
    mixture = sum(w * s for w, s in zip(p_k[1:], shares[1:], strict=True))
    rest = (1 - p_k[0]) * np.log(mixture) if p_k[0] < 1 else 0
    return p_k[0] * softmax - rest


@pytest.mark.parametrize("density", [d for d in BUILT_IN if d != "uniform"])
@pytest.mark.parametrize("p_k", [MIX, FIVE, EVEN, [0, 0.3, 0.7], [1.0, 0, 0]], ids=str)
@pytest.mark.parametrize("top1", ["softmax", "operator"])
def test_is_the_formula_of_the_paper(kernel, density, p_k, top1):
    scores, target = problem()
    options = {"method": density, "temperature": 0.7, "top1": top1, "reduction": "none"}
    found = _loss(scores, target, p_k, **options)
    truth = _oracle(scores, target, p_k, density, 0.7, top1)
    np.testing.assert_allclose(found.numpy(), truth, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("method", ["laplace", "softsort"])
def test_preselection_keeps_the_target_and_the_best(method):
    scores, target = problem(20, 30)
    found = _loss(scores, target, EVEN, m=8, method=method, top1="operator", reduction="none")
    for row in range(20):
        order = scores[row].argsort(descending=True)[:8].tolist()
        if target[row] not in order:
            order[-1] = int(target[row])
        own = torch.tensor(order.index(int(target[row])))
        few = _loss(scores[row, order], own, EVEN, method=method, top1="operator")
        torch.testing.assert_close(found[row], few)
    for m in (30, 31, None):
        whole = _loss(scores, target, EVEN, m=m, method=method)
        assert torch.equal(whole, _loss(scores, target, EVEN, method=method))


def test_cold_limit_counts_the_hits():
    scores, target = problem(200, 15)
    losses = _loss(scores, target, FIVE, temperature=1e-6, reduction="none")
    hits = (scores.topk(5).indices == target.unsqueeze(-1)).any(-1)
    assert (losses[hits] < 1e-6).all()
    assert (losses[~hits] > 10).all()


def test_learns_to_be_among_the_first_three():
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(20, 10, generator=generator).requires_grad_()
    target = torch.randint(10, (20,), generator=generator)
    criterion = so.losses.TopKCrossEntropyLoss([0, 0, 1.0], learnable_temperature=True)
    optimizer = torch.optim.Adam([scores, *criterion.parameters()], lr=0.1)
    for _ in range(60):
        optimizer.zero_grad()
        criterion(scores, target).backward()
        optimizer.step()
    assert (scores.topk(3).indices == target.unsqueeze(-1)).any(-1).all()
    assert criterion.temperature != 1


def test_module_computes_the_function():
    scores, target = problem(6, 10)
    options = {
        "method": "normal",
        "temperature": 0.3,
        "m": 7,
        "top1": "operator",
        "weight": torch.rand(10, dtype=torch.float64),
        "ignore_index": int(target[0]),
        "label_smoothing": 0.1,
        "reduction": "sum",
    }
    module = so.losses.TopKCrossEntropyLoss(EVEN, **options)
    assert torch.equal(module(scores, target), _loss(scores, target, EVEN, **options))
    for part in ("p_k=[0.2", "normal", "temperature=0.3", "m=7", "operator", "0.1", "sum"):
        assert part in repr(module)
    learned = so.losses.TopKCrossEntropyLoss(torch.nn.Parameter(torch.tensor([0.5, 0.5])))
    assert [name for name, _ in learned.named_parameters()] == ["p_k"]

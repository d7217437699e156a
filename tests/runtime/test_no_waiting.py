"""Nothing waits for another device: no operator asks it for a number.

Tensors of the device `meta` have no memory, so whoever asks them for a number gets an error. They
take the paths of every device that is not the CPU, here with the references in plain torch too,
which would else be skipped: of these tensors torch only wants to know shapes.
"""

from functools import partial

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import softorder as so
from softorder.kernels import _triton
from softorder.kernels._operators import Operator

#: What does wait, and why: the docs say so (docs/gpu.md).
_WAITS = {
    ("soft_rank", "permutahedron"): "blocks are pooled on the host",
    ("soft_rank", "permutahedron_kl"): "blocks are pooled on the host",
    ("soft_sort", "permutahedron"): "blocks are pooled on the host",
    ("soft_sort", "permutahedron_kl"): "blocks are pooled on the host",
    ("soft_topk", "network"): "k chooses the network",
    ("soft_permutation", "sinkhorn"): "iterates until it has converged",
    ("soft_permutation", "sinkhorn_sort"): "iterates until it has converged",
    ("soft_permutation", "sorted_soft"): "iterates until it has converged",
    ("soft_rank", "sinkhorn"): "iterates until it has converged",
    ("soft_rank", "sinkhorn_sort"): "iterates until it has converged",
    ("soft_sort", "sinkhorn"): "iterates until it has converged",
    ("soft_sort", "sinkhorn_sort"): "iterates until it has converged",
}


@pytest.fixture(autouse=True)
def _references():
    with torch.library._scoped_library("softorder", "IMPL") as library:
        for name, operator in Operator.every.items():
            library.impl(name, operator.reference, "Meta", allow_override=True)
        yield


def _scores(**options):
    return torch.empty(4, 7, device="meta", **options)


def _call(operator, method, scores):
    if operator in ("soft_topk", "log_soft_topk"):
        return getattr(so, operator)(scores, 2, method=method)
    if operator == "soft_quantile":
        return so.soft_quantile(scores, 0.3, method=method)
    if operator in ("fsum", "fsum_inverse"):
        return getattr(so, operator)(scores, scores.detach()[:, :2].abs(), method=method)
    if operator == "permutation_cross_entropy":
        places = scores.detach().long()
        return so.losses.permutation_cross_entropy(scores, places, method=method)
    return getattr(so, operator)(scores, method=method)


def _rows():
    """Orders and sums of densities differ in F alone: one will do."""
    for row in so.methods():
        again = row.name in so.densities.BUILT_IN and row.name != "laplace"
        again = again and row.operator not in ("soft_topk", "log_soft_topk")
        marks = [pytest.mark.slow] if again else []
        yield pytest.param(row.operator, row.name, marks=marks)


@pytest.mark.parametrize(("operator", "method"), list(_rows()), ids=str)
def test_operators_and_their_gradients(operator, method):
    def run():
        scores = _scores(requires_grad=True)
        result = _call(operator, method, scores)
        (gradient,) = torch.autograd.grad(result.sum(), scores)
        assert result.device.type == gradient.device.type == "meta"

    if (operator, method) in _WAITS:
        with pytest.raises((RuntimeError, NotImplementedError), match=r"[Mm]eta"):
            run()
    else:
        run()


def test_numbers_on_the_device():
    scores = _scores()
    k = torch.empty(4, device="meta", requires_grad=True)
    tau = torch.empty((), device="meta", requires_grad=True)
    p = so.soft_topk(scores, k, temperature=tau)
    for gradient, number in zip(torch.autograd.grad(p.sum(), (k, tau)), (k, tau), strict=True):
        assert gradient.shape == number.shape


@pytest.mark.parametrize("loss", ["top_k", "fenchel_young"])
def test_losses(loss):
    scores = _scores(requires_grad=True)
    if loss == "top_k":
        target = torch.empty(4, dtype=torch.long, device="meta")
        value = so.losses.TopKCrossEntropyLoss([0.5, 0.0, 0.5])(scores, target)
    else:
        value = so.losses.fenchel_young(scores, _scores(), 2)
    assert torch.autograd.grad(value, scores)[0].shape == scores.shape


@pytest.mark.parametrize(
    "design", ["pareto", "pareto_corrected", "conditional_poisson", "gumbel_topk"]
)
def test_draws(design):
    law = so.distributions.KHot(3, logits=_scores(), design=design, validate_args=False)
    assert law.sample((5,)).shape == (5, 4, 7)
    assert law.rsample((5,)).device.type == "meta"


def test_circle_sums():
    logits = _scores(requires_grad=True)
    law = so.distributions.KHot(3, logits=logits, validate_args=False)
    value = law.log_prob(_scores()) + law.entropy() + law.mean.sum(-1)
    assert torch.autograd.grad(value.sum(), logits)[0].shape == logits.shape


def test_wrong_numbers_are_noticed_by_the_device(monkeypatch):
    noticed = []
    monkeypatch.setattr(torch, "_assert_async", lambda right, message: noticed.append(message))
    so.soft_topk(_scores(), torch.empty(4, device="meta"))
    assert noticed == ["softorder: an entry of k is not allowed"]


@pytest.mark.skipif(_triton.problem() is not None, reason=str(_triton.problem()))
@pytest.mark.parametrize("name", ["soft_topk", "soft_rank", "soft_sort", "soft_permutation"])
def test_a_graph_for_cuda_has_nothing_on_the_cpu(name):
    """Else torch would not put it into a CUDA graph."""
    graphs = []

    def keep(graph, inputs):
        graphs.append(graph.graph)
        return graph.forward

    options = {"k": 2} if name in ("soft_topk", "soft_permutation") else {}
    operator = partial(getattr(so, name), temperature=0.5, **options)
    torch._dynamo.reset()
    with FakeTensorMode(allow_non_fake_inputs=True):
        scores = torch.empty(3, 7, device="cuda")
        result = torch.compile(operator, backend=keep, fullgraph=True)(scores)
    assert result.device.type == "cuda"
    tensors = [node.meta.get("example_value") for graph in graphs for node in graph.nodes]
    devices = {value.device.type for value in tensors if isinstance(value, torch.Tensor)}
    assert devices == {"cuda"}

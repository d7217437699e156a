"""Compiled and exported graphs call the kernels that eager mode calls, forward and backward."""

from collections import Counter

import pytest
import torch

import softorder as so
from softorder.kernels import _native

_TARGET = torch.arange(4)
_PLACES = torch.arange(20).flip(0).repeat(4, 1)

_CALLS = {
    "soft_topk": lambda x: so.soft_topk(x, 3),
    "soft_topk, logistic": lambda x: so.soft_topk(x, 3, method="logistic"),
    "soft_rank": so.soft_rank,
    "soft_sort": lambda x: so.soft_sort(x, descending=True),
    "soft_permutation": lambda x: so.soft_permutation(x, k=3, descending=True),
    "soft_permutation, normal": lambda x: so.soft_permutation(x, method="normal"),
    "permutahedron": lambda x: so.soft_rank(x, method="permutahedron"),
    "permutahedron_kl": lambda x: so.soft_sort(x, method="permutahedron_kl"),
    "softsort": lambda x: so.soft_permutation(x, k=3, method="softsort"),
    "neuralsort": lambda x: so.soft_permutation(x, k=3, method="neuralsort"),
    "network": lambda x: so.soft_permutation(x, k=3, method="network"),
    "soft_rank, uniform": lambda x: so.soft_rank(x, method="uniform"),
    "permutation loss": lambda x: so.losses.permutation_cross_entropy(x, _PLACES),
    "top-k loss": lambda x: so.losses.top_k_cross_entropy(x, _TARGET, [0.5, 0.0, 0.5]),
}


def _scores():
    return torch.randn(4, 20, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def _run(function, backward=True):
    """The result, its gradient, and how often each kernel ran, but for sorts of rows."""
    scores, before = _scores().requires_grad_(), Counter(_native.calls)
    result = function(scores)
    gradient = torch.autograd.grad((result * result).sum(), scores)[0] if backward else None
    ran = Counter(_native.calls) - before
    del ran["sort"]  # what is infinite is not looked for in a graph, but sorted apart
    return result.detach(), gradient, ran


@pytest.mark.parametrize("name", _CALLS)
def test_compiled(name):
    torch.compiler.reset()
    compiled = torch.compile(_CALLS[name], fullgraph=True, backend="aot_eager")
    with _native.use("native"):
        eager, traced = _run(_CALLS[name]), _run(compiled)
    torch.testing.assert_close(traced[:2], eager[:2], rtol=0, atol=1e-14)
    assert sum(eager[2].values()) >= 2
    assert traced[2] == eager[2]


@pytest.mark.parametrize("name", ["soft_topk", "soft_rank"])
def test_exported(name):
    class Model(torch.nn.Module):
        def forward(self, scores):
            return _CALLS[name](scores)

    with _native.use("native"):
        program = torch.export.export(Model(), (_scores(),)).module()
        eager = _run(_CALLS[name], backward=False)
        exported = _run(lambda scores: program(scores.detach()), backward=False)
    torch.testing.assert_close(exported[0], eager[0])
    assert exported[2] == eager[2]


def test_one_graph_serves_every_length():
    torch.compiler.reset()
    compiled = torch.compile(_CALLS["soft_rank"], fullgraph=True, backend="aot_eager", dynamic=True)
    with torch._dynamo.config.patch(error_on_recompile=True):
        for n in (20, 21, 50):
            scores = torch.randn(4, n, requires_grad=True)
            expected = so.soft_rank(scores)
            torch.testing.assert_close(compiled(scores), expected)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("operator", [so.soft_rank, so.soft_sort])
def test_a_temperature_that_learns_keeps_the_fused_kernels(operator, compiled):
    torch.compiler.reset()
    function = (
        torch.compile(operator, fullgraph=True, backend="aot_eager") if compiled else operator
    )
    answers = []
    for kind, call in (("native", function), ("torch", operator)):
        scores = _scores().requires_grad_()
        temperature = torch.tensor([0.1, 1.0, 0.5, 3.0], dtype=torch.float64, requires_grad=True)
        before = Counter(_native.calls)
        with _native.use(kind):
            result = call(scores, temperature=temperature)
            gradients = torch.autograd.grad((result * result).sum(), (scores, temperature))
        ran = Counter(_native.calls) - before
        assert sum(ran.values()) == (2 if kind == "native" else 0)
        answers.append((result.detach(), *gradients))
    torch.testing.assert_close(*answers, rtol=1e-11, atol=1e-11)

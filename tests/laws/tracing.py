"""Laws of torch.compile and torch.export."""

import torch

from tests.laws.close import assert_close


def compiles_without_a_graph_break(op, problem):
    _assert_compiles(op, problem, backend="aot_eager")


def inductor_gives_the_same(op, problem):
    _assert_compiles(op, problem, backend="inductor")


def exports(op, problem):
    class Model(torch.nn.Module):
        def forward(self, scores, k, temperature):
            return op(scores, k, temperature=temperature)

    program = torch.export.export(Model(), problem.arguments)
    assert_close(program.module()(*problem.arguments), problem.solve(op))


def _assert_compiles(op, problem, backend):
    def loss_and_mask(scores, k, temperature):
        p = op(scores, k, temperature=temperature)
        return (p * p.detach().cumsum(-1)).sum(), p

    torch.compiler.reset()
    compiled = torch.compile(loss_and_mask, fullgraph=True, backend=backend)
    results = []
    for function in (loss_and_mask, compiled):
        inputs = [v.clone().requires_grad_() for v in problem.arguments]
        loss, p = function(*inputs)
        results.append((p.detach(), *torch.autograd.grad(loss, inputs)))
    for eager, other in zip(*results, strict=True):
        assert_close(other, eager, atol=1e-10)

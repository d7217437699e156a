"""Laws of torch.compile and torch.export."""

import torch

from tests.laws.close import assert_close
from tests.laws.orderings.arguments import as_function


def compiles_without_a_graph_break(op, problem):
    _assert_compiles(op, problem, backend="aot_eager")


def inductor_gives_the_same(op, problem):
    _assert_compiles(op, problem, backend="inductor")


def exports(op, problem):
    class Model(torch.nn.Module):
        def forward(self, scores, temperature):
            return op(scores, temperature=temperature)

    arguments = problem.scores, problem.temperature
    program = torch.export.export(Model(), arguments)
    assert_close(program.module()(*arguments), op.solve(problem))


def _assert_compiles(op, problem, backend):
    function = as_function(op)

    def loss_and_result(scores, temperature):
        result = function(scores, temperature)
        return (result * result.detach().cumsum(-1)).sum(), result

    torch.compiler.reset()
    compiled = torch.compile(loss_and_result, fullgraph=True, backend=backend)
    results = []
    for each in (loss_and_result, compiled):
        inputs = [v.clone().requires_grad_() for v in (problem.scores, problem.temperature)]
        loss, result = each(*inputs)
        results.append((result.detach(), *torch.autograd.grad(loss, inputs)))
    for eager, other in zip(*results, strict=True):
        assert_close(other, eager, atol=1e-9)

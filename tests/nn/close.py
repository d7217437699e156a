"""Comparisons that several tests of layers need."""

import torch


def assert_compiles(function, *inputs, parameters=(), **tolerance):
    """Without a graph break; results and gradients of the first output are those of eager mode."""
    torch.compiler.reset()
    parameters = list(parameters)
    results = []
    for called in (function, torch.compile(function, fullgraph=True, backend="aot_eager")):
        given = [x.clone().requires_grad_() if x.is_floating_point() else x for x in inputs]
        output = called(*given)
        wanted = [x for x in (*given, *parameters) if x.requires_grad]
        weights = torch.linspace(0.5, 1.5, output.numel(), dtype=output.dtype)
        grads = torch.autograd.grad((output.flatten() * weights).sum(), wanted, allow_unused=True)
        results.append((output.detach(), *(g for g in grads if g is not None)))
    for eager, compiled in zip(*results, strict=True):
        torch.testing.assert_close(compiled, eager, **tolerance)

"""What we are compared with has to be right as well."""

import pytest
import torch

import softorder as so
from benchmarks.cases import Case, Shape
from benchmarks.providers import closed_form


@pytest.mark.parametrize("temperature", [1.0, 0.1, 0.01])
@pytest.mark.parametrize("k", [1, 100, 500, 999])
def test_the_closed_form_agrees(k, temperature):
    case = Case(Shape(3, 1000), k, temperature)
    scores = case.scores().double().requires_grad_()
    theirs = closed_form.bind(case)(scores)
    ours = so.soft_topk(scores, k, temperature=temperature)
    torch.testing.assert_close(theirs, ours, rtol=0, atol=1e-9)

    upstream = torch.randn_like(theirs)
    gradients = (torch.autograd.grad(p, scores, upstream)[0] for p in (theirs, ours))
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-7 / temperature)

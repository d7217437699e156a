"""Importing and using the library says nothing and leaves torch as it was."""

from tests.runtime.processes import run_fresh

_USE = """
import torch
before = torch.get_num_threads(), torch.get_default_dtype(), torch.is_grad_enabled()
import softorder as so
p = so.soft_topk(torch.randn(3, 40, requires_grad=True), 2)
p.square().sum().backward()
assert before == (torch.get_num_threads(), torch.get_default_dtype(), torch.is_grad_enabled())
"""


def test_is_silent():
    assert run_fresh(_USE) == ""


_HEAVY = """
import sys
import softorder as so
import torch
so.soft_topk(torch.randn(3, 40, requires_grad=True), 2).square().sum().backward()
so.soft_rank(torch.randn(3, 40))
names = {"torch._dynamo", "torch._inductor", "torch.distributed.tensor", "sympy", "triton"}
print(sorted(names & set(sys.modules)))
"""


def test_brings_no_compiler_along():
    """Each of these takes longer to import than everything of ours."""
    assert run_fresh(_HEAVY).strip() == "[]"


def test_exports_what_it_names():
    import softorder as so

    for name in so.__all__:
        assert getattr(so, name) is not None

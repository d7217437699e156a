"""What we use of torch that torch does not promise: each still means what we take it to mean.

A release of torch that changes one of these fails here, and not in somebody's gradients.
"""

import gc

import pytest
import torch
from torch.autograd import forward_ad
from torch.utils._python_dispatch import TorchDispatchMode

import softorder as so
from softorder import _check
from softorder.kernels import _autograd, _compiler, _density_numbers
from softorder.losses import _fused as top_k
from softorder.losses import _reduced
from softorder.relaxations import fused, threshold
from tests.user_density import Student


class _Idle(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


# ---- _check/_mode.py: when calls do not run at once on plain tensors ----------------------------


def test_ordinary_calls_are_eager():
    assert _check.eager()
    with torch.no_grad():
        assert _check.eager()
    with torch.inference_mode():
        assert _check.eager()


def test_transformations_are_seen():
    seen = []

    def look(x):
        seen.append((_check.eager(), _check.transformed()))
        return x.sum()

    x = torch.ones(2, 3)
    torch.func.vmap(look)(x)
    torch.func.grad(look)(x)
    torch.func.functionalize(look)(x)
    torch.func.jvp(look, (x,), (x,))
    assert seen == [(False, True)] * 4
    with forward_ad.dual_level():
        assert _check.transformed()
    assert not _check.transformed()


@pytest.mark.filterwarnings("ignore:.torch.jit.trace:DeprecationWarning")
def test_modes_and_tracers_are_seen():
    seen = []

    class Model(torch.nn.Module):
        def forward(self, x):
            seen.append(_check.eager())
            return x + 1

    with _Idle():
        Model()(torch.ones(2))
    torch.jit.trace(Model(), torch.ones(2), check_trace=False)
    torch.export.export(Model(), (torch.ones(2),), strict=False)
    assert len(seen) >= 3
    assert not any(seen)


def test_dynamo_is_seen():
    def where(x):
        return x + (1 if _check.eager() else 2)

    compiled = torch.compile(where, backend="eager", fullgraph=True)
    assert compiled(torch.zeros(1)).item() == 2


# ---- kernels/_compiler.py: decorators without the import of the compiler -----------------------


def test_marks_are_those_of_torch():
    def ours():
        return 1

    def theirs():
        return 1

    torch.compiler.assume_constant_result(theirs)
    assert vars(_compiler.constant_in_graphs(ours)) == vars(theirs) != {}


def test_graphs_end_before_what_is_outside_of_them():
    seen = []

    @_compiler.outside_graphs
    def steps(x):
        seen.append(torch.compiler.is_compiling())
        return x + 1

    compiled = torch.compile(lambda x: steps(2 * x) * 3, backend="eager")
    assert compiled(torch.ones(1)).item() == 9
    assert seen == [False]


# ---- Function.apply without its preparations: relaxations/fused.py, relaxations/threshold.py ---


@pytest.mark.parametrize(
    ("short", "function"),
    [
        (fused._apply, fused._Fused),
        (threshold._apply, threshold._SoftTopK),
        (top_k._apply, top_k._Loss),
        (_reduced._apply, _reduced._Loss),
    ],
)
def test_the_short_way_into_autograd_is_the_usual_one(short, function):
    """It is the C function behind Function.apply, bound to the class that it shall record."""
    assert short.__self__ is function
    assert not hasattr(short, "__func__"), "apply is Python now: there may be no shorter way"


def test_both_ways_record_the_same():
    k, tau = (torch.tensor(v, dtype=torch.float64) for v in (3.0, 0.5))
    found = []
    for apply in (threshold._apply, threshold._SoftTopK.apply):
        scores = torch.linspace(0, 1, 10).requires_grad_()
        p = apply(scores, k, tau, None, 0, -1)
        (gradient,) = torch.autograd.grad(p.square().sum(), scores)
        found.append((p.detach(), gradient, type(p.grad_fn).__name__))
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other


# ---- an object from its address: kernels/_density_numbers.py ------------------------------------


def test_a_density_survives_in_the_graph_that_names_it():
    law = Student()
    scores = torch.randn(3, 8, dtype=torch.float64)
    expected = so.soft_topk(scores, 2, method=law)
    compiled = torch.compile(
        lambda x: so.soft_topk(x, 2, method=law), backend="eager", fullgraph=True
    )
    torch.testing.assert_close(compiled(scores), expected)
    kept = _density_numbers._traced[id(law)]
    assert kept.law is law
    gc.collect()
    torch.testing.assert_close(compiled(scores), expected)


# ---- a thread that records where its operator does not: kernels/_autograd.py ---------------------


def test_derivatives_below_autograd():
    """Where operators run that have a derivative of their own, and nothing is recorded."""
    x = torch.linspace(0, 1, 5)
    torch.testing.assert_close(_autograd.by_autograd(torch.sin, x), x.cos())
    with torch._C._AutoDispatchBelowAutograd():
        assert not _autograd._recording(), "it is recorded there, too: the thread can go"
        torch.testing.assert_close(_autograd.by_autograd(torch.sin, x), x.cos())

"""hard=True: the value of the limit with the derivatives of the soft operator, all of them."""

import math

import pytest
import torch
from torch.func import grad, jacfwd, jvp, vmap

import softorder as so

_Q = torch.tensor([0.0, 0.3, 0.5, 1.0], dtype=torch.float64)
_OPERATORS = {
    "topk": (so.soft_topk, so.hard.topk, (1.5,)),
    "rank": (so.soft_rank, so.hard.rank, ()),
    "sort": (so.soft_sort, so.hard.sort, ()),
    "permutation": (so.soft_permutation, so.hard.permutation, ()),
    "quantile": (so.soft_quantile, so.hard.quantile, (_Q,)),
    "median": (so.soft_median, lambda x, **options: so.hard.quantile(x, 0.5, **options), ()),
}
_every = pytest.mark.parametrize(
    ("operator", "limit", "arguments"), _OPERATORS.values(), ids=_OPERATORS
)
_INF = math.inf


def _scores():
    rows = [[1.0, 2.0, 2.0, -_INF, 3.0, _INF], [0.0, 0.0, 1.0, 2.0, 3.0, 4.0]]
    return torch.tensor(rows, dtype=torch.float64)


def _linear(result):
    """A loss whose gradient does not depend on the value."""
    weights = torch.linspace(-1, 2, result.numel(), dtype=result.dtype).view(result.shape)
    return (result * weights).nan_to_num(0, 0, 0).sum()


@_every
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_value_and_gradient_with_infinities_mask_and_axis(operator, limit, arguments, dtype):
    scores, mask = _scores().to(dtype), torch.ones(2, 6, dtype=torch.bool)
    mask[1, 0] = False
    for options in ({}, {"mask": mask}, {"dim": 0}, {"dim": None, "mask": mask}):
        soft, hard = (scores.clone().requires_grad_() for _ in range(2))
        result = operator(hard, *arguments, temperature=0.7, hard=True, **options)
        assert torch.equal(result, limit(scores, *arguments, **options))
        upstream = torch.linspace(-1, 2, result.numel()).view_as(result).to(dtype)
        operator(soft, *arguments, temperature=0.7, **options).backward(upstream)
        result.backward(upstream)
        assert torch.equal(hard.grad, soft.grad)
        assert hard.grad.isfinite().all()


@_every
def test_a_row_with_nan_is_nan(operator, limit, arguments):
    scores = torch.tensor([[1.0, math.nan, 2.0], [3.0, 1.0, 2.0]], dtype=torch.float64)
    found = operator(scores, *arguments, temperature=0.7, hard=True)
    torch.testing.assert_close(found, limit(scores, *arguments), rtol=0, atol=0, equal_nan=True)


@_every
def test_functional_transforms_see_the_soft_derivative(operator, limit, arguments):
    scores, direction = torch.randn(2, 3, 5, dtype=torch.float64).unbind()

    def of(hard):
        return lambda x: operator(x, *arguments, temperature=0.7, hard=hard)

    value, slope = jvp(of(True), (scores,), (direction,))
    assert torch.equal(value, limit(scores, *arguments))
    torch.testing.assert_close(slope, jvp(of(False), (scores,), (direction,))[1])
    torch.testing.assert_close(jacfwd(of(True))(scores), jacfwd(of(False))(scores))
    rows = vmap(of(True))(scores)
    torch.testing.assert_close(rows, torch.stack([limit(row, *arguments) for row in scores]))

    per_row = vmap(grad(lambda x: _linear(of(True)(x))))(scores)
    torch.testing.assert_close(per_row, vmap(grad(lambda x: _linear(of(False)(x))))(scores))


@_every
def test_second_derivatives_are_those_of_the_soft_operator(operator, limit, arguments):
    scores = torch.randn(2, 5, dtype=torch.float64)

    def hessian(hard):
        def loss(x):
            return _linear(operator(x, *arguments, temperature=0.7, hard=hard))

        return torch.autograd.functional.hessian(loss, scores)

    torch.testing.assert_close(hessian(True), hessian(False))


@pytest.mark.parametrize("name", ["topk", "sort"])
def test_compiles_without_a_graph_break(name):
    operator, _, arguments = _OPERATORS[name]

    def run(scores):
        return operator(scores, *arguments, temperature=0.7, hard=True)

    torch.compiler.reset()
    compiled = torch.compile(run, fullgraph=True, backend="aot_eager")
    results = []
    for function in (run, compiled):
        scores = _scores()[1:].requires_grad_()
        result = function(scores)
        results.append((result, torch.autograd.grad(_linear(result), scores)[0]))
    for eager, other in zip(*results, strict=True):
        torch.testing.assert_close(other, eager)


def test_a_gradient_of_k_is_the_soft_one():
    k = torch.tensor(1.5, requires_grad=True)
    scores = torch.tensor([3.0, 1.0, 2.0])
    by_hard, by_soft = (
        torch.autograd.grad(so.soft_topk(scores, k, hard=hard)[2], k)[0] for hard in (True, False)
    )
    assert torch.equal(by_hard, by_soft)


@pytest.mark.parametrize("operator", [so.hard.sort, lambda x, **o: so.hard.quantile(x, 0.4, **o)])
def test_hard_sort_and_quantile_keep_their_gradient(operator):
    scores = torch.randn(3, 7, dtype=torch.float64, requires_grad=True)
    mask = torch.rand(3, 7) < 0.8
    for options in ({}, {"mask": mask}, {"dim": 0}, {"dim": None}):
        assert torch.autograd.gradcheck(
            lambda x, options=options: operator(x, **options).nan_to_num(0, 0, 0), scores
        )


def test_hard_sort_is_torch_sort():
    generator = torch.Generator().manual_seed(0)
    scores = torch.randint(4, (5, 9), generator=generator).double().requires_grad_()  # ties
    upstream = torch.randn(5, 9, generator=generator, dtype=torch.float64)
    ours, theirs = so.hard.sort(scores), scores.sort(dim=-1, stable=True).values
    assert torch.equal(ours, theirs)
    gradients = [torch.autograd.grad(v, scores, upstream)[0] for v in (ours, theirs)]
    assert torch.equal(*gradients)
    mask = scores > 0
    (masked,) = torch.autograd.grad(
        so.hard.sort(scores, mask=mask).nan_to_num(0, 0, 0).sum(), scores
    )
    assert torch.equal(masked, mask.double())

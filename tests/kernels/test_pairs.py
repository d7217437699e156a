"""Sums over pairs by the compiled kernel, against plain torch in float64, for every level."""

import math

import pytest
import torch

import softorder as so
from softorder.kernels import _native
from softorder.kernels.pairs import Weighing, cpu, reference
from softorder.losses import _pair_sums
from tests.machines.cases.pairs import problem


@pytest.mark.parametrize("hinge", [False, True])
@pytest.mark.parametrize("weighing", Weighing)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sums_and_gradient_are_those_of_plain_torch(level, dtype, weighing, hinge):
    for n in (1, 5, 17, 64, 700):
        lists, first = problem(dtype, n), max(1, n // 3)
        given = weighing, first, hinge, True
        expected, slopes = reference.pair_sums(*(v.double() for v in lists), *given)
        with _native.use("native"), _native.use_level(level):
            found, gradient = cpu.pair_sums(*lists, *given)
        narrow = dtype == torch.float32
        torch.testing.assert_close(found, expected, rtol=5e-7 if narrow else 1e-14, atol=0)
        limit = (2e-6 if narrow else 1e-14) * slopes.abs().amax().item()
        torch.testing.assert_close(gradient.double(), slopes, rtol=0, atol=limit)


def test_threads_of_a_row_find_the_same():
    lists = problem(torch.float64, 1500)
    given = *(v[:1] if v.dim() == 2 else v for v in lists), Weighing.BOTH, 400, False, True
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = cpu.pair_sums(*given)
        torch.set_num_threads(3)
        several = cpu.pair_sums(*given)
    finally:
        torch.set_num_threads(before)
    torch.testing.assert_close(several, one, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(
    "criterion",
    [
        so.losses.PairwiseLoss("hinge", temperature=0.5),
        *(so.losses.LambdaLoss(w, k) for w in ("ndcg1", "ndcg2", "ndcg2++") for k in (None, 3)),
        so.losses.LambdaLoss("lambdarank", 3, temperature=0.5),
    ],
    ids=repr,
)
@pytest.mark.parametrize("weighted", [False, True])
def test_losses_are_those_of_plain_torch(criterion, weighted):
    x, grades, _, scores, *_ = problem(torch.float64, 20)
    scores, relevance = scores.clone().requires_grad_(), grades.clamp(min=0)
    weights = torch.rand(x.shape, dtype=torch.float64) if weighted else None
    found = {}
    for kind in ("native", "torch"):
        with _native.use(kind):
            before = _native.calls["pairs"]
            loss = criterion(scores, relevance, None, None, weights)
            (slopes,) = torch.autograd.grad(loss, scores, create_graph=True)
            (bent,) = torch.autograd.grad(slopes.square().sum(), scores)
            found[kind] = loss, slopes, bent
            assert _native.calls["pairs"] - before == (kind == "native")
    torch.testing.assert_close(found["native"], found["torch"], rtol=1e-11, atol=1e-13)


def test_small_losses_keep_their_digits():
    x = torch.tensor([[30.0, 0.0]])
    asked = _pair_sums.Asked(torch.tensor([[1.0, 0.0]]), None)
    (found, *_), gradient = asked.of(x, slopes=True)
    expected = math.log1p(math.exp(-30))
    assert found.item() == pytest.approx(expected, rel=1e-6)
    assert gradient[0].tolist() == pytest.approx([-expected, expected], rel=1e-6)


def test_what_cannot_be_compared_stays_in_its_list():
    scores = torch.tensor([[math.nan, 1.0, 2.0], [3.0, 1.0, 2.0], [math.inf, 1.0, 2.0]])
    relevance = torch.tensor([2.0, 1.0, 0.0]).expand(3, 3)
    found = {}
    for kind in ("native", "torch"):
        with _native.use(kind):
            found[kind] = so.losses.LambdaLoss(reduction="none")(scores, relevance)
    torch.testing.assert_close(found["native"], found["torch"], equal_nan=True)
    assert found["native"].isnan().tolist() == [True, False, False]

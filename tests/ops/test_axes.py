"""Several axes for operators and losses that the laws do not meet, and numbers that kept theirs."""

import pytest
import torch

import softorder as so

_DIM = (0, 2)


def _random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _generator():
    return torch.Generator().manual_seed(0)


def _joined(value):
    return value.movedim(_DIM, (-2, -1)).flatten(-2)


_X = _random(2, 3, 4)
_MASK = _random(2, 3, 4, seed=1) < 1
_TARGET = so.hard.topk(_X, 2, dim=_DIM)
_PLACES = so.hard.rank(_X, dim=_DIM).long() - 1
_RELEVANCE = _random(2, 3, 4, seed=2).abs()
_TAU = torch.tensor([0.3, 0.6, 1.2], dtype=torch.float64)

#: of scores, the axes, what makes one axis of them, and more options
_CALLS = {
    "fsum": lambda x, dim, one, **o: so.fsum(x, _X[0], dim=dim, **o),
    "fsum_inverse": lambda x, dim, one, **o: so.fsum_inverse(
        x, torch.tensor([1.0, 3.0]), dim=dim, **o
    ),
    "hard.permutation": lambda x, dim, one, temperature=None, **o: so.hard.permutation(
        x, k=2, dim=dim, **o
    ),
    "perturbed_permutation": lambda x, dim, one, **o: so.perturbed_permutation(
        x, k=2, dim=dim, samples=3, generator=_generator(), **o
    ),
    "fenchel_young": lambda x, dim, one, **o: so.losses.fenchel_young(
        x, one(_TARGET), dim=dim, **o
    ),
    "perturbed_fenchel_young": lambda x, dim, one, **o: so.losses.perturbed_fenchel_young(
        x, one(_TARGET), dim=dim, samples=3, generator=_generator(), **o
    ),
    "permutation_cross_entropy": lambda x, dim, one, **o: so.losses.permutation_cross_entropy(
        x, one(_PLACES), dim=dim, **o
    ),
    "calibrate_temperature": lambda x, dim, one, temperature=None, **o: so.calibrate_temperature(
        x, 3, dim=dim, **o
    ),
}


@pytest.mark.parametrize("call", _CALLS.values(), ids=_CALLS)
def test_several_axes_are_one(call):
    for mask in (None, _MASK):
        if mask is not None and call is _CALLS["permutation_cross_entropy"]:
            continue  # the places are those without a mask
        joined = None if mask is None else _joined(mask)
        found = call(_X, _DIM, lambda v: v, mask=mask, temperature=_TAU)
        expected = call(_joined(_X), -1, _joined, mask=joined, temperature=_TAU)
        torch.testing.assert_close(found, expected)
    kept = call(_X, _DIM, lambda v: v, temperature=_TAU.view(1, 3, 1))
    torch.testing.assert_close(kept, call(_X, _DIM, lambda v: v, temperature=_TAU))


def test_losses_of_every_score_come_back_where_it_is():
    options = {"temperature": _TAU, "reduction": "none"}
    found = so.losses.permutation_cross_entropy(_X, _PLACES, dim=_DIM, **options)
    expected = so.losses.permutation_cross_entropy(_joined(_X), _joined(_PLACES), **options)
    torch.testing.assert_close(_joined(found), expected)


@pytest.mark.parametrize("loss", [so.losses.NDCGLoss, so.losses.MRRLoss, so.losses.RecallAtK])
def test_ranking_losses(loss):
    found = loss(2, dim=_DIM, reduction="none")(_X, _RELEVANCE, _MASK)
    expected = loss(2, reduction="none")(_joined(_X), _joined(_RELEVANCE), _joined(_MASK))
    torch.testing.assert_close(found, expected)
    kept = loss(2, temperature=_TAU.unsqueeze(-1))(_joined(_X), _joined(_RELEVANCE))
    rows = loss(2, temperature=_TAU)(_joined(_X), _joined(_RELEVANCE))
    torch.testing.assert_close(kept, rows)


def test_samples_of_several_axes():
    probs = so.soft_topk(_X, 3, dim=_DIM)
    x = so.sampling.sample(probs, dim=_DIM, sample_shape=(5,), generator=_generator())
    assert x.shape == (5, 2, 3, 4)
    assert (x.sum((1, 3)) == 3).all()


def test_a_sort_of_everything_is_in_order():
    assert torch.equal(so.hard.sort(_X, dim=None).flatten(), _X.flatten().sort().values)
    assert (so.soft_sort(_X, dim=None).flatten().diff() >= 0).all()


def test_classes_and_matrices_keep_their_axes():
    x, y = _random(3, 5, seed=3), torch.tensor([0, 4, 2])
    for loss in (
        lambda tau: so.losses.top_k_cross_entropy(x, y, [0.5, 0.5], temperature=tau),
        lambda tau: so.losses.smooth_top_k(x, y, 2, temperature=tau),
        lambda tau: so.perturbed_topk(x, 2, temperature=tau, generator=_generator()),
    ):
        torch.testing.assert_close(loss(_TAU.unsqueeze(-1)), loss(_TAU))
    square = _random(3, 4, 4, seed=4)
    kept = so.sinkhorn(square, temperature=_TAU.view(3, 1, 1))
    torch.testing.assert_close(kept, so.sinkhorn(square, temperature=_TAU))


@pytest.mark.parametrize("shape", [(3, 2), (2, 1), (1, 3, 1)])
def test_a_shape_that_is_neither_is_refused(shape):
    for name in ("k", "temperature"):
        numbers = {"k": 2, name: torch.ones(shape)}
        with pytest.raises(ValueError, match=f"{name} must broadcast over the rows of scores"):
            so.soft_topk(_X[0], **numbers)
    with pytest.raises(ValueError, match=r"broadcast to \(1, 3, 1\), but got shape \(2, 3, 1\)"):
        so.soft_topk(_X, torch.ones(2, 3, 1), dim=_DIM)

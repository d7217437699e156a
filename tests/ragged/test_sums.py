"""Orders of rows of different lengths by F-sums that read the rows where they are."""

import math
from functools import partial
from itertools import pairwise

import pytest
import torch

import softorder as so
from softorder.kernels import _native
from softorder.kernels._density_numbers import number_of
from softorder.kernels.ragged import bucketing
from tests.ragged.rows import LENGTHS, padded, ragged

_AGAIN = pytest.mark.slow  # another density, the same code
_SMOOTH = ("logistic", *(pytest.param(name, marks=_AGAIN) for name in ("normal", "cauchy")))
_smooth = pytest.mark.parametrize("method", _SMOOTH)


def _places(offsets):
    generator = torch.Generator().manual_seed(5)
    return torch.cat([torch.randperm(int(n), generator=generator) for n in offsets.diff()])


def _rank(values, offsets, **options):
    return so.ragged.soft_rank(values, offsets, **options)


def _sort(values, offsets, **options):
    return so.ragged.soft_sort(values, offsets, **options)


def _loss(values, offsets, **options):
    return so.ragged.permutation_cross_entropy(values, offsets, _places(offsets), **options)


def _matrix_of(call, values, offsets, **options):
    """The same of padded rows with a mask."""
    matrix, mask = padded(values, offsets)
    options["mask"] = mask
    if call is _loss:
        places = torch.zeros(mask.shape, dtype=torch.int64).masked_scatter(mask, _places(offsets))
        losses = so.losses.permutation_cross_entropy
        return losses(matrix, places, reduction="none", **options)[mask]
    operator = so.soft_rank if call is _rank else so.soft_sort
    return operator(matrix, **options)[mask]


_every = pytest.mark.parametrize("call", [_rank, _sort, _loss])


@pytest.fixture
def no_buckets(monkeypatch):
    def refuse(*_):
        raise AssertionError("rows were padded")

    monkeypatch.setattr(bucketing, "_bucket", refuse)


def _both_orders(result, values, temperature):
    weights = torch.linspace(-1, 1, len(result), dtype=result.dtype)
    first = torch.autograd.grad((result * weights).sum(), (values, temperature), create_graph=True)
    mixed = (first[0] * weights).sum() + first[1].sum()
    return result, *first, *torch.autograd.grad(mixed, (values, temperature))


@_smooth
@_every
@pytest.mark.parametrize("descending", [False, True])
def test_values_and_both_derivatives_are_those_of_padded_rows(call, method, descending, no_buckets):
    values, offsets = ragged()
    temperature = torch.linspace(0.2, 0.9, len(LENGTHS), dtype=torch.float64)
    found = []
    for way in (call, partial(_matrix_of, call)):
        given, tau = values.clone().requires_grad_(), temperature.clone().requires_grad_()
        result = way(given, offsets, method=method, temperature=tau, descending=descending)
        found.append(_both_orders(result, given, tau))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-11, atol=1e-9)
    assert torch.equal(found[0][0], found[1][0])  # the same sums, bit by bit


@_smooth
@_every
def test_infinities_nan_and_the_largest_numbers_stay_in_their_rows(call, method):
    values, offsets = ragged((4, 0, 5, 3, 6, 2, 1, 4))
    most = torch.finfo(torch.float64).max
    values[0], values[5], values[9], values[13] = math.inf, -math.inf, math.nan, most
    values[18], values[20] = -most, -math.inf
    values.requires_grad_()
    found = call(values, offsets, method=method, temperature=0.3)
    (gradient,) = torch.autograd.grad(found[found.isfinite()].sum(), values)
    for begin, end in pairwise(offsets):
        own, alone = slice(begin, end), values.detach()[begin:end].clone().requires_grad_()
        if call is _loss:
            losses = so.losses.permutation_cross_entropy
            options = {"reduction": "none", "method": method, "temperature": 0.3}
            expected = losses(alone, _places(offsets)[own], **options)
        else:
            operator = so.soft_rank if call is _rank else so.soft_sort
            expected = operator(alone, method=method, temperature=0.3)
        torch.testing.assert_close(found[own], expected, rtol=1e-12, atol=0, equal_nan=True)
        if len(alone):
            (slope,) = torch.autograd.grad(expected[expected.isfinite()].sum(), alone)
            torch.testing.assert_close(gradient[own], slope, rtol=1e-9, atol=1e-12)


def test_an_oracle_of_one_pair_after_the_other():
    values, offsets = ragged((5, 0, 1, 40), dtype=torch.float32)
    found = so.ragged.soft_rank(values, offsets, method="logistic", temperature=0.3)
    expected = [
        0.5 + torch.sigmoid((x - row).double() / 0.3).sum()
        for row in values.tensor_split(offsets[1:-1])
        for x in row
    ]
    torch.testing.assert_close(found, torch.stack(expected).float(), rtol=1e-6, atol=0)


@_every
def test_gradients_of_both_orders(call):
    values, offsets = ragged((3, 0, 2, 1))
    tau = torch.tensor([0.5, 1.0, 0.7, 1.0], dtype=torch.float64)
    inputs = [v.requires_grad_() for v in (values, tau)]

    def function(values, tau):
        return call(values, offsets, method="normal", temperature=tau)

    assert torch.autograd.gradcheck(function, inputs)
    assert torch.autograd.gradgradcheck(function, inputs, atol=1e-4)


@pytest.mark.parametrize(
    "call", [_rank, *(pytest.param(call, marks=_AGAIN) for call in (_sort, _loss))]
)
def test_one_graph(call):
    values, offsets = ragged((3, 0, 2, 7))
    places = _places(offsets)

    def function(values, tau):
        if call is _loss:
            loss = so.ragged.permutation_cross_entropy
            return loss(values, offsets, places, method="logistic", temperature=tau)
        return call(values, offsets, method="logistic", temperature=tau)

    found = []
    for way in (function, torch.compile(function, fullgraph=True, backend="aot_eager")):
        given, tau = values.clone().requires_grad_(), torch.ones(4).double().requires_grad_()
        result = way(given, tau)
        found.append((result, *torch.autograd.grad(result.square().sum(), (given, tau))))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("call", [_rank, _sort])
def test_a_long_row_among_short_ones(call):
    """It gets all threads, and the others are shared out by their number of scores."""
    lengths = [*(7, 90, 0, 1) * 100, 40_000, *(30, 5) * 100]
    values, offsets = ragged(lengths, dtype=torch.float32)
    threads, found = torch.get_num_threads(), []
    try:
        for count in (1, 4):
            torch.set_num_threads(count)
            found.append(call(values, offsets, method="logistic", temperature=0.3))
    finally:
        torch.set_num_threads(threads)
    torch.testing.assert_close(*found, rtol=1e-6, atol=1e-6)
    alone = values[offsets[400] : offsets[401]]
    operator = so.soft_rank if call is _rank else so.soft_sort
    alone = operator(alone, method="logistic", temperature=0.3)
    torch.testing.assert_close(found[0][offsets[400] : offsets[401]], alone, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("method", ["laplace", *_SMOOTH, "uniform"])
def test_many_points_and_levels(method, no_buckets):
    values, offsets = ragged((3, 0, 1, 17, 40, 2))
    values[5] = math.inf
    values.requires_grad_()
    points = torch.linspace(-2, 2, 7, dtype=torch.float64)[torch.randperm(7)]
    points[2] = math.inf
    levels = torch.tensor([0.5, 2.0, 0.2, 1.3, 9.5, 0.9], dtype=torch.float64)
    options = {"method": method, "temperature": 0.4}
    sums = so.ragged.fsum(values, offsets, points, **options)
    roots = so.ragged.fsum_inverse(values, offsets, levels, **options)
    (slope,) = torch.autograd.grad(sums.sum() + roots[roots.isfinite()].sum(), values)
    for row, x in enumerate(values.detach().tensor_split(offsets[1:-1])):
        if not len(x):
            assert (sums[row] == 0).all()
            assert roots[row].isnan().all()
            continue
        x = x.clone().requires_grad_()
        below = so.fsum(x, points, **options)
        at = so.fsum_inverse(x, levels.clamp(max=len(x)), **options)
        torch.testing.assert_close(sums[row], below)
        torch.testing.assert_close(roots[row], at)
        (own,) = torch.autograd.grad(below.sum() + at[at.isfinite()].sum(), x)
        torch.testing.assert_close(slope[offsets[row] : offsets[row + 1]], own)


@pytest.mark.parametrize("density", so.densities.BUILT_IN.values(), ids=lambda d: d.name)
@pytest.mark.parametrize(("derivative", "moment"), [(0, 0), (1, 1)])
def test_the_kernel_and_one_row_after_the_other_agree(density, derivative, moment):
    """Rests, weights, counts, and targets in rows of other lengths than the sources."""
    values, offsets = ragged((4, 0, 9, 1, 33))
    targets, ends = ragged((2, 5, 0, 7, 40), seed=1)
    sources, rest = so.ragged.hard.sort(values, offsets), 1e-9 * torch.rand(len(values)).double()
    targets = so.ragged.hard.sort(targets, ends)
    tau = torch.linspace(0.3, 2, 5, dtype=torch.float64)
    counts = torch.tensor([3, 0, 9, 0, 30]), torch.tensor([2, 4, 0, 7, 41])
    weights = torch.rand(len(values), dtype=torch.float64)
    numbers = sources, rest, targets, None, weights, tau, *counts, offsets, ends
    levels = torch.cat([torch.linspace(0, int(n), int(n)) for n in ends.diff()]).double()
    found = []
    for kind in _native.KINDS:
        before = dict(_native.calls)
        with _native.use(kind):
            options = number_of(density), derivative, moment
            sums = torch.ops.softorder.ragged_fsum(*numbers, *options)
            given = sources, levels, tau, counts[0], offsets, ends, options[0]
            centre, beside = torch.ops.softorder.ragged_fsum_invert(*given)
        ran = {name for name, n in _native.calls.items() if n != before.get(name, 0)}
        assert ran == ({"fsum", "fsum_invert"} if kind == "native" else set())
        found.append((sums, centre + beside))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)

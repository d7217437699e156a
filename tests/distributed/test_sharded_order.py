"""Soft ranks and sorts of rows that are cut among ranks: as in one process, and what they cost."""

import math

import pytest
import torch
from torch.distributed.tensor.debug import CommDebugMode

import softorder as so
from softorder.kernels import _native
from softorder.kernels.order.ranges import divide
from softorder.kernels.shards import Shards
from softorder.relaxations import sharded_order
from tests import bank

_BOUND = {torch.float64: 1e-12, torch.float32: 2e-6}
_NAMES = pytest.mark.parametrize("name", ["soft_rank", "soft_sort"])
_DIRECTIONS = pytest.mark.parametrize("descending", [False, True], ids=["ascending", "descending"])
_INF, _NAN = math.inf, math.nan


# ---- on every rank ------------------------------------------------------------------------------


def _own(row, sizes):
    return row.split(sizes, -1)[Shards().rank]


def _call(name, scores, temperature, descending, upstream, sizes):
    """The result for this rank's piece, its gradient, and that of the temperature."""
    x = _own(scores, sizes).clone().requires_grad_()
    tau = temperature.clone().requires_grad_()
    result = getattr(sharded_order, name)(x, tau, descending, Shards())
    return result.detach(), *_gradients(result, (x, tau), _own(upstream, sizes))


def _gradients(result, inputs, upstream):
    return torch.autograd.grad(result, inputs, upstream, allow_unused=True, materialize_grads=True)


def _counted(name, scores, temperature, upstream, sizes):
    """The sizes of all collectives, there and back."""
    x = _own(scores, sizes).clone().requires_grad_()
    tau = temperature.clone().requires_grad_()
    with _Sizes() as there:
        result = getattr(sharded_order, name)(x, tau, False, Shards())
    with _Sizes() as back:
        _gradients(result, (x, tau), _own(upstream, sizes))
    return there.sizes, back.sizes


class _Sizes(CommDebugMode):
    """How much this rank gets in every collective: places by exchanges, and numbers otherwise."""

    def __init__(self):
        super().__init__()
        self.sizes = {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        before = self.get_total_counts()
        result = super().__torch_dispatch__(function, types, args, kwargs)
        if self.get_total_counts() > before:
            exchange = "alltoall" in str(function)  # of places, with one number or several
            arrived = torch.utils._pytree.tree_leaves(args[0])
            size = sum(v.shape[0] if exchange else v.numel() for v in arrived)
            self.sizes.setdefault("exchange" if exchange else "told", []).append(size)
        return result


def _ranges(scores, sizes):
    found = divide(_own(scores, sizes), False, Shards())
    return [row[:count] for row, count in zip(found.x, found.count.flatten().tolist(), strict=True)]


def _twice(name):
    x = torch.ones(1, 3, dtype=torch.float64, requires_grad=True)
    result = getattr(sharded_order, name)(x, torch.ones(()).double(), False, Shards())
    (gradient,) = torch.autograd.grad(result.sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="no second derivatives"):
        gradient.sum().backward()


# ---- in one process -----------------------------------------------------------------------------


def _alone(name, scores, temperature, descending, upstream):
    """The same by one process, in float64 and in plain torch, which leaves nothing out."""
    x, tau = scores.double().clone().requires_grad_(), temperature.clone().requires_grad_()
    with _native.use("torch"):
        result = getattr(so, name)(x, temperature=tau, descending=descending)
        return result.detach(), *_gradients(result, (x, tau), upstream.double())


def _check(team, name, scores, temperature, descending, sizes):
    """All of it, relative to n for ranks, and to the larger of t and τ for sorted values."""
    upstream = torch.randn(scores.shape, generator=torch.Generator().manual_seed(1)).to(scores)
    answers = team.run(_call, name, scores, temperature, descending, upstream, sizes)
    result, gradient, heat = _alone(name, scores, temperature, descending, upstream)
    n, bound = max(scores.shape[-1], 1), _BOUND[scores.dtype]
    tau = temperature.expand(scores.shape[:-1]).unsqueeze(-1)
    found = torch.cat([answer[0] for answer in answers], -1)
    assert found.dtype == scores.dtype
    unit = n if name == "soft_rank" else torch.maximum(result.abs(), tau).nan_to_num(1, 1, 1)
    _assert_near(found / unit, result / unit, bound)

    scale = (1 / tau if name == "soft_rank" else 1) * upstream.abs().amax(-1, keepdim=True)
    unit = torch.maximum(gradient.abs().amax(-1, keepdim=True), scale)
    _assert_near(torch.cat([answer[1] for answer in answers], -1) / unit, gradient / unit, bound)
    if temperature.dim() == 0:
        unit = unit.sum()
    unit = torch.maximum(heat.abs(), n * unit.squeeze(-1))
    for answer in answers:
        _assert_near(answer[2] / unit, heat / unit, bound)
    return found


def _assert_near(found, expected, bound):
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=bound, equal_nan=True)


def _pieces(team, n, kind):
    """How many scores every rank has; uneven pieces may be empty."""
    size = team.size
    if kind == "even":
        return [n // size + (rank < n % size) for rank in range(size)]
    if kind == "one has all":
        return [n * (rank == size // 2) for rank in range(size)]
    ends = sorted(
        (17 * rank * rank + 5) % (n + 1) for rank in range(size - 1)
    )  # uneven, some empty
    return [b - a for a, b in zip([0, *ends], [*ends, n], strict=True)]


def _bank(n, dtype, temperatures=bank.TEMPERATURES):
    labels = [(family, tau) for family in bank.FAMILIES for tau in temperatures]
    rows = torch.stack([torch.from_numpy(bank.row(family, n)) for family, _ in labels])
    return rows.to(dtype), torch.tensor([tau for _, tau in labels], dtype=torch.float64)


# ---- values and gradients -----------------------------------------------------------------------


@_NAMES
@_DIRECTIONS
@pytest.mark.parametrize("dtype", _BOUND, ids=str)
def test_the_bank(team, name, descending, dtype):
    scores, temperature = _bank(60, dtype)
    found = _check(team, name, scores, temperature, descending, _pieces(team, 60, "uneven"))
    if name == "soft_sort":
        steps = found.diff(dim=-1)
        assert (steps <= 0).all() if descending else (steps >= 0).all()


@_NAMES
@pytest.mark.parametrize("kind", ["even", "uneven", "one has all"])
@pytest.mark.parametrize("n", [1, 2, 7, 300])
def test_pieces_of_any_size(team, name, kind, n):
    scores, temperature = _bank(n, torch.float64, temperatures=(1e-3, 0.3, 100.0))
    _check(team, name, scores, temperature, False, _pieces(team, n, kind))


@_NAMES
@_DIRECTIONS
def test_scores_that_are_not_finite(team, name, descending):
    """+inf is certain, -inf is absent, and a NaN on any rank spoils its row for all."""
    scores = torch.tensor(
        [
            [1.0, _INF, 0.5, -_INF, 2.0, 0.5, _INF, -1.0],
            [-_INF, -_INF, 0.5, -_INF, -_INF, 3.0, -_INF, -_INF],
            [-_INF] * 8,
            [_INF] * 8,
            [_INF, -_INF] * 4,
            [1.0, _INF, 0.5, -_INF, 2.0, _NAN, 0.1, -1.0],
            [_NAN] * 8,
            [1.0, 2.0, 3.0, 4.0, _INF, _INF, _INF, _INF],
            [-_INF, -_INF, -_INF, -_INF, 4.0, 3.0, 2.0, 1.0],
        ],
        dtype=torch.float64,
    )
    temperature = torch.full((len(scores),), 0.7, dtype=torch.float64)
    for kind in ("even", "uneven"):
        _check(team, name, scores, temperature, descending, _pieces(team, 8, kind))


@_NAMES
def test_rows_on_several_axes_and_one_temperature(team, name):
    scores = torch.from_numpy(bank.row("normal", 2 * 3 * 40)).view(2, 3, 40)
    temperature = torch.tensor(0.3, dtype=torch.float64)
    _check(team, name, scores, temperature, True, _pieces(team, 40, "uneven"))


@_NAMES
@pytest.mark.parametrize("shape", [(0, 40), (3, 0), (0, 0)])
def test_nothing_at_all(team, name, shape):
    nothing, temperature = torch.empty(shape), torch.tensor(0.3, dtype=torch.float64)
    sizes = _pieces(team, shape[-1], "even")
    for size, answer in zip(
        sizes, team.run(_call, name, nothing, temperature, False, nothing, sizes), strict=True
    ):
        result, gradient, heat = answer
        assert result.shape == gradient.shape == (shape[0], size)
        assert heat == 0


@_NAMES
def test_long_rows(team, name):
    """Where sums over many scores must not lose digits."""
    n = 3000
    rows = [torch.from_numpy(bank.row(family, n)) for family in ("normal", "ties", "two_modes")]
    temperature = torch.tensor([1.0, 0.01, 10.0], dtype=torch.float64)
    _check(team, name, torch.stack(rows), temperature, False, _pieces(team, n, "even"))


@_NAMES
def test_second_derivatives_are_refused(pair, name):
    pair.run(_twice, name)


# ---- what it costs ------------------------------------------------------------------------------


def _skewed(n):
    """Rows that sampling may divide badly: the bank, and what is in order, or in the other."""
    ordered = torch.arange(n, dtype=torch.float64)
    rows = [torch.from_numpy(bank.row(family, n)) for family in bank.FAMILIES]
    steps = (ordered > 0.9 * n).double()
    return torch.stack([*rows, ordered, -ordered, ordered**8, steps, ordered % 7])


@pytest.mark.parametrize("kind", ["even", "uneven", "one has all"])
def test_no_range_is_much_longer_than_others(team, kind):
    n, size = 1000, team.size
    scores = _skewed(n)
    answers = team.run(_ranges, scores, _pieces(team, n, kind))
    for row, ranges in zip(scores, zip(*answers, strict=True), strict=True):
        torch.testing.assert_close(torch.cat(ranges), row.sort().values, rtol=0, atol=0)
        most = 2 if kind == "uneven" else 1.5
        assert max(len(piece) for piece in ranges) <= most * n / size + size**2


@_NAMES
@pytest.mark.parametrize("tau", [1e-3, 1.0, 1e3])
def test_two_exchanges_each_way_and_few_numbers_besides(team, name, tau):
    """What a rank gets is O(n/ranks) in the exchanges, and O(ranks²) otherwise; of every row."""
    n, size, rows = 600, team.size, 2
    temperature = torch.tensor(tau, dtype=torch.float64)
    for row in _skewed(n)[[0, 6, 7, 11]]:
        scores, sizes = row.expand(rows, n).clone(), _pieces(team, n, "even")
        for ways in team.run(_counted, name, scores, temperature, scores.cos(), sizes):
            for way in ways:
                assert len(way["exchange"]) == 2
                assert max(way["exchange"]) <= rows * (1.5 * n / size + size**2)
                assert max(way["told"]) <= rows * 9 * size**2

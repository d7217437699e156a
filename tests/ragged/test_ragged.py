"""Rows of different lengths have the results that they have in a padded matrix with a mask."""

import math
from functools import partial

import pytest
import torch

import softorder as so
from softorder.kernels import _native
from tests.ragged.rows import LENGTHS, padded, ragged

_SHORT = (3, 0, 1, 5, 2, 9)  # for methods that are slow
_DENSITIES = ("laplace", "logistic", "normal", "cauchy", "uniform")
_OPERATORS = ("soft_topk", "log_soft_topk", "soft_rank", "soft_sort", "soft_quantile")
_SETTINGS = {
    "soft_topk": {"k": 2},
    "log_soft_topk": {"k": 1.5},
    "soft_quantile": {"q": torch.tensor([0.13, 0.6], dtype=torch.float64)},
}


def _served():
    """Every method of every operator; the densities but for one are slow, in each of them."""
    for row in so.methods():
        if row.operator in _OPERATORS:
            again = row.name in _DENSITIES[1:4] and row.operator != "soft_topk"
            marks = [pytest.mark.slow] if again else []
            name = f"{row.operator}-{row.name}"
            yield pytest.param(row.operator, row.name, id=name, marks=marks)


def _both(operator, values, offsets, **options):
    """The result by `so.ragged` and by padding, one behind the other or for every row."""
    matrix, mask = padded(values, offsets)
    settings = _SETTINGS.get(operator, {}) | options
    ours = getattr(so.ragged, operator)(values, offsets, **settings)
    theirs = getattr(so, operator)(matrix, mask=mask, **settings)
    return ours, theirs if operator == "soft_quantile" else theirs[mask]


def _gradients(operator, values, offsets, **options):
    given = values.clone().requires_grad_()
    upstream = None
    for result in _both(operator, given, offsets, **options):
        finite = torch.where(result.isfinite(), result, 0.0)
        if upstream is None:
            upstream = torch.linspace(-1, 1, finite.numel()).reshape(finite.shape).to(finite)
        yield torch.autograd.grad((finite * upstream).sum(), given)[0]


@pytest.mark.parametrize(("operator", "method"), list(_served()))
def test_ragged_is_padded_with_a_mask(operator, method):
    lengths = LENGTHS if method in _DENSITIES else _SHORT
    values, offsets = ragged(lengths)
    options = {"method": method, "temperature": 0.4}
    if method in ("sorted_soft", "network", "sequential_softmax") and operator == "log_soft_topk":
        options["k"] = 2
    ours, theirs = _both(operator, values, offsets, **options)
    torch.testing.assert_close(ours, theirs, rtol=1e-7, atol=1e-7, equal_nan=True)
    ours, theirs = _gradients(operator, values, offsets, **options)
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("operator", _OPERATORS)
def test_other_formats(operator, dtype):
    values, offsets = ragged(dtype=dtype)
    ours, theirs = _both(operator, values, offsets, temperature=0.4)
    assert ours.dtype == dtype
    eps = torch.finfo(dtype).eps
    torch.testing.assert_close(ours, theirs, rtol=20 * eps, atol=20 * eps, equal_nan=True)


@pytest.mark.parametrize("operator", _OPERATORS)
def test_infinities_and_nan_stay_in_their_rows(operator):
    values, offsets = ragged()
    clean, _ = _both(operator, values, offsets, temperature=0.4)
    values[offsets[3]], values[offsets[4] + 1] = math.inf, -math.inf
    values[offsets[7]], values[offsets[9]] = math.inf, math.nan
    ours, _ = _both(operator, values, offsets, temperature=0.4)
    for row in range(len(LENGTHS)):
        here = values[offsets[row] : offsets[row + 1]]
        own = slice(offsets[row], offsets[row + 1])
        own = (..., row) if operator == "soft_quantile" else own
        if here.isfinite().all():
            torch.testing.assert_close(
                ours[own], clean[own], rtol=1e-12, atol=1e-12, equal_nan=True
            )
        else:  # alone, in a row without padding
            settings = _SETTINGS.get(operator, {})
            alone = getattr(so, operator)(here, temperature=0.4, **settings)
            torch.testing.assert_close(ours[own], alone, rtol=1e-9, atol=1e-9, equal_nan=True)


@pytest.mark.parametrize("method", ["laplace", "uniform"])
@pytest.mark.parametrize("operator", _OPERATORS)
def test_numbers_of_every_row_and_their_gradients(operator, method):
    values, offsets = ragged()
    count, generator = len(LENGTHS), torch.Generator().manual_seed(1)
    numbers = {"temperature": 0.2 + torch.rand(count, generator=generator, dtype=torch.float64)}
    if operator in ("soft_topk", "log_soft_topk"):
        numbers["k"] = 5 * torch.rand(count, generator=generator, dtype=torch.float64)
    if operator == "soft_quantile":
        numbers["q"] = torch.rand(2, count, generator=generator, dtype=torch.float64)
    found = []
    for turn in (0, 1):
        given = {name: number.clone().requires_grad_() for name, number in numbers.items()}
        result = _both(operator, values, offsets, method=method, **given)[turn]
        finite = torch.where(result.isfinite(), result, 0.0)
        weights = torch.linspace(-1, 1, finite.numel(), dtype=torch.float64).reshape(finite.shape)
        found.append((result, *torch.autograd.grad((finite * weights).sum(), [*given.values()])))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-7, atol=1e-7, equal_nan=True)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("operator", ["soft_rank", "soft_sort"])
def test_the_other_direction(operator, descending):
    ours, theirs = _both(operator, *ragged(), descending=descending)
    torch.testing.assert_close(ours, theirs)


def test_the_smallest():
    ours, theirs = _both("soft_topk", *ragged(), largest=False)
    torch.testing.assert_close(ours, theirs)


def test_masks():
    values, offsets = ragged()
    takes_part = values > -0.5
    hidden = torch.where(takes_part, values, -math.inf)
    for operator in _OPERATORS:
        settings = _SETTINGS.get(operator, {})
        call = partial(getattr(so.ragged, operator), **settings)
        ours = call(values, offsets, mask=takes_part)
        torch.testing.assert_close(ours, call(hidden, offsets), rtol=0, atol=0, equal_nan=True)


def test_a_row_that_has_no_more_than_k_scores():
    values, offsets = ragged((2, 5, 0))
    p = so.ragged.soft_topk(values, offsets, 3)
    assert p[:2].tolist() == [1, 1]
    torch.testing.assert_close(p[2:].sum(), torch.tensor(3.0, dtype=torch.float64))
    p = so.ragged.soft_topk(values, offsets, 3, method="softsort")
    torch.testing.assert_close(p[:2], torch.ones(2, dtype=torch.float64))


@pytest.mark.parametrize("lengths", [(), (0,), (0, 0, 0), (1,), (1, 1)], ids=str)
def test_no_rows_no_scores_and_one(lengths):
    values, offsets = ragged(lengths)
    total = sum(lengths)
    assert so.ragged.soft_topk(values, offsets, 1).tolist() == [1] * total
    assert so.ragged.log_soft_topk(values, offsets, 1).tolist() == [0] * total
    assert so.ragged.soft_rank(values, offsets).tolist() == [1] * total
    assert so.ragged.soft_sort(values, offsets).tolist() == values.tolist()
    assert so.ragged.hard.rank(values, offsets).tolist() == [1] * total
    assert so.ragged.hard.sort(values, offsets).tolist() == values.tolist()
    assert so.ragged.hard.topk(values, offsets, 1).tolist() == [1] * total
    for median in (so.ragged.soft_median, partial(so.ragged.hard.quantile, q=0.5)):
        found = median(values, offsets)
        assert found.shape == (len(lengths),)
        assert found.isnan().all() if total == 0 else torch.equal(found, values)


@pytest.mark.parametrize("operator", ["soft_topk", "soft_rank", "soft_sort"])
def test_a_long_row_among_short_ones(operator):
    """More than one thread's fair part: it gets all threads, and the others are shared out."""
    lengths = [*(7, 90, 0, 1) * 300, 70_000, *(30, 5) * 300]
    values, offsets = ragged(lengths, dtype=torch.float32)
    settings = {"k": 0.9} if operator == "soft_topk" else {}
    call = partial(getattr(so.ragged, operator), temperature=0.3, **settings)
    found = call(values, offsets)
    for row in (0, 1, 3, 1199, 1200, 1201, len(lengths) - 1):
        own = slice(offsets[row], offsets[row + 1])
        alone = getattr(so, operator)(values[own], temperature=0.3, **settings)
        torch.testing.assert_close(found[own], alone, rtol=1e-4, atol=1e-5)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        torch.testing.assert_close(call(values, offsets), found, rtol=1e-4, atol=1e-5)
    finally:
        torch.set_num_threads(threads)


def test_offsets_of_32_bits():
    values, offsets = ragged()
    for operator in _OPERATORS:
        call = partial(getattr(so.ragged, operator), values, **_SETTINGS.get(operator, {}))
        ours, theirs = call(offsets=offsets.int()), call(offsets=offsets)
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0, equal_nan=True)


# ---- hard ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16], ids=str)
def test_hard_limits(dtype):
    values, offsets = ragged(dtype=dtype)
    values = (4 * values).round() / 4  # ties
    values[offsets[3]], values[offsets[4] + 1], values[offsets[9]] = math.inf, -math.inf, math.nan
    q = torch.tensor([0.0, 0.25, 0.5, 0.83, 1.0], dtype=torch.float64)
    quantiles = so.ragged.hard.quantile(values, offsets, q)
    found = {
        name: call(values, offsets)
        for name, call in {
            "topk": partial(so.ragged.hard.topk, k=2.5),
            "rank": so.ragged.hard.rank,
            "rank down": partial(so.ragged.hard.rank, descending=True),
            "sort": so.ragged.hard.sort,
            "sort down": partial(so.ragged.hard.sort, descending=True),
        }.items()
    }
    for row in range(len(LENGTHS)):
        own = slice(offsets[row], offsets[row + 1])
        x = values[own]
        if len(x) == 0:
            assert quantiles[:, row].isnan().all()
            continue
        alone = {
            "topk": so.hard.topk(x, min(2.5, len(x))),
            "rank": so.hard.rank(x),
            "rank down": so.hard.rank(x, descending=True),
            "sort": so.hard.sort(x),
            "sort down": so.hard.sort(x, descending=True),
        }
        for name, expected in alone.items():
            torch.testing.assert_close(found[name][own], expected, equal_nan=True)
        expected = so.hard.quantile(x, q)
        torch.testing.assert_close(quantiles[:, row], expected, equal_nan=True)


def test_the_gradient_of_a_hard_sort():
    values, offsets = ragged((3, 2))
    values.requires_grad_()
    (gradient,) = torch.autograd.grad(so.ragged.hard.sort(values, offsets)[[0, 4]].sum(), values)
    assert gradient.tolist() == [
        *(values[:3] == values[:3].min()).double().tolist(),
        *(values[3:] == values[3:].max()).double().tolist(),
    ]


# ---- derivatives, graphs, kernels ---------------------------------------------------------------

_FORMS = {
    "soft_topk": lambda v, o, k, t: so.ragged.soft_topk(v, o, k, temperature=t),
    "log_soft_topk": lambda v, o, k, t: so.ragged.log_soft_topk(v, o, k, temperature=t),
    "soft_rank": lambda v, o, k, t: so.ragged.soft_rank(v, o, temperature=t),
    "soft_sort": lambda v, o, k, t: so.ragged.soft_sort(v, o, temperature=t),
    "soft_quantile": lambda v, o, k, t: so.ragged.soft_quantile(v, o, 0.4, temperature=t)[[0, 2]],
}


@pytest.mark.parametrize("operator", _FORMS)
def test_both_orders_of_derivatives(operator):
    values, offsets = ragged((3, 0, 2))
    k = torch.tensor([1.3, 0.5, 0.8], dtype=torch.float64)
    tau = torch.tensor([0.5, 1.0, 0.7], dtype=torch.float64)
    inputs = [v.requires_grad_() for v in (values, k, tau)]
    call = partial(_FORMS[operator])
    assert torch.autograd.gradcheck(lambda v, k, t: call(v, offsets, k, t), inputs)
    assert torch.autograd.gradgradcheck(lambda v, k, t: call(v, offsets, k, t), inputs)


@pytest.mark.parametrize("operator", _FORMS)
def test_forward_mode(operator):
    values, offsets = ragged((3, 0, 2))
    k, tau = torch.full((3,), 0.8, dtype=torch.float64), torch.ones(3, dtype=torch.float64)
    call = partial(_FORMS[operator], o=offsets, k=k, t=tau)
    direction = torch.linspace(-1, 1, 5, dtype=torch.float64)
    _, moved = torch.func.jvp(call, (values,), (direction,))
    matrix = torch.func.jacrev(call)(values)
    torch.testing.assert_close(moved, matrix @ direction)


_AGAIN = pytest.mark.slow  # what repeats the code of others


@pytest.mark.parametrize(
    "operator",
    [
        "soft_topk",
        "soft_rank",
        *(pytest.param(name, marks=_AGAIN) for name in [*_FORMS][3:]),
        pytest.param("log_soft_topk", marks=_AGAIN),
    ],
)
def test_compile(operator):
    values, offsets = ragged((3, 0, 2, 7))
    k, tau = torch.full((4,), 0.8, dtype=torch.float64), torch.ones(4, dtype=torch.float64)
    compiled = torch.compile(_FORMS[operator], fullgraph=True, backend="aot_eager")
    found = []
    for call in (_FORMS[operator], compiled):
        inputs = [v.clone().requires_grad_() for v in (values, k, tau)]
        result = call(inputs[0], offsets, *inputs[1:])
        gradients = torch.autograd.grad(result.square().sum(), inputs, materialize_grads=True)
        found.append((result, *gradients))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("method", ["laplace", "uniform"])
@pytest.mark.parametrize("operator", _FORMS)
def test_kernels_and_their_references_agree(operator, method):
    values, offsets = ragged()
    values[offsets[3]], values[offsets[4] + 1] = math.inf, -math.inf
    k = torch.linspace(0, 5, len(LENGTHS), dtype=torch.float64)
    tau = torch.linspace(0.2, 2, len(LENGTHS), dtype=torch.float64)
    settings = {"method": method, **({"k": k} if "topk" in operator else {})}
    settings |= {"q": 0.3} if operator == "soft_quantile" else {}
    found = []
    for kind in _native.KINDS:
        before = sum(_native.calls.values())
        given, heat = values.clone().requires_grad_(), tau.clone().requires_grad_()
        with _native.use(kind):
            call = getattr(so.ragged, operator)
            result = call(given, offsets, temperature=heat, **settings)
            finite = torch.where(result.isfinite(), result, 0.0)
            gradients = torch.autograd.grad(finite.square().sum(), [given, heat])
        found.append((result, *gradients))
        assert (sum(_native.calls.values()) > before) == (kind == "native")
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-8, atol=1e-8, equal_nan=True)


@pytest.mark.parametrize(
    ("operator", "kernels"),
    [
        ("soft_topk", ("topk_forward", "topk_backward")),
        ("soft_rank", ("soft_rank_forward", "soft_rank_backward")),
        ("soft_sort", ("soft_sort_forward", "soft_sort_backward")),
    ],
)
def test_one_call_of_a_kernel_there_and_one_back(operator, kernels):
    values, offsets = ragged()
    values.requires_grad_()
    before = dict(_native.calls)
    getattr(so.ragged, operator)(values, offsets, **_SETTINGS.get(operator, {})).sum().backward()
    ran = {name: n - before.get(name, 0) for name, n in _native.calls.items()}
    assert {name: n for name, n in ran.items() if n} == dict.fromkeys(kernels, 1)


# ---- wrong arguments ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        ([1, 3, 5], "ascend from 0 to 5, the number of values, but got 1 at the beginning"),
        ([0, 3, 4], "ascend from 0 to 5, the number of values, but got 0 .* and 4 at the end"),
        ([0, 4, 3, 5], "ascend from 0 to 5, the number of values, but got 4 before 3"),
        ([[0, 5]], "one axis"),
        ([], "one axis"),
    ],
)
def test_wrong_offsets(offsets, message):
    with pytest.raises(ValueError, match=message):
        so.ragged.soft_rank(torch.zeros(5), torch.tensor(offsets, dtype=torch.int64))


def test_wrong_kinds():
    values, offsets = ragged((2, 3))
    with pytest.raises(TypeError, match="offsets must have the dtype int64 or int32"):
        so.ragged.soft_rank(values, offsets.float())
    with pytest.raises(TypeError, match="offsets must be a tensor of integers, but got list"):
        so.ragged.soft_rank(values, [0, 5])
    with pytest.raises(ValueError, match=r"values must have one axis.*\(1, 5\)"):
        so.ragged.soft_rank(values.unsqueeze(0), offsets)
    with pytest.raises(ValueError, match=r"temperature must broadcast over the rows.*\(2,\)"):
        so.ragged.soft_rank(values, offsets, temperature=torch.ones(3))
    with pytest.raises(ValueError, match="k must be between 0"):
        so.ragged.soft_topk(values, offsets, -1)
    with pytest.raises(ValueError, match="mask must broadcast"):
        so.ragged.soft_rank(values, offsets, mask=torch.ones(4, dtype=torch.bool))

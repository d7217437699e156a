"""soft_topk on scores as they are: half formats, any layout, masks. Nothing is copied."""

import math
from itertools import product

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

import softorder as so
from softorder.kernels import _native
from softorder.kernels._layout import layout_of
from tests.oracles.densities import BUILT_IN


def _in_turn(cases, others):
    """All pairs; by default every case with one of the others, in turn."""
    others = list(others)
    for i, case in enumerate(cases):
        for j, other in enumerate(others):
            marks = [] if i % len(others) == j else [pytest.mark.slow]
            yield pytest.param(case, other, marks=marks)


HALVES = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
METHODS = pytest.mark.parametrize("method", BUILT_IN)
BOTH = pytest.mark.parametrize("method", ["laplace", "logistic"])  # p by F, and by shifted odds


@pytest.fixture(autouse=True)
def native():
    with _native.use("native"):
        yield


@pytest.fixture
def at_level(level):
    with _native.use_level(level):
        yield


def _seeded(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def _results(scores, k, upstream, **options):
    """p, and the gradients of the scores, of k and of the temperature."""
    scores, numbers = scores.detach().requires_grad_(), (k, options.pop("temperature", 0.3))
    k, tau = (torch.as_tensor(v, dtype=torch.float64).requires_grad_() for v in numbers)
    p = so.soft_topk(scores, k, temperature=tau, **options)
    return p.detach(), *torch.autograd.grad(p, (scores, k, tau), upstream)


def _same(found, wanted, **tolerance):
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, equal_nan=True, **tolerance)


EXACT = {"rtol": 0, "atol": 0}


# ---- half formats -------------------------------------------------------------------------------


def _all_finite(dtype):
    """Every finite number of a half format."""
    numbers = torch.arange(-(2**15), 2**15, dtype=torch.int16).view(dtype)
    return numbers[numbers.isfinite()]


@HALVES
@BOTH
def test_every_number_is_read_and_rounded_as_torch_does(at_level, dtype, method):
    """p spans denormal and normal numbers of the format; gradients do, too."""
    scores = _all_finite(dtype)
    scores = scores[scores.abs() <= 65504]
    upstream = _seeded(len(scores), seed=1).to(dtype)
    options = {"method": method, "temperature": 2500.0}
    found = _results(scores, 20.0, upstream, **options)
    p, by_scores, *by_numbers = _results(scores.float(), 20.0, upstream.float(), **options)
    assert ((p > 0) & (p < torch.finfo(dtype).tiny)).any() or dtype == torch.bfloat16
    _same(found[:2], (p.to(dtype), by_scores.to(dtype)), **EXACT)
    _same(found[2:], by_numbers, rtol=1e-14, atol=0)  # sums, in other parts


@HALVES
@pytest.mark.parametrize(("n", "method"), list(_in_turn([1, 5, 16, 64, 100, 1500], BUILT_IN)))
def test_halves_are_floats_rounded_once(at_level, dtype, method, n):
    scores, upstream = (_seeded(6, n, seed=seed).to(dtype) for seed in (2, 3))
    scores[1, 0], scores[2, -1], scores[3, n // 2] = math.inf, -math.inf, math.nan
    scores[4] = torch.finfo(dtype).smallest_normal / 2
    k = torch.tensor([1.0, 1.0, 0.0, 1.0, 0.5, n])
    found = _results(scores, k, upstream, method=method)
    p, by_scores, *by_numbers = _results(scores.float(), k, upstream.float(), method=method)
    _same(found, (p.to(dtype), by_scores.to(dtype), *by_numbers), **EXACT)


@METHODS
def test_every_nan_is_one(method):
    """torch makes a NaN with all bits set of a half one."""
    scores = _seeded(6, 20)
    scores[2, 3] = torch.tensor(2**31 - 1, dtype=torch.int32).view(torch.float32)
    for k in (2.0, 20.0):
        p, by_scores, _, _ = _results(scores, k, torch.ones(6, 20), method=method)
        assert p.isnan().any(-1).tolist() == [False, False, True, False, False, False]
        assert (by_scores[2] == 0).all()  # nothing passes
        assert p[2].isnan().all()


@HALVES
def test_both_orders_in_half(dtype):
    """The formula that second derivatives come from computes in float32."""
    scores = _seeded(2, 6).to(dtype).requires_grad_()

    def second(x):
        p = so.soft_topk(x, 2, method="logistic")
        (first,) = torch.autograd.grad(p.square().sum(), x, create_graph=True)
        assert first.dtype == x.dtype
        return torch.autograd.grad(first.square().sum(), x)[0]

    wanted = second(scores.detach().float().requires_grad_())
    eps = 4 * torch.finfo(dtype).eps
    torch.testing.assert_close(second(scores).float(), wanted, rtol=eps, atol=eps)


# ---- layouts ------------------------------------------------------------------------------------

VIEWS = {
    "middle": lambda: (_seeded(3, 70, 21), 1),
    "short middle": lambda: (_seeded(2, 10, 5, 7), 1),
    "first": lambda: (_seeded(90, 37), 0),
    "transposed": lambda: (_seeded(100, 18).T, -1),
    "every other": lambda: (_seeded(6, 200)[:, ::2], -1),
    "every other row": lambda: (_seeded(12, 20)[::2], -1),
    "offset": lambda: (_seeded(8, 100)[1:, 3:77], -1),
    "expanded rows": lambda: (_seeded(1, 80).expand(5, 80), -1),
    "expanded scores": lambda: (_seeded(5, 1).expand(5, 40), -1),
    "permuted": lambda: (_seeded(3, 4, 5, 66).permute(2, 0, 3, 1), 2),
    "sliced and permuted": lambda: (_seeded(4, 6, 5, 30)[::2, 1:, :4].permute(2, 1, 3, 0), 1),
    "channels last": lambda: (_seeded(2, 33, 5, 4).to(memory_format=torch.channels_last), 1),
    "one score": lambda: (_seeded(20, 1, 3), 1),
    "one long row": lambda: (_seeded(40_000, 2)[:, 1], 0),
    "two long rows": lambda: (_seeded(40_000, 2), 0),
}


KINDS = list(product(BUILT_IN, [torch.float32, torch.bfloat16, torch.float64]))


@pytest.mark.parametrize(("view", "kind"), list(_in_turn(VIEWS, KINDS)))
def test_layouts(at_level, view, kind):
    method, dtype = kind
    scores, dim = VIEWS[view]()
    scores = scores.to(dtype)
    upstream = torch.empty_like(scores).copy_(_seeded(*scores.shape, seed=1))
    k = min(2.5, scores.shape[dim])
    found = _results(scores, k, upstream, method=method, dim=dim)
    rows, v = (v.movedim(dim, -1).contiguous() for v in (scores, upstream))
    p, by_scores, *by_numbers = _results(rows, k, v, method=method)
    wanted = p.movedim(-1, dim), by_scores.movedim(-1, dim), *by_numbers
    exact = torch.promote_types(dtype, torch.float32)
    _same(found, wanted, rtol=4 * torch.finfo(dtype).eps, atol=4 * torch.finfo(exact).eps)
    assert found[0].stride() == torch.empty_like(scores).stride()
    assert found[1].stride() == torch.empty_like(scores).stride()


@pytest.mark.parametrize("upstream", ["expanded", "transposed", "every other"])
@pytest.mark.parametrize("n", [20, 300])
@BOTH
def test_layouts_of_the_upstream(method, upstream, n):
    v = {
        "expanded": torch.tensor(0.7).expand(17, n),
        "transposed": _seeded(n, 17, seed=1).T,
        "every other": _seeded(17, 2 * n, seed=1)[:, ::2],
    }[upstream]
    scores = _seeded(17, n)
    found = _results(scores, 3.0, v, method=method)
    _same(found, _results(scores, 3.0, v.contiguous(), method=method), rtol=1e-6, atol=1e-7)


# ---- masks --------------------------------------------------------------------------------------


def _masks(rows, n):
    every = torch.rand(rows, n, generator=torch.Generator().manual_seed(4)) < 0.6
    every[0], every[1] = True, False
    return {
        "full": every,
        "one for all": every[2],
        "rows": every[:, :1],
        "padding": torch.arange(n) < torch.arange(1, rows + 1).unsqueeze(-1) * n // rows,
        "columns": every.T.contiguous().T,
        "every other": torch.stack([every, ~every], -1)[..., 0],
        "number": torch.tensor(True),
    }


MASKS = product(_masks(3, 3), [3, 30, 64, 200, 3000])


@pytest.mark.parametrize(("case", "method"), list(_in_turn(MASKS, BUILT_IN[::-1])))
def test_masks(at_level, method, case):
    """As if the others were not there, which plain torch says with -inf."""
    form, n = case
    scores, upstream = _seeded(19, n), _seeded(19, n, seed=1)
    mask = _masks(19, n)[form]
    hidden = torch.where(mask, scores, math.nan)
    noise = torch.where(mask, upstream, math.inf)
    k = min(2.5, n - 0.5)
    found = _results(hidden, k, noise, method=method, mask=mask)
    with _native.use("torch"):
        wanted = _results(hidden.double(), k, noise.double(), method=method, mask=mask)
    _same(found[:2], [v.float() for v in wanted[:2]], rtol=1e-4, atol=2e-5)
    _same(found[2:], wanted[2:], rtol=1e-3, atol=1e-3)
    out = ~mask.expand(19, n)
    assert (found[0][out] == 0).all()
    assert (found[1][out] == 0).all()


@METHODS
@pytest.mark.parametrize("n", [30, 200, 3000])
def test_a_masked_row_is_a_shorter_one(method, n):
    scores, upstream = _seeded(5, n), _seeded(5, n, seed=1)
    mask = torch.rand(n, generator=torch.Generator().manual_seed(4)) < 0.6
    found = _results(scores, 2.5, upstream, method=method, mask=mask)
    wanted = _results(scores[:, mask], 2.5, upstream[:, mask], method=method)
    _same((found[0][:, mask], found[1][:, mask], *found[2:]), wanted, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("view", ["middle", "short middle", "first", "permuted", "channels last"])
@HALVES
@BOTH
def test_masks_along_any_dim(view, dtype, method):
    scores, dim = VIEWS[view]()
    scores = scores.to(dtype)
    mask, upstream = _seeded(*scores.shape, seed=2) < 0.5, _seeded(*scores.shape, seed=1).to(dtype)
    found = _results(scores, 2.5, upstream, method=method, dim=dim, mask=mask)
    dense = [v.movedim(dim, -1).contiguous() for v in (scores.float(), upstream.float(), mask)]
    p, by_scores, *_ = _results(dense[0], 2.5, dense[1], method=method, mask=dense[2])
    wanted = p.movedim(-1, dim).to(dtype), by_scores.movedim(-1, dim).to(dtype)
    _same(found[:2], wanted, rtol=torch.finfo(dtype).eps, atol=1e-6)


# ---- nothing is copied --------------------------------------------------------------------------

_MOVES = {"aten::copy_", "aten::clone", "aten::contiguous", "aten::where", "aten::masked_fill"}


def _work(run):
    """The names of torch's operators that ran, and how many bytes they asked for."""
    run()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        run()
    events = seen.events()
    return {e.name for e in events}, sum(max(e.self_cpu_memory_usage, 0) for e in events)


COPIES = {
    "half": lambda: (_seeded(8, 5000).half(), -1, None),
    "middle": lambda: (_seeded(4, 1000, 10), 1, None),
    "transposed": lambda: (_seeded(5000, 8).T, -1, None),
    "mask": lambda: (_seeded(8, 5000), -1, torch.arange(5000) < 4000),
    "all of it": lambda: (_seeded(4, 1000, 10).half(), 1, _seeded(1, 1000, 10) < 1),
}


@pytest.mark.parametrize("case", COPIES)
def test_nothing_is_copied(case):
    scores, dim, mask = COPIES[case]()
    size = scores.nbytes
    upstream = torch.ones_like(scores)

    names, taken = _work(lambda: so.soft_topk(scores, 10, dim=dim, mask=mask))
    assert not names & _MOVES
    assert taken <= 1.1 * size

    scores.requires_grad_()
    p = so.soft_topk(scores, 10, dim=dim, mask=mask)
    names, taken = _work(lambda: torch.autograd.grad(p, scores, upstream, retain_graph=True))
    assert not names & _MOVES
    assert taken <= 1.1 * size


@pytest.mark.parametrize("case", COPIES)
def test_the_graph_keeps_what_was_given(case):
    scores, dim, mask = COPIES[case]()
    kept = set()

    def pack(tensor):
        kept.add(tensor.untyped_storage().data_ptr() if tensor.numel() > 1000 else 0)
        return tensor

    scores.requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        so.soft_topk(scores, 10, dim=dim, mask=mask)
    given = {v.untyped_storage().data_ptr() for v in (scores, mask) if v is not None}
    assert kept - {0} <= given


# ---- the operators ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", _native.KINDS)
@pytest.mark.parametrize("case", COPIES)
def test_the_operators_agree_with_their_fakes(kind, case):
    scores, dim, mask = COPIES[case]()
    x = scores.movedim(dim, -1)
    mask = None if mask is None else mask.expand(scores.shape).movedim(dim, -1)
    k, tau = torch.tensor(3.0).double(), torch.tensor(0.5).double()
    forward, backward = (
        torch.ops.softorder.soft_topk_forward,
        torch.ops.softorder.soft_topk_backward,
    )
    with _native.use(kind):
        torch.library.opcheck(forward, (x, k, tau, mask, 0), test_utils="test_faketensor")
        b = forward(x, k, tau, mask, 0)[1]
        arguments = (torch.ones_like(x), x, tau, b, mask, 0, True)
        torch.library.opcheck(backward, arguments, test_utils="test_faketensor")


@pytest.mark.parametrize(
    "case", [c if c == "all of it" else pytest.param(c, marks=pytest.mark.slow) for c in COPIES]
)
def test_compiled_graphs_call_the_same_kernels(case):
    scores, dim, mask = COPIES[case]()
    scores.requires_grad_()

    def run(x):
        return so.soft_topk(x, 10, dim=dim, mask=mask)

    wanted = run(scores), *torch.autograd.grad(run(scores).square().sum(), scores)
    before = _native.calls.copy()
    p = torch.compile(run, fullgraph=True, backend="aot_eager")(scores)
    (gradient,) = torch.autograd.grad(p.square().sum(), scores)
    assert _native.calls - before == {"topk_forward": 1, "topk_backward": 1}
    _same((p, gradient), wanted, **EXACT)
    assert p.stride() == wanted[0].stride()


def test_a_layout_has_the_strides_of_every_operand():
    """Kernels read those of a mask that is not there, too."""
    scores = torch.zeros(6, 4).t()
    axes, *numbers = layout_of(scores, scores, None)
    assert len(numbers) == axes + 3 * (axes + 1)
    assert layout_of(torch.zeros(2, 3), torch.zeros(2, 3), None) is None

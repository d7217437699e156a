"""top_k_cross_entropy: equations 2 and 4 of Petersen et al. without a k×n matrix."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional

import softorder as so
from softorder.kernels import native
from tests.oracles import bisection
from tests.oracles.densities import BUILT_IN
from tests.user_density import Student

_loss = so.losses.top_k_cross_entropy
_MIX, _FIVE, _EVEN = [0.5, 0, 0, 0, 0.5], [0.0, 0, 0, 0, 1.0], [0.2] * 5
_OPERATORS = ("log_soft_topk", "soft_permutation", "soft_topk")
_METHODS = sorted({row.name for row in so.methods() if row.operator in _OPERATORS})
_ROWS = sorted(set(_METHODS) - set(BUILT_IN) - {"sinkhorn"})


def _problem(rows=6, n=12, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(rows, n, dtype=torch.float64, generator=generator).to(dtype)
    return scores, torch.randint(n, (rows,), generator=generator)


def _oracle(scores, target, p_k, density, temperature, top1):
    """The formulas as they are printed, from p by bisection."""
    x, own = scores.numpy(), (np.arange(len(target)), target.numpy())
    shares = [
        bisection.soft_topk(x, k, temperature, density).p[own] for k in range(1, 1 + len(p_k))
    ]
    if top1 == "operator":
        return -np.log(sum(w * s for w, s in zip(p_k, shares, strict=True)))
    softmax = np.log(np.exp(x).sum(-1)) - x[own]
    mixture = sum(w * s for w, s in zip(p_k[1:], shares[1:], strict=True))
    rest = (1 - p_k[0]) * np.log(mixture) if p_k[0] < 1 else 0
    return p_k[0] * softmax - rest


@pytest.mark.parametrize("density", [d for d in BUILT_IN if d != "uniform"])
@pytest.mark.parametrize("p_k", [_MIX, _FIVE, _EVEN, [0, 0.3, 0.7], [1.0, 0, 0]], ids=str)
@pytest.mark.parametrize("top1", ["softmax", "operator"])
def test_is_the_formula_of_the_paper(kernel, density, p_k, top1):
    scores, target = _problem()
    options = {"method": density, "temperature": 0.7, "top1": top1, "reduction": "none"}
    found = _loss(scores, target, p_k, **options)
    truth = _oracle(scores, target, p_k, density, 0.7, top1)
    np.testing.assert_allclose(found.numpy(), truth, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("temperature", [1e-3, 0.3, 3.0])
@pytest.mark.parametrize("density", list(BUILT_IN))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_fused_and_plain_gradients_agree(kernel, density, temperature, dtype):
    """Far targets, gaps that underflow and all; the plain path in float64."""
    scores, target = _problem(30, 20, dtype)
    scores[0, target[0]] -= 1e4
    scores[1, :3] += 100
    found, expected = (
        _gradients(scores.to(kind), target, density, temperature, plain)
        for kind, plain in ((dtype, False), (torch.float64, True))
    )
    rtol = 1e-12 if dtype is torch.float64 else 2e-4
    for one, other in zip(found, expected, strict=True):
        scale = other.abs().amax(-1, keepdim=True).clamp(min=1e-30)
        torch.testing.assert_close(one.double() / scale, other / scale, rtol=0, atol=rtol)


def _gradients(scores, target, density, temperature, plain):
    scores = scores.clone().requires_grad_()
    tau = torch.full(target.shape, temperature, dtype=torch.float64, requires_grad=True)
    losses = _loss(
        scores, target, _EVEN, method=density, temperature=tau, top1="operator", reduction="none"
    )
    lost = losses.isinf()  # uniform has exact zeros, which have no gradient
    # create_graph takes the plain path
    return torch.autograd.grad(losses[~lost].sum(), (scores, tau), create_graph=plain)


@pytest.mark.parametrize("method", [*_METHODS, Student()], ids=str)
@pytest.mark.parametrize("top1", ["softmax", "operator"])
def test_gradcheck_for_every_method(method, top1):
    scores, target = _problem(3, 6)
    tau = torch.tensor(4.0, dtype=torch.float64, requires_grad=True)  # no zeros for uniform
    p_k = torch.tensor([0.3, 0.2, 0.5], dtype=torch.float64)

    def call(scores, tau):
        return _loss(scores, target, p_k, method=method, temperature=tau, top1=top1)

    torch.autograd.gradcheck(call, (scores.requires_grad_(), tau))


@pytest.mark.parametrize("density", ["logistic", "normal"])
def test_second_derivatives(density):
    scores, target = _problem(2, 5)
    tau = torch.tensor(0.8, dtype=torch.float64, requires_grad=True)

    def call(scores, tau):
        return _loss(scores, target, _EVEN, method=density, temperature=tau)

    torch.autograd.gradgradcheck(call, (scores.requires_grad_(), tau))


@pytest.mark.parametrize("per", ["shared", "class", "sample"])
def test_p_k_may_learn(per):
    scores, target = _problem(3, 6)
    shape = {"shared": (4,), "class": (6, 4), "sample": (3, 4)}[per]
    logits = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))

    def call(logits):
        p_k = logits.softmax(-1)
        return _loss(scores, target, p_k, per_sample=per == "sample", temperature=0.5)

    torch.autograd.gradcheck(call, logits.requires_grad_())


def test_a_single_p_k_may_learn_too():
    scores, target = _problem(3, 6)
    p_k = torch.ones(1, dtype=torch.float64, requires_grad=True)
    expected = functional.cross_entropy(scores, target)
    loss = _loss(scores, target, p_k)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(torch.autograd.grad(loss, p_k)[0], expected.reshape(1))
    with torch.no_grad():
        torch.testing.assert_close(_loss(scores, target, p_k), expected)
        two = torch.tensor([1.0, 0.0], requires_grad=True)
        torch.testing.assert_close(_loss(scores, target, two), expected)


def test_p_k_that_learns_feels_the_k_without_weight():
    scores, target = _problem(3, 6)
    p_k = torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64, requires_grad=True)
    loss = _loss(scores, target, p_k, top1="operator", temperature=0.5)
    (gradient,) = torch.autograd.grad(loss, p_k)
    assert gradient[2] < gradient[1] < gradient[0] < 0  # more guesses, less loss
    scores[:, :] -= 1e4 * functional.one_hot(target, 6)
    (gradient,) = torch.autograd.grad(_loss(scores, target, p_k, top1="operator"), p_k)
    assert gradient.isfinite().all()


@pytest.mark.parametrize("shape", [(), (4,), (4, 3), (2, 3, 5)])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_top_1_by_softmax_is_torchs(shape, reduction, smoothing, dtype):
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(*shape[:1], 7, *shape[1:], generator=generator).to(dtype)
    target = torch.randint(7, shape, generator=generator)
    if target.dim():
        target[0] = -100
    weight = torch.rand(7, generator=generator).to(dtype)
    options = {"weight": weight, "label_smoothing": smoothing, "reduction": reduction}
    for p_k in ([1.0], [1.0, 0.0], torch.tensor([1.0, 0])):
        found = _loss(scores, target, p_k, **options)
        assert torch.equal(found, functional.cross_entropy(scores, target, **options))


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_weights_and_smoothing_are_torchs_when_both_parts_agree(smoothing, reduction):
    """A method whose top-1 is a softmax: the operator's part must be torch's in every respect."""
    scores, target = _problem(9, 5)
    target[2] = -100
    weight = torch.linspace(0.1, 2, 5, dtype=torch.float64)
    options = {"weight": weight, "label_smoothing": smoothing, "reduction": reduction}
    expected = functional.cross_entropy(scores, target, **options)
    found = _loss(scores, target, [1.0], method="sequential_softmax", top1="operator", **options)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-13)


def test_label_smoothing_is_a_mean_over_the_classes():
    scores, target = _problem(4, 6)
    options = {"temperature": 0.6, "reduction": "none"}
    plain = _loss(scores, target, _MIX, **options)
    others = [_loss(scores, torch.full_like(target, c), _MIX, **options) for c in range(6)]
    found = _loss(scores, target, _MIX, label_smoothing=0.2, **options)
    torch.testing.assert_close(found, 0.8 * plain + 0.2 * torch.stack(others).mean(0))


@pytest.mark.parametrize("shape", [(), (4,), (4, 3), (2, 3, 5)])
def test_trailing_axes_are_samples(shape):
    scores, target = _problem(math.prod(shape), 7)
    temperature = torch.linspace(0.5, 1, math.prod(shape), dtype=torch.float64)
    expected = _loss(scores, target, _MIX, temperature=temperature, reduction="none")
    moved = scores.reshape(*shape, 7).movedim(-1, 1 if shape else 0)
    options = {"temperature": temperature.reshape(shape), "reduction": "none"}
    found = _loss(moved, target.reshape(shape), _MIX, **options)
    assert found.shape == shape
    torch.testing.assert_close(found.flatten(), expected)
    weights = torch.softmax(torch.randn(*shape, 4, dtype=torch.float64), -1)
    one = _loss(moved, target.reshape(shape), weights, per_sample=True, **options)
    flat = {"per_sample": True, "temperature": temperature, "reduction": "none"}
    other = _loss(scores, target, weights.reshape(-1, 4), **flat)
    torch.testing.assert_close(one.flatten(), other)


def test_p_k_per_class_is_that_of_the_target():
    scores, target = _problem(8, 4)
    table = torch.tensor([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.2, 0.3, 0.5]], dtype=torch.float64)
    found = _loss(scores, target, table, reduction="none")
    for row in range(8):
        one = _loss(scores[row], target[row], table[target[row]])
        torch.testing.assert_close(found[row], one)
    module = so.losses.TopKCrossEntropyLoss(table, reduction="none")
    assert torch.equal(module(scores, target), found)
    assert torch.equal(module(scores, target, table[target]), found)
    assert torch.equal(_loss(scores, target, table.tolist(), reduction="none"), found)


@pytest.mark.parametrize("top1", ["softmax", "operator"])
@pytest.mark.parametrize("method", ["laplace", "uniform", "softsort"])
def test_ignored_samples_are_not_there(top1, method):
    scores, target = _problem(7, 9)
    partly, kept = target.clone(), torch.tensor([True, True, False, True, False, True, True])
    partly[~kept] = -100
    spoiled = torch.where(kept.unsqueeze(-1), scores, math.nan).requires_grad_()
    options = {"method": method, "top1": top1, "temperature": 5.0, "label_smoothing": 0.0}
    expected = _loss(scores[kept], target[kept], _MIX, **options)
    loss = _loss(spoiled, partly, _MIX, **options)
    torch.testing.assert_close(loss, expected)
    loss.backward()
    assert (spoiled.grad[~kept] == 0).all()
    assert spoiled.grad[kept].isfinite().all()
    none = _loss(spoiled, partly, _MIX, reduction="none", **options)
    assert (none[~kept] == 0).all()
    assert _loss(scores, torch.full_like(target, -100), _MIX, **options).isnan()  # as torch
    assert _loss(scores, torch.full_like(target, 3), _MIX, ignore_index=3, reduction="sum") == 0


@pytest.mark.parametrize("method", ["laplace", "logistic", "normal", "cauchy", "sinkhorn"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("top1", ["softmax", "operator"])
def test_a_hopeless_target_is_pulled_up(kernel, method, dtype, top1):
    scores, target = _problem(3, 50, dtype)
    scores[0, target[0]] -= 1e4
    scores.requires_grad_()
    loss = _loss(scores, target, _FIVE, method=method, temperature=0.5, top1=top1)
    (gradient,) = torch.autograd.grad(loss, scores)
    assert loss.isfinite()
    assert gradient.isfinite().all()
    assert gradient[0, target[0]] < 0
    assert abs(gradient[0].sum()) < 1e-4 * abs(gradient[0]).max()


@pytest.mark.parametrize("method", [*_ROWS, "uniform"])
def test_other_methods_stay_finite(method):
    scores, target = _problem(3, 20, torch.float32)
    scores[0, target[0]] -= 1e4
    scores.requires_grad_()
    loss = _loss(scores, target, _MIX, method=method, temperature=0.5, reduction="none")
    if method != "uniform":  # whose zeros are exact
        assert loss.isfinite().all()
    (gradient,) = torch.autograd.grad(loss[loss.isfinite()].sum(), scores)
    assert gradient.isfinite().all()


@pytest.mark.parametrize("method", ["laplace", "softsort"])
def test_preselection_keeps_the_target_and_the_best(method):
    scores, target = _problem(20, 30)
    found = _loss(scores, target, _EVEN, m=8, method=method, top1="operator", reduction="none")
    for row in range(20):
        order = scores[row].argsort(descending=True)[:8].tolist()
        if target[row] not in order:
            order[-1] = int(target[row])
        own = torch.tensor(order.index(int(target[row])))
        few = _loss(scores[row, order], own, _EVEN, method=method, top1="operator")
        torch.testing.assert_close(found[row], few)
    for m in (30, 31, None):
        whole = _loss(scores, target, _EVEN, m=m, method=method)
        assert torch.equal(whole, _loss(scores, target, _EVEN, method=method))


def test_cold_limit_counts_the_hits():
    scores, target = _problem(200, 15)
    losses = _loss(scores, target, _FIVE, temperature=1e-6, reduction="none")
    hits = (scores.topk(5).indices == target.unsqueeze(-1)).any(-1)
    assert (losses[hits] < 1e-6).all()
    assert (losses[~hits] > 10).all()


def test_autocast_computes_in_float32():
    scores, target = _problem(5, 40, torch.float32)
    half = scores.bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for p_k in ([1.0], _MIX, _FIVE):
            for method in ("laplace", "softsort"):
                found = _loss(half, target, p_k, method=method)
                assert found.dtype == torch.float32
                torch.testing.assert_close(found, _loss(half.float(), target, p_k, method=method))
        _loss(scores.requires_grad_().bfloat16(), target, _MIX).backward()
    assert scores.grad.dtype == torch.float32
    assert scores.grad.isfinite().all()
    assert _loss(half, target, _MIX).dtype == torch.bfloat16


def test_the_graph_keeps_the_scores_and_a_softmax():
    def saved(p_k):
        sizes = {}

        def pack(tensor):
            sizes[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        scores, target = _problem(50, 1000, torch.float32)
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            _loss(scores.requires_grad_(), target, p_k)
        return sum(sizes.values()) / scores.untyped_storage().nbytes()

    assert saved(_EVEN) < 2.2
    assert saved(_FIVE) < 1.2


def test_one_threshold_for_each_k_with_weight():
    scores, target = _problem(4, 30, torch.float32)
    with native.use("native"):
        before = native.calls["topk_forward"], native.calls["topk_backward"]
        _loss(scores.requires_grad_(), target, [0.5, 0, 0.25, 0, 0.25]).backward()
        after = native.calls["topk_forward"], native.calls["topk_backward"]
    assert [b - a for a, b in zip(before, after, strict=True)] == [2, 2]


def test_torch_func_and_compile():
    scores, target = _problem(4, 6)
    criterion = so.losses.TopKCrossEntropyLoss(_MIX, method="logistic", temperature=0.7)
    expected = torch.autograd.grad(criterion(scores.requires_grad_(), target), scores)[0]
    found = torch.func.grad(lambda x: criterion(x, target))(scores.detach())
    torch.testing.assert_close(found, expected)
    each = torch.func.vmap(lambda x, y: criterion(x, y))(scores.detach(), target)
    torch.testing.assert_close(each.mean(), criterion(scores, target))
    compiled = torch.compile(criterion, fullgraph=True, backend="aot_eager")
    again = torch.autograd.grad(compiled(scores, target), scores)[0]
    torch.testing.assert_close(again, expected)


def test_learns_to_be_among_the_first_three():
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(20, 10, generator=generator).requires_grad_()
    target = torch.randint(10, (20,), generator=generator)
    criterion = so.losses.TopKCrossEntropyLoss([0, 0, 1.0], learnable_temperature=True)
    optimizer = torch.optim.Adam([scores, *criterion.parameters()], lr=0.1)
    for _ in range(60):
        optimizer.zero_grad()
        criterion(scores, target).backward()
        optimizer.step()
    assert (scores.topk(3).indices == target.unsqueeze(-1)).any(-1).all()
    assert criterion.temperature != 1


def test_module_computes_the_function():
    scores, target = _problem(6, 10)
    options = {
        "method": "normal",
        "temperature": 0.3,
        "m": 7,
        "top1": "operator",
        "weight": torch.rand(10, dtype=torch.float64),
        "ignore_index": int(target[0]),
        "label_smoothing": 0.1,
        "reduction": "sum",
    }
    module = so.losses.TopKCrossEntropyLoss(_EVEN, **options)
    assert torch.equal(module(scores, target), _loss(scores, target, _EVEN, **options))
    for part in ("p_k=[0.2", "normal", "temperature=0.3", "m=7", "operator", "0.1", "sum"):
        assert part in repr(module)
    learned = so.losses.TopKCrossEntropyLoss(torch.nn.Parameter(torch.tensor([0.5, 0.5])))
    assert [name for name, _ in learned.named_parameters()] == ["p_k"]


@pytest.mark.parametrize(
    ("p_k", "options", "error", "message"),
    [
        ([0.5, 0.6], {}, ValueError, r"p_k must sum to 1 over k, but got a sum of 1\.1"),
        ([1.5, -0.5], {}, ValueError, r"p_k must hold numbers >= 0, but got -0\.5"),
        ([math.nan, 1], {}, ValueError, r"p_k must hold numbers >= 0"),
        ([], {}, ValueError, r"p_k.*last axis.*\(0,\)"),
        ("half", {}, TypeError, r"p_k must be a tensor or a list of numbers, but got 'half'"),
        (torch.tensor([1, 0]), {}, TypeError, r"p_k must hold real numbers.*int64"),
        (torch.tensor([[1.0]] * 3), {}, ValueError, r"p_k.*per class, \(4, K\).*\(3, 1\)"),
        (torch.tensor([[1.0]] * 3), {"per_sample": True}, ValueError, r"p_k per sample.*\(2,\)"),
        ([0, 0, 0, 0, 1.0], {}, ValueError, r"no weight beyond k = 4.*at k = 5"),
        ([0, 0, 1.0], {"m": 2}, ValueError, r"m must be at least 3, but got 2"),
        ([1.0], {"top1": "sotfmax"}, ValueError, r"top1.*did you mean 'softmax'"),
        ([1.0], {"method": "lapsum"}, ValueError, r"method.*did you mean 'laplace'"),
        ([1.0], {"method": "permutahedron"}, ValueError, r"method must be one of.*permutahedron"),
        ([1.0], {"temperature": 0}, ValueError, r"temperature must be finite and > 0, but got 0"),
        ([1.0], {"weight": torch.ones(3)}, ValueError, r"weight.*\(4,\), but got \(3,\)"),
        ([1.0], {"weight": [1, 2]}, TypeError, r"weight must be a tensor or None.*list"),
        ([1.0], {"label_smoothing": 2}, ValueError, r"label_smoothing.*between 0 and 1.*2"),
        ([1.0], {"reduction": "max"}, ValueError, r"reduction must be.*'max'"),
    ],
)
def test_wrong_arguments(p_k, options, error, message):
    with pytest.raises(error, match=message):
        _loss(torch.zeros(2, 4), torch.tensor([0, 1]), p_k, **options)


@pytest.mark.parametrize(
    ("target", "error", "message"),
    [
        (torch.tensor([0, 4]), ValueError, r"target must be between 0 and 3.*-100, but got 4"),
        (torch.tensor([0, 1, 2]), ValueError, r"target must have the shape \(2,\).*\(3,\)"),
        (torch.tensor([0.0, 1.0]), TypeError, r"target must hold integers.*float32"),
        ([0, 1], TypeError, r"target must be a tensor of integers.*list"),
    ],
)
def test_wrong_targets(target, error, message):
    with pytest.raises(error, match=message):
        _loss(torch.zeros(2, 4), target, [0.5, 0.5])

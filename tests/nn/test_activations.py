"""Activations that let k of n features through, of a row and of a batch."""

import pytest
import torch

import softorder as so
from softorder.nn._choices import edge
from tests.nn.close import assert_compiles

_activation = so.nn.functional.topk_activation
_of_batch = so.nn.functional.batch_topk_activation


def _x(*shape, dtype=torch.float64, seed=0):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def test_it_is_the_rectifier_times_the_soft_topk():
    x = _x(4, 9)
    for dim in (-1, 0):
        p = so.soft_topk(x, 3, temperature=0.4, dim=dim, method="normal")
        result = _activation(x, 3, temperature=0.4, dim=dim, method="normal")
        torch.testing.assert_close(result, x.clamp(min=0) * p)
    together = so.soft_topk(x, 12, temperature=0.4, dim=None)
    torch.testing.assert_close(_of_batch(x, 3, temperature=0.4), x.clamp(min=0) * together)


@pytest.mark.parametrize("dim", [(0, 2), (-1, 1), None])
def test_several_axes_are_one(dim):
    x = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    p = so.soft_topk(x, 6, temperature=0.4, dim=dim)
    layer = so.nn.TopKActivation(6, temperature=0.4, dim=dim)
    torch.testing.assert_close(layer(x), x.relu() * p)
    found = layer.eval()(x)
    assert torch.equal(found, x.relu() * so.hard.topk(x, 6, dim=dim))


def test_the_derivative_is_that_of_the_docstring():
    x = _x(9).requires_grad_()
    v, tau = _x(9, seed=1), 0.4
    (found,) = torch.autograd.grad(_activation(x, 3, temperature=tau), x, v)
    with torch.no_grad():
        p = so.soft_topk(x, 3, temperature=tau)
        d = torch.minimum(p, 1 - p) / tau  # f = min(F, 1 - F) for the Laplace density
        w, q = x.clamp(min=0) * v, d / d.sum()
        expected = (x > 0) * p * v + d * (w - (q * w).sum())
    torch.testing.assert_close(found, expected)


def test_features_outside_hear_that_they_are_wanted():
    x = torch.tensor([2.0, 1.5, 1.4], requires_grad=True)
    _activation(x, 2, temperature=0.1)[2].backward()
    assert x.grad[2] > 0 > x.grad[1]


@pytest.mark.parametrize("activation", [_activation, _of_batch])
def test_straight_through_has_the_hard_value_and_the_soft_derivative(activation):
    x = _x(5, 9).requires_grad_()
    hard = activation(x, 3, temperature=0.4, hard=True)
    assert ((hard != 0) <= (x > 0)).all()
    chosen = so.hard.topk(x, 3) if activation is _activation else so.hard.topk(x, 15, dim=None)
    torch.testing.assert_close(hard, x.relu() * chosen)
    v = _x(5, 9, seed=1)
    (found,) = torch.autograd.grad(hard, x, v)
    k, dim = (3, -1) if activation is _activation else (15, None)
    p = so.soft_topk(x, k, temperature=0.4, dim=dim)
    (soft,) = torch.autograd.grad(p, x, x.detach().relu() * v)
    torch.testing.assert_close(found, (x.detach() > 0) * chosen * v + soft)


def test_derivatives():
    x = _x(3, 5).requires_grad_()
    tau = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    for activation in (_activation, _of_batch):
        call = lambda x, tau: activation(x, 2, temperature=tau, method="logistic")  # noqa: B023, E731
        assert torch.autograd.gradcheck(call, (x, tau))
        assert torch.autograd.gradgradcheck(call, (x, tau))


@pytest.mark.parametrize("hard", [True, False])
def test_exactly_k_in_use(hard):
    layer = so.nn.TopKActivation(3, temperature=0.3, hard=hard)
    x = _x(50, 9).abs()
    assert ((layer(x) != 0).sum(-1) == (3 if hard else 9)).all()
    assert ((layer.eval()(x) != 0).sum(-1) == 3).all()
    assert ((layer(torch.ones(4, 9)) != 0).sum(-1) == 3).all()  # ties, too
    layer.hard_inference = False
    torch.testing.assert_close(layer(x), layer.train()(x))


def test_cold_it_is_what_eval_mode_gives():
    layer = so.nn.TopKActivation(3, temperature=1e-5)
    x = _x(6, 9)
    torch.testing.assert_close(layer(x), layer.eval()(x))


# ---- of a batch --------------------------------------------------------------------------------


def test_the_threshold_solves_the_equation_and_has_its_derivative():
    """∂b/∂x_i = q_i, the implicit derivative of Σ F((x - b)/τ) = k B."""
    layer = so.nn.BatchTopK(6, 2, temperature=0.5, method="logistic").double()
    x = _x(4, 6).requires_grad_()
    b = layer.batch_threshold(x)
    torch.testing.assert_close(torch.sigmoid((x - b) / 0.5).sum().item(), 8.0)
    torch.testing.assert_close(layer(x), x.relu() * torch.sigmoid((x - b) / 0.5))
    (q,) = torch.autograd.grad(b, x)
    d = torch.sigmoid((x - b) / 0.5)
    d = (d * (1 - d)).detach()
    torch.testing.assert_close(q, d / d.sum())
    assert torch.autograd.gradcheck(layer.batch_threshold, (x,))


def test_k_on_average_in_use():
    layer = so.nn.BatchTopK(20, 3, temperature=0.1)
    scale = torch.linspace(0.5, 2.0, 512).unsqueeze(-1)  # some rows need more than others
    for seed in range(40):
        layer(scale * _x(512, 20, dtype=torch.float32, seed=seed).abs())
    counts = (layer.eval()(scale * _x(512, 20, seed=99).abs()) != 0).sum(-1).double()
    assert abs(counts.mean() - 3) < 0.15
    assert counts.std() > 1
    before = layer.threshold.clone()
    assert (layer.train()(torch.zeros(0, 20)).shape, layer.threshold) == ((0, 20), before)


def test_rows_do_not_see_each_other_in_use():
    layer = so.nn.BatchTopK(6, 2)
    layer(_x(8, 6, dtype=torch.float32))
    x = _x(8, 6, dtype=torch.float32, seed=1)
    torch.testing.assert_close(layer.eval()(x)[:3], layer(x[:3]))


def test_running_average():
    layer = so.nn.BatchTopK(4, 1, momentum=0.25)
    first, second = torch.tensor([[4.0, 2.0, 0, 0]]), torch.tensor([[8.0, 6.0, 0, 0]])
    layer(first)
    assert layer.threshold == 3
    layer(second)
    assert layer.threshold == 3 + 0.25 * (7 - 3)


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_the_edge_is_the_middle_of_the_gap(scale):
    """Against an order; with ties, and with all or none to tell apart."""
    x = scale * _x(40, 30, dtype=torch.float32)
    order = x.flatten().sort(descending=True).values
    for k in (1, 17, 600, 1199):
        expected = (order[k - 1] + order[k]) / 2
        torch.testing.assert_close(edge(x, k), expected, rtol=1e-5, atol=1e-7 * scale)
        assert (x > edge(x, k)).sum() == k
    assert (x > edge(x, 1200)).all()
    assert edge(torch.full((5,), scale), 2) == torch.tensor(scale)


def test_features_that_are_never_chosen_are_found():
    layer = so.nn.BatchTopK(4, 1)
    x = torch.tensor([[5.0, 0, 1, 0], [0, 4.0, 1, 0]])
    for _ in range(3):
        layer(x)
    assert layer.use.dead(after=6).tolist() == [False, False, True, True]
    assert layer.use.idle.tolist() == [1, 0, 6, 6]
    layer.eval()(x)
    assert layer.use.rows == 6  # of training
    layer.use.reset()
    assert not layer.use.dead(after=1).any()


def test_state_dict_brings_threshold_and_use_back():
    source, target = (so.nn.BatchTopK(4, 2) for _ in range(2))
    source(_x(8, 4, dtype=torch.float32))
    target.load_state_dict(source.state_dict())
    x = _x(8, 4, dtype=torch.float32, seed=1)
    torch.testing.assert_close(target.eval()(x), source.eval()(x))
    assert torch.equal(target.use.counts, source.use.counts)


# ---- everywhere --------------------------------------------------------------------------------


def test_compiles():
    x = _x(4, 9, dtype=torch.float32)
    assert_compiles(so.nn.TopKActivation(3, temperature=0.4, hard=True), x)
    assert_compiles(so.nn.BatchTopK(9, 3, temperature=0.4), x)


@pytest.mark.parametrize("layer", [so.nn.TopKActivation(3), so.nn.BatchTopK(9, 3)])
def test_autocast_and_half_precision(layer):
    linear, x = torch.nn.Linear(9, 9), _x(16, 9, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        result = layer(linear(x))
    assert result.dtype == torch.bfloat16
    torch.testing.assert_close(result.float(), layer(linear(x)), rtol=0.1, atol=0.05)
    result.float().sum().backward()
    assert linear.weight.grad.isfinite().all()


def test_several_k_at_once():
    decode, x, target = torch.nn.Linear(9, 4).double(), _x(5, 9), _x(5, 4, seed=1)
    for batch, activation in ((False, _activation), (True, _of_batch)):
        criterion = so.losses.MultiKLoss((2, 6), (1.0, 0.5), batch=batch, temperature=0.3)
        each = [
            (decode(activation(x, k, temperature=0.3)) - target).square().mean() for k in (2, 6)
        ]
        torch.testing.assert_close(criterion(decode, x, target), (each[0] + 0.5 * each[1]) / 1.5)
    assert so.losses.MultiKLoss((2, 6, 8)).weights == (1.0, 0.125, 0.125)


def test_wrong_arguments():
    wrong = [
        (lambda: so.nn.TopKActivation(0), ValueError, "k must be at least 1, but got 0"),
        (lambda: so.nn.TopKActivation(2.5), TypeError, "k must be an int, but got float"),
        (lambda: so.nn.TopKActivation(2, hard=1), TypeError, "hard must be True or False"),
        (lambda: _activation(_x(3), 4), ValueError, "k must be between 1 and 3, but got 4"),
        (lambda: so.nn.TopKActivation(4).eval()(_x(3)), ValueError, "k must be between 1 and 3"),
        (lambda: so.nn.BatchTopK(3, 4), ValueError, "k must be between 1 and 3, but got 4"),
        (lambda: so.nn.BatchTopK(3, 2, momentum=2), ValueError, "momentum must be between 0 and 1"),
        (lambda: so.nn.BatchTopK(3, 2, method="softsort"), ValueError, "method must be one of"),
        (lambda: so.nn.BatchTopK(3, 2)(_x(2, 4)), ValueError, "x must have 3 features on its last"),
        (lambda: so.nn.FeatureUse(3)(_x(2, 4)), ValueError, "codes must have 3 features"),
        (lambda: so.nn.FeatureUse(3).dead(0), ValueError, "after must be at least 1"),
        (lambda: so.losses.MultiKLoss(()), ValueError, "ks must hold at least one k"),
        (lambda: so.losses.MultiKLoss((1, 2), (1.0,)), ValueError, "weights must be 2 numbers > 0"),
    ]
    for call, error, message in wrong:
        with pytest.raises(error, match=message):
            call()

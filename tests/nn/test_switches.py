"""What layers have beside the arguments of their operators: switches, auto, a k that learns."""

import copy
import io

import pytest
import torch

import softorder as so

_LAYERS = {
    "topk": (lambda **o: so.nn.SoftTopK(2, **o), lambda x, **o: so.hard.topk(x, 2, **o)),
    "rank": (so.nn.SoftRank, so.hard.rank),
    "sort": (so.nn.SoftSort, so.hard.sort),
    "permutation": (so.nn.SoftPermutation, so.hard.permutation),
    "quantile": (
        lambda **o: so.nn.SoftQuantile(0.3, **o),
        lambda x, **o: so.hard.quantile(x, 0.3, **o),
    ),
}
_every = pytest.mark.parametrize(("layer", "limit"), _LAYERS.values(), ids=_LAYERS)


def _scores(seed=0):
    return torch.randn(4, 6, generator=torch.Generator().manual_seed(seed))


def _reloaded(layer, other):
    """The state of one layer in another, by way of a file."""
    file = io.BytesIO()
    torch.save(layer.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file))
    return other


@_every
def test_hard_layers(layer, limit):
    scores = _scores().requires_grad_()
    soft, hard = layer(temperature=0.5), layer(temperature=0.5, hard=True)
    assert torch.equal(hard(scores), limit(scores))
    weights = torch.linspace(-1, 2, hard(scores).numel()).view_as(hard(scores))
    gradients = [torch.autograd.grad((m(scores) * weights).sum(), scores)[0] for m in (soft, hard)]
    assert torch.equal(*gradients)
    assert gradients[0].abs().sum() > 0
    assert "hard=True" in repr(hard)
    assert "hard" not in repr(soft)


@_every
@pytest.mark.parametrize("dim", [-1, None])
def test_hard_in_use_and_soft_in_training(layer, limit, dim):
    scores, mask = _scores(), _scores(seed=1) < 1
    module = layer(temperature=0.5, dim=dim, hard_inference=True)
    assert torch.equal(module(scores, mask), layer(temperature=0.5, dim=dim)(scores, mask))
    assert torch.equal(module.eval()(scores, mask), limit(scores, mask=mask, dim=dim))
    assert "hard_inference=True" in repr(module)


def test_the_logarithm_of_a_hard_choice():
    layer = so.nn.SoftTopK(1, log=True, hard_inference=True).eval()
    assert layer(torch.tensor([3.0, 1.0, 2.0])).tolist() == [0, -torch.inf, -torch.inf]


# ---- auto ----------------------------------------------------------------------------------------


@_every
@pytest.mark.parametrize("learnable", [False, True])
def test_auto_is_found_once_and_kept(layer, limit, learnable):
    make = {"temperature": so.Auto(0.2), "learnable_temperature": learnable}
    module = layer(**make)
    assert "temperature=Auto(softness=0.2)" in repr(module)
    first = module(_scores())
    k = 2 if isinstance(module, so.nn.SoftTopK) else None
    expected = so.calibrate_temperature(_scores(), k, softness=0.2, shared=True)
    torch.testing.assert_close(module.temperature.double(), expected, rtol=1e-3, atol=0)
    module(100 * _scores(seed=1))
    assert torch.equal(module(_scores()), first)
    other = _reloaded(module, layer(**make))
    assert torch.equal(other(_scores()), first)
    assert torch.equal(copy.deepcopy(module)(_scores()), first)


def test_auto_waits_again_when_it_is_assigned():
    layer = so.nn.SoftTopK(2, temperature="auto")
    layer(_scores())
    before = layer.temperature.clone()
    layer.temperature = "auto"
    layer(10 * _scores())
    torch.testing.assert_close(layer.temperature, 10 * before, rtol=1e-3, atol=0)
    layer.temperature = 0.5
    assert layer.temperature == 0.5
    assert torch.equal(layer(_scores()), so.soft_topk(_scores(), 2, temperature=0.5))


def test_a_temperature_comes_back_as_what_it_was_saved():
    layers = [so.nn.SoftTopK(2, temperature=t) for t in ("auto", 0.7, torch.tensor(0.3))]
    expected = [layer(_scores()) for layer in layers]
    for layer, result in zip(layers, expected, strict=True):
        for start in ("auto", 1.0, torch.tensor(9.0)):
            other = _reloaded(layer, so.nn.SoftTopK(2, temperature=start))
            assert torch.equal(other(_scores()), result)


def test_a_state_that_waits_is_one_that_waits():
    waiting = so.nn.SoftTopK(2, temperature="auto")
    other = so.nn.SoftTopK(2, temperature="auto")
    other(_scores())
    _reloaded(waiting, other)
    other(10 * _scores())
    assert torch.equal(
        other(_scores()), so.nn.SoftTopK(2, temperature=other.temperature)(_scores())
    )
    expected = so.calibrate_temperature(10 * _scores(), 2, shared=True)
    torch.testing.assert_close(other.temperature.double(), expected, rtol=1e-3, atol=0)


@pytest.mark.parametrize(
    ("loss", "k"),
    [
        (so.losses.NDCGLoss(2, temperature="auto"), None),
        (so.losses.SpearmanLoss(temperature="auto"), None),
        (so.losses.ListwiseCE(temperature="auto"), None),
        (so.losses.RecallAtK(2, temperature="auto"), 2),
        (so.losses.PermutationCrossEntropyLoss(temperature="auto"), None),
        (so.losses.FenchelYoungLoss(2, temperature="auto"), 2),
        (so.losses.TopKCrossEntropyLoss([0.5, 0.5], temperature="auto"), 2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_losses_keep_theirs(loss, k):
    scores = _scores()
    targets = {
        so.losses.PermutationCrossEntropyLoss: scores.argsort(-1).argsort(-1),
        so.losses.FenchelYoungLoss: so.hard.topk(scores, 2),
        so.losses.TopKCrossEntropyLoss: torch.arange(4),
    }
    loss(scores, targets.get(type(loss), _scores(seed=2).abs()))
    expected = so.calibrate_temperature(scores, k, shared=True)
    torch.testing.assert_close(loss.temperature.double(), expected, rtol=1e-3, atol=0)


def test_attention_and_neighbours_keep_theirs():
    x = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))
    attention = so.nn.TopKAttention(8, 2, 3, temperature="auto", batch_first=True)
    attention(x, x, x)
    neighbours = so.nn.SoftKNN(torch.nn.Identity(), 2, temperature="auto")
    neighbours(x[0], torch.tensor([0, 0, 0, 1, 1]))
    for layer in (attention, neighbours):
        assert layer.calibrated
        assert 0 < layer.temperature < 10


def test_a_compiled_layer_finds_its_temperature():
    torch.compiler.reset()
    layer = so.nn.SoftTopK(2, temperature="auto")
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    first = compiled(_scores())
    assert layer.calibrated
    torch.testing.assert_close(compiled(_scores()), first)
    torch.testing.assert_close(first, so.nn.SoftTopK(2, temperature=layer.temperature)(_scores()))


# ---- a k that learns -----------------------------------------------------------------------------


def test_a_learnable_k_starts_where_it_was_set_and_stays_inside():
    layer = so.nn.SoftTopK(2.5, learnable_k=True, temperature=0.5)
    torch.testing.assert_close(
        layer(_scores()), so.soft_topk(_scores(), 2.5, temperature=0.5), rtol=0, atol=1e-6
    )
    for n in (3, 6, 1000):
        torch.testing.assert_close(layer.k_now(n), torch.tensor(2.5, dtype=torch.float64))
    for step in (-50.0, 50.0):
        with torch.no_grad():
            layer.logit_k.fill_(step)
        result = layer(_scores())
        assert result.isfinite().all()
        assert 0 <= layer.k_now(6) <= 6


def test_a_learnable_k_has_the_derivative_of_its_formula():
    layer = so.nn.SoftTopK(2, learnable_k=True)
    with torch.no_grad():
        layer.logit_k.fill_(0.3)
    k = layer.k_now(6)
    (slope,) = torch.autograd.grad(k, layer.logit_k)
    torch.testing.assert_close(slope.double(), (k * (1 - k / 6)).detach())


def test_a_k_that_learns_finds_how_many_there_are():
    scores = torch.cat([torch.randn(32, 4) + 4, torch.randn(32, 12) - 4], -1)
    wanted = (torch.arange(16) < 4).float().expand(32, -1)
    layer = so.nn.SoftTopK(10, learnable_k=True)
    optimiser = torch.optim.Adam(layer.parameters(), lr=0.2)
    for _ in range(60):
        optimiser.zero_grad()
        (layer(scores) - wanted).square().mean().backward()
        optimiser.step()
    assert abs(layer.k_now(16).item() - 4) < 0.3
    other = _reloaded(layer, so.nn.SoftTopK(1, learnable_k=True))
    assert torch.equal(other(scores), layer(scores))


def test_a_k_for_every_row():
    layer = so.nn.SoftTopK(torch.tensor([1.0, 2.0, 3.0, 4.0]), learnable_k=True)
    layer(_scores()).square().sum().backward()
    assert layer.logit_k.grad.shape == (4,)
    torch.testing.assert_close(layer(_scores()).sum(-1), torch.tensor([1.0, 2.0, 3.0, 4.0]))


def test_attention_learns_k():
    x = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))
    plain = so.nn.TopKAttention(8, 2, 3, batch_first=True)
    layer = so.nn.TopKAttention(8, 2, 3, batch_first=True, learnable_k=True)
    layer.load_state_dict(plain.state_dict(), strict=False)
    torch.testing.assert_close(layer(x, x, x)[0], plain(x, x, x)[0])
    layer(x, x, x)[0].square().sum().backward()
    assert layer.logit_k.grad.abs() > 0

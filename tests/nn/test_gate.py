"""KHotGate, KHotHead and the two KL terms."""

import math
from functools import partial
from itertools import combinations

import pytest
import torch
from torch import nn

import softorder as so

_ESTIMATORS = {
    "straight_through": "straight_through",
    "second_order": "second_order",
    "relaxed": "relaxed",
    "hard relaxed": partial(so.estimators.relaxed, temperature=0.5, hard=True),
    "simple": "simple",
}
_every_estimator = pytest.mark.parametrize("estimator", _ESTIMATORS.values(), ids=_ESTIMATORS)


def _gate(*arguments, logits=None, **options):
    torch.manual_seed(0)
    gate = so.nn.KHotGate(*arguments, **options)
    if logits is not None:
        with torch.no_grad():
            gate.logits.copy_(torch.as_tensor(logits))
    return gate


@_every_estimator
def test_every_estimator_opens_k_and_teaches(estimator):
    gate = _gate(6, 2, estimator=estimator)
    x = torch.rand(50, 6) + 1
    result = gate(x)
    opened = result / x
    torch.testing.assert_close(opened.sum(-1), torch.full((50,), 2.0))
    if estimator != "relaxed":
        assert opened.detach().round(decimals=4).unique().tolist() == [0.0, 1.0]
        assert len(opened.detach().round().unique(dim=0)) > 5  # every item has its own choice
    (result * torch.arange(6.0)).sum().backward()
    assert gate.logits.grad.isfinite().all()
    assert gate.logits.grad[-1] > 0 > gate.logits.grad[0]


def test_draws_have_the_probabilities_of_the_law():
    """Of 20,000 draws: six standard errors of a frequency are 0.0212 at most."""
    gate = _gate(5, 2, logits=[2.0, 1.0, 0.0, -1.0, -2.0])
    frequency = gate(torch.ones(20_000, 5)).mean(0)
    expected = so.soft_topk(gate.logits, 2, method="logistic")
    assert (frequency - expected).abs().max() < 0.0212


@pytest.mark.parametrize("k", [2, None])
@pytest.mark.parametrize("method", ["laplace", None])
def test_the_temperature_divides_the_logits(k, method):
    options = {"method": method, "temperature": 0.5, "learnable_temperature": True}
    gate = _gate(5, k, logits=[2.0, 1.0, 0.0, -1.0, -2.0], **options)
    plain = _gate(5, k, logits=[4.0, 2.0, 0.0, -2.0, -4.0], method=method)
    torch.testing.assert_close(gate.law().probs, plain.law().probs)
    gate(torch.ones(8, 5))[:, 0].sum().backward()
    assert gate.log_temperature.grad < 0  # cooler, and the first is chosen more often
    assert _gate(6, start=2.0, temperature=0.3, method=method).size().item() == pytest.approx(2.0)


def test_a_temperature_for_each_item():
    logits, tau = torch.randn(3, 5), torch.tensor([0.1, 1.0, 3.0])
    for gate in (_gate(None, 2, temperature=tau), so.nn.KHotHead(4, 5, 2, temperature=tau).gate):
        expected = so.soft_topk(logits, 2, method="logistic", temperature=tau)
        law = gate.law(logits)
        torch.testing.assert_close(law.relaxation.probs(law.logits), expected)


def test_in_eval_mode_the_k_best_are_open():
    gate = _gate(5, 2, logits=[0.0, 3.0, 1.0, 2.0, -1.0]).eval()
    x = torch.rand(4, 5)
    assert torch.equal(gate(x), x * torch.tensor([0.0, 1.0, 0.0, 1.0, 0.0]))
    assert gate.selected().tolist() == [1, 3]
    ties = _gate(5, 2).eval()
    assert ties.selected().tolist() == [0, 1]


@pytest.mark.parametrize("dim", [1, -3])
def test_channels_are_opened_as_a_whole(dim):
    gate = _gate(6, 2, dim=dim)
    result = gate(torch.ones(7, 6, 4, 3))
    open_ = result.flatten(2)
    assert (open_ == open_[..., :1]).all()
    assert (open_[..., 0].sum(1) == 2).all()


def test_features_along_several_axes_are_one_choice():
    gate = _gate(12, 5, dim=(1, 3))
    result = gate(torch.ones(7, 4, 2, 3))
    assert (result[:, :, 0] == result[:, :, 1]).all()
    assert (result[:, :, 0].flatten(1).sum(1) == 5).all()
    assert len(result[:, :, 0].unique(dim=0)) > 3  # every item has its own choice
    logits = torch.arange(12.0).flip(0)
    flat, joined = (
        _gate(12, 5, logits=logits).eval(),
        _gate(12, 5, dim=(1, 3), logits=logits).eval(),
    )
    x = torch.rand(7, 4, 2, 3)
    expected = flat(x.movedim(2, 1).flatten(2)).unflatten(-1, (4, 3)).movedim(1, 2)
    torch.testing.assert_close(joined(x), expected)
    assert _gate(12, 5, dim=None)(torch.ones(4, 3)).sum() == 5
    with pytest.raises(ValueError, match="x must have 12 features along dim, but got 8"):
        joined(torch.ones(7, 4, 2, 2))


def test_a_temperature_that_the_logits_find():
    torch.manual_seed(0)
    logits = torch.randn(6, 20) * 50
    gate = _gate(None, 4, temperature=so.Auto(softness=0.2))
    gate(torch.ones(6, 20), logits)
    found = so.calibrate_temperature(
        logits, 4, softness=0.2, method="logistic", shared=True, differentiable=False
    )
    assert gate.calibrated
    torch.testing.assert_close(gate.temperature.double(), found.double(), rtol=0.02, atol=0)
    kept = gate.temperature.clone()
    gate(torch.ones(6, 20), logits / 50)
    assert torch.equal(gate.temperature, kept)
    head = so.nn.KHotHead(4, 5, 2, temperature="auto")
    head(torch.randn(3, 4))
    assert head.gate.calibrated
    own = _gate(5, 2, logits=[2.0, 1.0, 0.0, -1.0, -2.0])
    own.temperature = "auto"
    assert own(torch.ones(5)).sum() == 2
    assert own.calibrated
    with pytest.raises(
        ValueError, match="temperature must be a number or a tensor for a gate with"
    ):
        so.nn.KHotGate(4, 2, temperature="auto")
    with pytest.raises(ValueError, match="k must be a number with temperature='auto', but got No"):
        so.nn.KHotGate(None, temperature="auto")


def test_without_a_batch():
    assert _gate(6, 2)(torch.ones(6)).sum() == 2


# ---- learned size -----------------------------------------------------------------------------


def test_a_learned_size_starts_where_it_was_told_and_is_met_on_average():
    """Sizes are 3 or 4, 1/4 of them 3: six standard errors of 4,000 draws are 0.042."""
    gate = _gate(10, start=3.75)
    torch.testing.assert_close(gate.size(), torch.tensor(3.75))
    sizes = gate(torch.ones(4_000, 10)).sum(-1).detach()
    assert sizes.unique().tolist() == [3.0, 4.0]
    assert abs(sizes.mean().item() - 3.75) < 0.042
    torch.testing.assert_close(_gate(10).size(), torch.tensor(5.0))


def test_the_price_of_the_size_closes_what_is_not_needed():
    """Two of eight features carry the target; λ Σ π takes the others away."""
    torch.manual_seed(0)
    gate, model = _gate(8), nn.Linear(8, 1)
    optimiser = torch.optim.Adam([*gate.parameters(), *model.parameters()], lr=0.05)
    for _ in range(400):
        x = torch.randn(64, 8)
        wanted = 2 * x[:, 2] - 3 * x[:, 5]
        loss = (model(gate(x)).squeeze(-1) - wanted).square().mean() + 0.3 * gate.size()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert gate.selected().tolist() == [2, 5]
    assert gate.size().item() < 2.7


def test_a_fixed_size_finds_what_is_needed():
    torch.manual_seed(0)
    gate, model = _gate(8, 2), nn.Linear(8, 1)
    optimiser = torch.optim.Adam([*gate.parameters(), *model.parameters()], lr=0.05)
    for _ in range(300):
        x = torch.randn(64, 8)
        wanted = 2 * x[:, 2] - 3 * x[:, 5]
        loss = (model(gate(x)).squeeze(-1) - wanted).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert gate.selected().tolist() == [2, 5]


# ---- logits from elsewhere --------------------------------------------------------------------


def test_a_router_chooses_for_every_item():
    gate = _gate(None, 2)
    logits = torch.randn(40, 6, requires_grad=True)
    x = torch.ones(40, 6)
    assert (gate(x, logits).sum(-1) == 2).all()
    assert gate.mask(logits=logits).shape == (40, 6)
    gate(x, logits).square().mul(torch.arange(6.0)).sum().backward()
    assert logits.grad.abs().sum() > 0
    assert list(gate.parameters()) == []
    assert (gate(torch.ones(40, 3, 6), logits).sum(-1) == 2).all()
    assert (gate(x, logits[0]).sum(-1) == 2).all()
    best = gate.eval()(x, logits)
    assert torch.equal(best, so.hard.topk(logits, 2))


def test_state_dict_round_trip():
    source, target = _gate(5, 2, logits=[0.0, 3.0, 1.0, 2.0, -1.0]), _gate(5, 2)
    target.load_state_dict(source.state_dict())
    assert torch.equal(target.selected(), source.selected())


def test_autocast():
    gate, layer = _gate(6, 2), nn.Linear(6, 6)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        result = gate(layer(torch.randn(9, 6)))
    result.float().square().sum().backward()
    assert gate.logits.grad.isfinite().all()
    assert gate.logits.grad.abs().sum() > 0


@pytest.mark.parametrize("training", [True, False])
def test_compiles_to_one_graph(training):
    """With the same random numbers as eager mode."""
    gate, layer = _gate(6, 2), nn.Linear(6, 6)
    model = nn.Sequential(layer, gate).train(training)
    torch.compiler.reset()
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    x, results = torch.randn(9, 6), []
    for called in (model, compiled):
        torch.manual_seed(1)
        model.zero_grad()
        result = called(x)
        result.square().sum().backward()
        results.append((result.detach(), layer.weight.grad.clone()))
    for eager, traced in zip(*results, strict=True):
        torch.testing.assert_close(traced, eager)


@pytest.mark.slow
def test_a_head_compiles_to_one_graph():
    head = so.nn.KHotHead(features=4, n=6, k=2, groups=2)
    torch.compiler.reset()
    compiled = torch.compile(lambda x: head(x).code, backend="aot_eager", fullgraph=True)
    x, found = torch.randn(3, 4), []
    for called in (lambda x: head(x).code, compiled):
        torch.manual_seed(1)
        code = called(x)
        found.append((code, *torch.autograd.grad(code.cumsum(-1).sum(), head.linear.weight)))
    torch.testing.assert_close(found[1], found[0])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .grad attribute")  # dynamo's own, after a graph break
@pytest.mark.parametrize("design", ["brewer", "pareto_adjusted"])
def test_designs_whose_steps_depend_on_numbers_break_the_graph(design):
    gate = so.nn.KHotGate(6, 2, design=design)
    torch.compiler.reset()
    result = torch.compile(gate, backend="aot_eager")(torch.ones(9, 6))
    assert (result.sum(-1) == 2).all()
    result.cumsum(-1).sum().backward()
    assert gate.logits.grad.isfinite().all()


def test_wrong_arguments():
    for arguments, options, error, message in [
        ((0, 1), {}, ValueError, "features must be at least 1"),
        ((5, 6), {}, ValueError, "k must be at most features = 5, but got 6"),
        ((5, 0), {}, ValueError, "k must be finite and > 0"),
        ((5, 2), {"start": 3}, ValueError, "start must be None unless k is None"),
        ((5,), {"start": 5}, ValueError, "start must be between 0 and features = 5, but got 5"),
        ((5, 2), {"estimator": "score_function"}, ValueError, "needs the loss"),
        ((5, 2), {"estimator": "straight"}, ValueError, "estimator must be one of"),
        ((5, 2), {"temperature": 0.0}, ValueError, "temperature must be finite and > 0"),
        ((5, 2), {"method": "soft"}, ValueError, "method must be one of laplace"),
        ((5, 2), {"design": "pivot"}, ValueError, "did you mean 'pivotal'"),
    ]:
        with pytest.raises(error, match=message):
            so.nn.KHotGate(*arguments, **options)
    with pytest.raises(ValueError, match="x must have 5 features along dim, but got 4"):
        _gate(5, 2)(torch.ones(3, 4))
    with pytest.raises(ValueError, match="logits must be given to a gate"):
        _gate(None, 2)(torch.ones(3, 4))
    with pytest.raises(ValueError, match="logits must be None for a gate that has"):
        _gate(4, 2)(torch.ones(3, 4), torch.ones(3, 4))
    for wrong in (torch.ones(2, 4), torch.ones(3, 5, 4)):
        with pytest.raises(ValueError, match=r"logits must have shape \(4,\) or \(items, 4\)"):
            _gate(None, 2)(torch.ones(3, 4), wrong)
    with pytest.raises(ValueError, match="logits must be a single row here"):
        _gate(None, 2).selected(torch.ones(3, 4))


def test_repr_tells_how_it_was_made():
    for part in ("features=5", "k=2", "estimator='simple'", "design='pareto_corrected'"):
        assert part in repr(_gate(5, 2, estimator="simple"))


# ---- codes ------------------------------------------------------------------------------------


@_every_estimator
def test_codes_have_k_ones_in_each_group(estimator):
    torch.manual_seed(0)
    head = so.nn.KHotHead(8, n=6, k=2, groups=3, estimator=estimator)
    x = torch.randn(5, 4, 8)
    code, law = head(x)
    assert code.shape == (5, 4, 18)
    assert law.batch_shape == (5, 4, 3)
    torch.testing.assert_close(code.unflatten(-1, (3, 6)).sum(-1), torch.full((5, 4, 3), 2.0))
    code.mul(torch.arange(18.0)).sum().backward()
    assert head.linear.weight.grad.abs().sum() > 0
    fixed = head.eval()(x).code
    assert torch.equal(fixed, so.hard.topk(law.logits, 2).flatten(-2))


def test_the_exact_kl_is_a_sum_over_all_subsets():
    torch.manual_seed(0)
    logits = torch.randn(2, 3, 5, dtype=torch.float64)
    law = so.distributions.KHot(2, logits=logits)
    subsets = torch.zeros(10, 5, dtype=torch.float64)
    for row, units in enumerate(combinations(range(5), 2)):
        subsets[row, list(units)] = 1
    logs = (logits @ subsets.T).log_softmax(-1)
    expected = (logs.exp() * (logs + math.log(10))).sum((-1, -2))
    torch.testing.assert_close(so.nn.functional.khot_kl(law), expected)


def test_the_kl_of_the_paper_is_that_of_a_softmax():
    torch.manual_seed(0)
    logits = torch.randn(2, 3, 5, dtype=torch.float64)
    law = so.distributions.KHot(2, logits=logits, design="pivotal")
    of = torch.distributions.Categorical
    expected = torch.distributions.kl_divergence(of(logits=logits), of(torch.ones(5).double()))
    torch.testing.assert_close(so.nn.functional.khot_kl(law, "softmax"), expected.sum(-1))
    with pytest.raises(ValueError, match="kind must be one of exact, softmax"):
        so.nn.functional.khot_kl(law, "paper")


def test_an_autoencoder_learns_by_either_kl():
    for kind in ("exact", "softmax"):
        torch.manual_seed(0)
        head, decoder = so.nn.KHotHead(8, n=6, k=3, groups=2), nn.Linear(12, 8)
        optimiser = torch.optim.Adam([*head.parameters(), *decoder.parameters()], lr=0.04)
        x = (torch.randn(200, 2) @ torch.randn(2, 8) > 0).float()
        losses = []
        for _ in range(40):
            code, law = head(2 * x - 1)
            missed = nn.functional.binary_cross_entropy_with_logits(decoder(code), x) * 8
            loss = missed + 0.1 * so.nn.functional.khot_kl(law, kind).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        assert losses[-1] < 0.8 * losses[0]


def test_wrong_heads():
    for options, message in [
        ({"k": 7}, "k must be between 1 and 6, but got 7"),
        ({"n": 0}, "n must be at least 1"),
        ({"groups": 0}, "groups must be at least 1"),
    ]:
        with pytest.raises(ValueError, match=message):
            so.nn.KHotHead(**{"features": 8, "n": 6, "k": 2, **options})

"""SoftKNN against enumeration, scikit-learn and its own limits."""

import copy
import math

import pytest
import torch
from sklearn.neighbors import KNeighborsClassifier
from torch import nn

import softorder as so
from tests.nn.close import assert_compiles

_LOSSES = ["share", "log_share"]


def _serving(operator):
    return sorted(row.name for row in so.methods() if row.operator == operator)


_DISTANCES = ["euclidean", "squared"]


def _data(n=30, features=3, classes=3, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, features, generator=generator, dtype=dtype)
    return x, torch.randint(classes, (n,), generator=generator)


def _model(**options):
    torch.manual_seed(0)
    return so.nn.SoftKNN(nn.Linear(3, 2), **{"k": 4, "temperature": 0.3, **options})


# ---- the loss ---------------------------------------------------------------------------------


def _share_by_loops(model, features, labels, templates, template_labels, itself):
    """The share of every query, one by one, from distances that are written out."""
    shares = []
    for i, query in enumerate(features):
        kept = [j for j in range(len(templates)) if not (itself and i == j)]
        lengths = torch.stack([(query - templates[j]).square().sum() for j in kept])
        lengths = lengths if model.distance == "squared" else lengths.sqrt()
        weights = so.soft_topk(
            lengths, model.k, largest=False, method=model.method, temperature=model.temperature
        )
        own = torch.tensor([template_labels[j] == labels[i] for j in kept])
        shares.append(weights[own].sum() / model.k)
    return torch.stack(shares)


@pytest.mark.parametrize("loss", _LOSSES)
@pytest.mark.parametrize("distance", _DISTANCES)
@pytest.mark.parametrize("leave_one_out", [True, False])
def test_loss_is_its_definition(loss, distance, leave_one_out):
    model = _model(loss=loss, distance=distance, method="logistic").double()
    (x, labels), (t, template_labels) = _data(dtype=torch.float64), _data(20, seed=1)
    t = t.double()
    arguments = (x, labels) if leave_one_out else (x, labels, t, template_labels)
    others = (model.features(x), labels) if leave_one_out else (model.features(t), template_labels)
    shares = _share_by_loops(model, model.features(x), labels, *others, leave_one_out)
    expected = 1 - shares.mean() if loss == "share" else -shares.log().mean()
    torch.testing.assert_close(model(*arguments), expected)


@pytest.mark.parametrize("method", _serving("soft_topk"))
def test_every_method_teaches(method):
    model = _model(method=method)
    x, labels = _data()
    model(x, labels).backward()
    assert model.network.weight.grad.isfinite().all()
    assert model.network.weight.grad.abs().sum() > 0


@pytest.mark.parametrize("method", _serving("log_soft_topk"))
def test_every_method_with_a_logarithm_teaches_by_it(method):
    model = _model(method=method, loss="log_share")
    x, labels = _data()
    loss = model(x, labels)
    loss.backward()
    assert loss.isfinite()
    assert model.network.weight.grad.isfinite().all()
    assert model.network.weight.grad.abs().sum() > 0


def test_a_cold_loss_counts_the_hard_neighbours():
    model = _model(k=4, temperature=1e-7)
    (x, labels), (t, template_labels) = _data(), _data(40, seed=1)
    _, indices = model.remember(t, template_labels).kneighbors(x)
    other = (template_labels[indices] != labels.unsqueeze(1)).float().mean()
    torch.testing.assert_close(model(x, labels, t, template_labels), other)


def test_a_query_alone_in_its_class_teaches_nothing_by_the_logarithm():
    model = _model(loss="log_share")
    x, labels = _data()
    expected = model(x[1:], labels[1:], x, labels)
    lonely = torch.where(torch.arange(30) == 0, 7, labels)
    together = model(x, lonely, x, labels)  # no template has the class of the first query
    torch.testing.assert_close(together, expected)
    together.backward()
    assert model.network.weight.grad.isfinite().all()
    nobody = model(x[:5], torch.full((5,), 7), x, labels)
    assert nobody == 0


def test_the_logarithm_reaches_where_the_share_has_underflowed():
    model = so.nn.SoftKNN(nn.Identity(), 1, temperature=0.01, loss="log_share")
    templates = torch.tensor([[0.0], [5.0]])
    far = torch.tensor([[0.1]], requires_grad=True)
    loss = model(far, torch.tensor([1]), templates, torch.tensor([0, 1]))
    loss.backward()
    # one threshold between them: both ends of the exponential tails, log(1/2) + (d₀ - d₁)/2τ
    assert math.isclose(loss.item(), math.log(2) + (4.9 - 0.1) / 0.02, rel_tol=1e-4)
    assert math.isclose(far.grad.item(), -2 / 0.02, rel_tol=1e-4)


def test_a_learnable_temperature_learns():
    model = _model(learnable_temperature=True)
    x, labels = _data()
    model(x, labels).backward()
    assert model.log_temperature.grad.abs() > 0


@pytest.mark.parametrize("method", ["laplace", "cauchy", "uniform"])
@pytest.mark.parametrize("learnable", [True, False])
def test_calibrate_gives_the_wanted_softness(method, learnable):
    model = _model(method=method, learnable_temperature=learnable, k=3)
    x, _ = _data(60)
    templates = _data(80, seed=1)[0]
    found = model.calibrate(x, templates, softness=0.2)
    assert math.isclose(found, torch.as_tensor(model.temperature).item(), rel_tol=1e-6)
    scores = -torch.cdist(model.features(x), model.features(templates))
    soft = so.soft_topk(scores, 3, method=method, temperature=found)
    outside = (soft * (1 - so.hard.topk(scores, 3))).sum(-1).mean() / 3
    assert math.isclose(outside.item(), 0.2 * (1 - 3 / 80), abs_tol=1e-6)
    assert model.calibrate(x) != found  # leave one out has other neighbours


def test_calibrate_where_all_points_are_one():
    assert _model().calibrate(torch.zeros(10, 3)) == 1.0


def test_training_finds_the_feature_that_counts():
    x, _ = _data(200)
    labels = (x[:, 2] > 0).long()
    x = x * torch.tensor([10.0, 10.0, 1.0])
    model = _model()
    model.calibrate(x)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.05)
    before = (model.remember(x[:100], labels[:100]).predict(x[100:]) == labels[100:]).float().mean()
    for _ in range(60):
        optimiser.zero_grad()
        model(x[:100], labels[:100]).backward()
        optimiser.step()
    after = (model.remember(x[:100], labels[:100]).predict(x[100:]) == labels[100:]).float().mean()
    assert before < 0.8
    assert after > 0.9


# ---- prediction -------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [1, 7, 4096])
def test_prediction_is_that_of_scikit_learn(block):
    model = _model(k=3)
    (x, labels), (q, _) = _data(50), _data(20, seed=1)
    model.remember(x, labels, batch=8)
    theirs = KNeighborsClassifier(3).fit(model.features(x).detach(), labels)
    features = model.features(q).detach().numpy()
    lengths, indices = model.kneighbors(q, block=block)
    expected = theirs.kneighbors(features)
    assert (indices.numpy() == expected[1]).all()
    torch.testing.assert_close(lengths, torch.from_numpy(expected[0]).float())
    shares = torch.from_numpy(theirs.predict_proba(features)).float()
    torch.testing.assert_close(model.predict_proba(q, block=block), shares)
    assert (model.predict(q).numpy() == theirs.predict(features)).all()


def test_neighbours_of_far_away_points_are_still_exact():
    """|q|² - 2qt + |t|² would have lost these differences altogether."""
    templates = 1e6 + torch.arange(8.0).unsqueeze(1)
    lengths, indices = so.nn.functional.nearest_neighbours(templates[3:4] + 0.25, templates, 3)
    assert indices.tolist() == [[3, 4, 2]]
    assert lengths.tolist() == [[0.25, 0.75, 1.25]]


def test_no_queries():
    model = _model().remember(*_data())
    lengths, indices = so.nn.functional.nearest_neighbours(torch.empty(0, 2), model.templates, 4)
    assert lengths.shape == indices.shape == (0, 4)


def test_the_table_of_distances_is_no_larger_than_a_block(monkeypatch):
    seen = []
    plain = torch.cdist
    monkeypatch.setattr(
        torch, "cdist", lambda a, b, **o: seen.append((len(a), len(b))) or plain(a, b, **o)
    )
    so.nn.functional.nearest_neighbours(torch.randn(20, 2), torch.randn(50, 2), 3, block=8)
    assert max(a * b for a, b in seen) == 64
    assert sum(a * b for a, b in seen) == 20 * 50


def test_prediction_does_not_use_dropout_and_leaves_the_mode():
    network = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.9))
    model = so.nn.SoftKNN(network, 3).train()
    x, labels = _data()
    model.remember(x, labels)
    assert torch.equal(model.predict_proba(x), model.predict_proba(x))
    assert (model.kneighbors(x)[0][:, 0] == 0).all()
    assert network[1].training


@pytest.mark.parametrize("learnable", [True, False])
def test_state_dict_round_trip_carries_the_templates(learnable):
    source = _model(learnable_temperature=learnable, temperature=0.7).remember(*_data())
    torch.manual_seed(9)
    target = so.nn.SoftKNN(nn.Linear(3, 2), 4, temperature=0.7, learnable_temperature=learnable)
    target.load_state_dict(source.state_dict())
    q, labels = _data(10, seed=4)
    assert torch.equal(source.predict_proba(q), target.predict_proba(q))
    assert torch.equal(source(q, labels), target(q, labels))
    assert torch.equal(copy.deepcopy(source).predict(q), source.predict(q))


def test_inputs_of_any_shape():
    network = nn.Conv2d(1, 2, 3)
    model = so.nn.SoftKNN(network, 2)
    images, labels = torch.randn(9, 1, 5, 5), torch.arange(9) % 2
    model(images, labels).backward()
    assert model.remember(images, labels).predict(images[:4]).shape == (4,)


@pytest.mark.parametrize("loss", _LOSSES)
def test_compiles(loss):
    model = _model(loss=loss, learnable_temperature=True)
    x, labels = _data()
    assert_compiles(model, x, labels, parameters=model.parameters())


def test_autocast():
    model = _model()
    x, labels = _data()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(x, labels)
    torch.testing.assert_close(loss.float(), model(x, labels), rtol=0.1, atol=0.05)
    loss.backward()
    assert model.network.weight.grad.isfinite().all()


# ---- errors -----------------------------------------------------------------------------------


def test_wrong_options():
    for options, message in [
        ({"k": 0}, "k must be at least 1"),
        ({"loss": "log"}, "loss must be one of share, log_share, but got 'log'"),
        ({"distance": "euclidian"}, "did you mean 'euclidean'"),
        ({"method": "neuralsort", "loss": "log_share"}, "method must be one of"),
        ({"temperature": -1.0}, "temperature must be finite and > 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            _model(**options)


def test_wrong_calls():
    x, labels = _data()
    model = _model()
    for arguments, error, message in [
        ((x, labels[:5]), ValueError, r"labels must have shape \(30,\)"),
        ((x, labels.float()), TypeError, "labels must hold integers, but got a tensor of float32"),
        ((x, labels - 5), ValueError, "labels must be >= 0, but got -5"),
        ((x, labels.tolist()), TypeError, "labels must be a tensor of integers, but got list"),
        ((x, labels, x), ValueError, "must be given together, but template_labels is None"),
        ((x[:4], labels[:4]), ValueError, "k must be between 1 and 3, the number of templates"),
        ((x, labels, x[:2], labels[:2]), ValueError, "k must be between 1 and 2"),
        ((x, labels, x, labels[:9]), ValueError, r"template_labels must have shape \(30,\)"),
    ]:
        with pytest.raises(error, match=message):
            model(*arguments)
    with pytest.raises(RuntimeError, match="call remember first"):
        model.predict(x)
    with pytest.raises(ValueError, match="softness must be between 0 and 1"):
        model.calibrate(x, softness=2.0)
    with pytest.raises(ValueError, match="same number of features, but got 2 and 3"):
        so.nn.functional.soft_neighbours(x[:, :2], x, 3)
    with pytest.raises(ValueError, match=r"queries must have the axes \(points, features\)"):
        so.nn.functional.soft_neighbours(x[None], x, 3)
    with pytest.raises(ValueError, match="block must be at least 1"):
        so.nn.functional.nearest_neighbours(x, x, 3, block=0)

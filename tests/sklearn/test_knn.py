"""SoftKNNClassifier: the contract of scikit-learn, and what it promises beyond."""

import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.estimator_checks import check_estimator
from torch import nn

import softorder as so
from tests.runtime.processes import run_fresh

SoftKNNClassifier = so.sklearn.SoftKNNClassifier


def _digits(n=300):
    x, y = load_digits(return_X_y=True)
    return train_test_split(x[:n] / 16, y[:n], random_state=0, test_size=0.4)


def _fitted(**options):
    x, _, y, _ = _digits()
    return SoftKNNClassifier(**{"epochs": 5, "random_state": 0, **options}).fit(x, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")  # pandas is not here
@pytest.mark.parametrize("options", [{}, {"early_stopping": True, "patience": 3}], ids=str)
def test_passes_check_estimator(options):
    checks = check_estimator(SoftKNNClassifier(epochs=20, **options), on_fail=None)
    failed = [c for c in checks if c["status"] not in ("passed", "skipped")]
    assert not failed, failed
    assert len(checks) > 40


def test_learns_more_than_plain_neighbours():
    x, xt, y, yt = _digits()
    random = np.random.RandomState(0)
    for table in (x, xt):  # every other pixel is noise, twice as loud as what it covers
        table[:, ::2] = random.randn(len(table), 32)
    plain = KNeighborsClassifier(5).fit(x, y).score(xt, yt)
    learned = SoftKNNClassifier(5, epochs=60, random_state=0).fit(x, y).score(xt, yt)
    assert learned > plain + 0.15, (learned, plain)


def test_prediction_is_that_of_the_neighbours_in_the_learned_space():
    x, xt, y, _ = _digits()
    model = _fitted(k=3)
    with torch.no_grad():
        features, queries = (
            model.model_.features(torch.tensor(v, dtype=torch.float32)).numpy() for v in (x, xt)
        )
    plain = KNeighborsClassifier(3).fit(features, y)
    np.testing.assert_allclose(model.predict_proba(xt), plain.predict_proba(queries), atol=1e-6)
    assert (model.predict(xt) == plain.predict(queries)).all()
    assert (model.kneighbors(xt)[1] == plain.kneighbors(queries)[1]).all()


def test_early_stopping_stops_and_keeps_the_best():
    x = _digits()[0]
    model = _fitted(epochs=200, early_stopping=True, patience=3, validation_fraction=0.2)
    scores = model.validation_scores_
    assert model.n_iter_ == len(scores) < 200
    assert np.argmax(scores) == len(scores) - 1 - 3
    assert len(model.model_.templates) == len(x)  # the held-out items are templates, too
    again = _fitted(epochs=int(np.argmax(scores)) + 1, early_stopping=True, patience=3,
                    validation_fraction=0.2)  # fmt: skip
    assert torch.equal(again.model_.network[0].weight, model.model_.network[0].weight)


def test_partial_fit_learns_and_collects_templates():
    x, xt, y, yt = _digits()
    model = SoftKNNClassifier(random_state=0)
    for part in np.array_split(np.arange(len(x)), 4):
        model.partial_fit(x[part], y[part], classes=np.arange(10))
    assert len(model.model_.templates) == len(x)
    assert model.n_iter_ == 4
    first = model.score(xt, yt)
    for _ in range(3):
        model.partial_fit(x[:60], y[:60])
    assert len(model.model_.templates) == len(x) + 180
    assert first > 0.7
    assert model.loss_curve_[-1] < model.loss_curve_[0]


@pytest.mark.parametrize("labels", ["int", "str"])
@pytest.mark.parametrize("learnable", [True, False])
def test_save_and_load(tmp_path, labels, learnable):
    x, xt, y, _ = _digits()
    y = y.astype(str) if labels == "str" else y
    model = SoftKNNClassifier(epochs=3, learnable_temperature=learnable, random_state=0).fit(x, y)
    model.save(tmp_path / "model.pt")
    loaded = SoftKNNClassifier.load(tmp_path / "model.pt")
    assert (loaded.predict(xt) == model.predict(xt)).all()
    assert loaded.predict(xt).dtype == model.predict(xt).dtype
    assert loaded.loss_curve_ == model.loss_curve_
    assert torch.as_tensor(loaded.model_.temperature) == torch.as_tensor(model.model_.temperature)
    with pytest.raises(RuntimeError, match="partial_fit needs one that was fitted"):
        loaded.partial_fit(x, y)
    with pytest.raises(ValueError, match="64 features"):
        loaded.predict(xt[:, :5])


def test_a_network_of_your_own(tmp_path):
    x, xt, y, yt = _digits()
    torch.manual_seed(0)
    network = nn.Sequential(nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(),
                            nn.Linear(288, 16))  # fmt: skip
    before = network[1].weight.clone()
    model = SoftKNNClassifier(3, network=network, epochs=15, random_state=0).fit(x, y)
    assert torch.equal(network[1].weight, before)  # a copy was trained
    assert model.score(xt, yt) > 0.9
    model.save(tmp_path / "model.pt")
    with pytest.raises(ValueError, match="network must be given"):
        SoftKNNClassifier.load(tmp_path / "model.pt")
    loaded = SoftKNNClassifier.load(tmp_path / "model.pt", network)
    assert (loaded.predict(xt) == model.predict(xt)).all()


def test_the_same_seed_is_the_same_model_and_the_global_one_is_untouched():
    state = torch.get_rng_state()
    a, b, c = _fitted(), _fitted(), _fitted(random_state=1)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(a.model_.templates, b.model_.templates)
    assert not torch.equal(a.model_.templates, c.model_.templates)


def test_pickles_and_clones_and_searches():
    x, xt, y, _ = _digits(150)
    model = _fitted()
    assert (pickle.loads(pickle.dumps(model)).predict(xt) == model.predict(xt)).all()
    search = GridSearchCV(SoftKNNClassifier(epochs=2, random_state=0), {"k": [1, 3]}, cv=2)
    assert search.fit(x, y).best_params_["k"] in (1, 3)
    assert clone(model).get_params() == model.get_params()


def test_small_batches_never_starve_a_query():
    x, _, y, _ = _digits()
    assert _fitted(k=20, batch_size=4).n_iter_ == 5
    assert SoftKNNClassifier(5, epochs=1).fit(x[:6], y[:6]).n_iter_ == 1


def test_the_progress_bar(capsys):
    _fitted(verbose=True)
    assert "loss 0." in capsys.readouterr().err
    _fitted()
    assert capsys.readouterr().err == ""


def test_wrong_options():
    x, _, y, _ = _digits()
    for options, message in [
        ({"k": 0}, "k must be at least 1"),
        ({"k": 180}, "k must be less than n_samples=180"),
        ({"epochs": 0}, "epochs must be at least 1"),
        ({"temperature": "hot"}, "temperature must be one of auto"),
        ({"method": "lapsum"}, "did you mean 'laplace'"),
        ({"validation_fraction": 2}, "validation_fraction must be between 0 and 1"),
    ]:
        with pytest.raises(ValueError, match=message):
            SoftKNNClassifier(**options).fit(x, y)
    with pytest.raises(ValueError, match="classes must be given in the first call"):
        SoftKNNClassifier().partial_fit(x, y)
    with pytest.raises(ValueError, match="y must hold the classes"):
        SoftKNNClassifier().partial_fit(x, y, classes=[0, 1])


def test_scikit_learn_is_loaded_when_it_is_needed_and_missed_with_advice():
    script = """
import sys
import softorder as so
print("sklearn" in sys.modules)
sys.modules["sklearn"] = None
try:
    so.sklearn
except ImportError as error:
    print(error)
"""
    loaded, advice = run_fresh(script).splitlines()
    assert loaded == "False"
    assert 'pip install "softorder[sklearn]"' in advice

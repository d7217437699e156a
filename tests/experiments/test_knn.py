"""Nearest neighbours: every arm in a tiny run, baselines against formulas, tuning, pictures."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import softorder as so
from experiments.bfloat16 import Bfloat16
from experiments.data.idx import Images
from experiments.experiment import Setting
from experiments.knn import baselines, config, data, experiment, pictures, training
from experiments.knn.methods import Arm, every, spread
from experiments.knn.networks import NETWORKS
from experiments.trials import Trials
from tests.experiments.test_data import write_cifar10

_TINY = {"steps": 5, "tuning_steps": 2, "factors": (1.0,)}


def _session(settings, folder=None):
    return experiment.Session(settings, Setting(folder), Trials("", {}))


def test_digits_are_split_once_for_all_seeds():
    first, second = (data.load("digits", Setting(), 500, seed) for seed in (0, 1))
    assert len(first.labels) == 500
    assert len(first.test_labels) == 797
    assert torch.equal(first.test_images, second.test_images)
    assert not torch.equal(first.images, second.images)


def test_what_is_tuned_on_is_neither_learned_from_nor_tested():
    found = data.for_tuning("digits", Setting(), 500)
    every = data.load("digits", Setting(), 1000, 0)
    learned, judged, tested = (
        {row.numpy().tobytes() for row in x}
        for x in (found.images, found.test_images, every.test_images)
    )
    assert len(judged) == 500
    assert not judged & learned
    assert not judged & tested
    assert not learned & tested


def test_every_arm_runs():
    settings = replace(config.PRESETS["quick"], **_TINY, maps=())
    session = _session(settings)
    for arm in experiment.arms(settings):
        accuracy = session.trial(arm, 0)["accuracy"]
        least = 0.15 if arm == config.CROSS_ENTROPY else 0.6
        assert accuracy > least, (arm, accuracy)


@pytest.mark.parametrize("preset", config.PRESETS)
def test_every_network_fits_its_images_and_its_last_layer(preset):
    settings = replace(config.PRESETS[preset], width=4)
    shape = {"digits": (1, 8, 8), "mnist": (1, 28, 28), "cifar10": (3, 32, 32)}[settings.data]
    network, features = NETWORKS[settings.network]
    assert network(settings)(torch.zeros(2, *shape)).shape == (2, features(settings))


def test_neighbours_of_coloured_images(tmp_path):
    write_cifar10(tmp_path)
    changes = {"width": 4, "queries": 3, "templates": 5, "training": 15, "k": 2, "maps": ()}
    settings = replace(config.PRESETS["cifar10-small"], **_TINY | changes)
    session = _session(settings, tmp_path)
    for arm in (config.ON_CROSS_ENTROPY, config.AUTO_ENCODER, "laplace, share"):
        assert 0 <= session.trial(arm, 0)["accuracy"] <= 1


def test_every_variant_runs_with_what_it_changes(tmp_path):
    write_cifar10(tmp_path)
    changes = {"width": 4, "training": 15, "k": 2, "steps": 1, "queries": 3, "templates": 5}
    settings = replace(config.PRESETS["cifar10-why"], **changes)
    trial = experiment.session(settings, Setting(tmp_path), Trials("", {}))
    found = {arm: trial(arm, 0) for arm in ("as tuned before", "τ × 10", config.ON_CROSS_ENTROPY)}
    assert experiment.arms(settings) == list(config.VARIANTS)
    start = found["as tuned before"]["temperature"]
    assert found["τ × 10"]["temperature"] == pytest.approx(10 * start)
    assert all(-1 <= figures["agreement"] <= 1 for figures in found.values())
    for name in config.VARIANTS:
        one = config.varied(settings, name)
        assert len(experiment.arms(one)) == len(one.factors) == 1
        assert one.queries + one.templates in (8, 150)


def test_the_queries_may_be_each_others_templates():
    settings = replace(config.PRESETS["quick"], **_TINY, queries=40, templates=0, maps=())
    session = _session(settings)
    for arm in ("laplace, share", "softmax_k_times, share"):
        assert session.trial(arm, 0)["accuracy"] > 0.6
    x = torch.tensor([[0.0], [1.0], [3.0]])
    model = so.nn.SoftKNN(nn.Identity(), 1)
    rows = torch.tensor([[1.0, 3.0], [1.0, 2.0], [3.0, 2.0]])
    assert spread(model, x, None) == pytest.approx(rows.std(-1).mean().item())
    model.distance = "squared"
    assert spread(model, x, None) == pytest.approx(rows.square().std(-1).mean().item())


def test_gradients_agree_as_far_as_the_batch_does_not_matter():
    """Gradients (s, ±1) of equally likely signs: a cosine of s²/(s² + 1) on average."""
    settings = replace(config.PRESETS["quick"], queries=1, templates=0)
    body = nn.Linear(2, 1, bias=False)
    signs = torch.arange(1000) % 2 * 2 - 1
    images = Images(signs.view(-1, 1, 1, 1).float(), signs, signs, signs)
    before = torch.random.get_rng_state()
    for slope in (0.0, 1.0, 3.0):

        def loss(x, y, slope=slope):
            return body.weight[0, 0] * slope + body.weight[0, 1] * x.sum()

        found = training.agreement(body, images, settings, loss, batches=400)
        assert found == pytest.approx(slope**2 / (slope**2 + 1), abs=0.02)
    assert torch.equal(before, torch.random.get_rng_state())


def test_the_network_is_as_before_when_gradients_were_compared():
    settings = replace(config.PRESETS["quick"], queries=4, templates=0)
    body = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(3))
    kept = {name: value.clone() for name, value in body.state_dict().items()}
    labels = torch.arange(20)
    images = Images(torch.randn(20, 3), labels, torch.randn(2, 3), labels[:2])
    training.agreement(body, images, settings, lambda x, y: body(x).square().sum())
    assert all(torch.equal(kept[name], value) for name, value in body.state_dict().items())


def test_the_best_factor_is_taken_and_kept(monkeypatch):
    settings = replace(config.PRESETS["quick"], **_TINY | {"factors": (0.1, 1.0, 10.0)})
    session = _session(settings)
    scores = {0.1: 0.5, 1.0: 0.7, 10.0: 0.6}
    monkeypatch.setattr(session, "_tried", lambda name, images, factor: scores.pop(factor))
    assert session._factor("laplace, share") == 1.0
    assert session._factor("laplace, share") == 1.0  # not tried again: there is no score left
    known = Trials("", {})
    known.add("laplace, share", 3, {"factor": 10.0})
    again = experiment.Session(settings, Setting(), known)
    assert again._factor("laplace, share") == 10.0


def test_both_arms_of_cross_entropy_have_one_network(monkeypatch):
    session = _session(replace(config.PRESETS["quick"], **_TINY, maps=()))
    session.trial(config.CROSS_ENTROPY, 0)
    monkeypatch.setattr(session, "_fit", None)  # nothing is trained again
    assert session.trial(config.ON_CROSS_ENTROPY, 0)["accuracy"] > 0.6
    assert experiment.shared(config.CROSS_ENTROPY, 0) == experiment.shared(
        config.ON_CROSS_ENTROPY, 1
    )


def test_a_temperature_that_is_learned_moves_and_one_that_is_given_is_taken():
    settings = replace(config.PRESETS["alpha"], **_TINY, sweep=(0.1, 1.0))
    session = _session(settings)
    few, many = (session.trial(f"laplace, share, τ = {unit}", 0) for unit in ("0.1", "1"))
    assert many["temperature"] == pytest.approx(10 * few["temperature"])
    assert "end" not in few
    learned = session.trial("laplace, share, learned τ, τ = 0.1", 0)
    assert learned["temperature"] == pytest.approx(few["temperature"])
    assert learned["end"] != pytest.approx(learned["temperature"], rel=1e-4)


def test_principal_components_are_those_of_scikit_learn():
    from sklearn.decomposition import PCA

    images = torch.randn(200, 1, 4, 5) * torch.arange(1.0, 21.0).view(1, 1, 4, 5)
    ours = baselines.pca(images, 3)(images).double()
    theirs = PCA(3).fit(images.flatten(1).numpy())
    expected = torch.from_numpy(theirs.transform(images.flatten(1).numpy())).double()
    gaps = torch.cdist(ours, ours) - torch.cdist(expected, expected)
    assert gaps.abs().max() < 1e-3


def test_an_auto_encoder_draws_what_it_saw():
    torch.manual_seed(0)
    images = torch.rand(30, 1, 3, 3)
    coder = baselines.AutoEncoder(nn.Sequential(nn.Flatten(), nn.Linear(9, 9)), 9, 9)
    before = coder.loss(images).item()
    optimiser = torch.optim.Adam(coder.parameters(), lr=1e-2)
    for _ in range(100):
        optimiser.zero_grad()
        coder.loss(images).backward()
        optimiser.step()
    assert coder.loss(images).item() < 0.1 * before


def test_relax_sub_sample_is_the_formula_of_the_paper():
    """k softmaxes of log w + Gumbel noise, w = exp(-d/τ), each lowered by log(1 - p)."""
    distances, τ, k = torch.rand(4, 7, dtype=torch.float64), 0.2, 3
    arm = Arm("RelaxSubSample", "share")
    torch.manual_seed(0)
    found = so.soft_topk(-distances, k, method=arm.model(nn.Identity(), k).method, temperature=τ)
    torch.manual_seed(0)
    keys = -distances / τ - torch.empty_like(distances).exponential_().log()
    total = torch.zeros_like(keys)
    for _ in range(k):
        p = keys.softmax(-1)
        total, keys = total + p, keys + torch.log1p(-p)
    assert torch.allclose(found, total, atol=1e-10)


def test_sinkhorn_sort_adds_the_first_rows_of_the_whole_permutation():
    scores, k = torch.randn(3, 6, dtype=torch.float64), 2
    method = Arm("sinkhorn_sort", "share").model(nn.Identity(), k).method
    found = so.soft_topk(scores, k, method=method, temperature=0.5)
    rows = so.soft_permutation(scores, method="sinkhorn_sort", temperature=0.5, descending=True)
    assert torch.allclose(found, rows[:, :k].sum(1), atol=1e-9)
    assert torch.allclose(found.sum(-1), torch.full((3,), 2.0, dtype=torch.float64), atol=1e-9)


def test_sinkhorn_sort_trains():
    settings = replace(config.PRESETS["sort"], **_TINY | {"queries": 12, "templates": 12})
    assert _session(settings).trial("sinkhorn_sort, share", 0)["accuracy"] > 0.6


def test_shifted_images_keep_their_pixels():
    torch.manual_seed(0)
    images = torch.arange(2 * 3 * 36.0).view(2, 3, 6, 6).repeat(50, 1, 1, 1)
    moved = data.augmented(images, most=1)
    inner = images[:, :, 2:4, 2:4]
    windows = moved.unfold(2, 2, 1).unfold(3, 2, 1)
    same = (windows == inner[:, :, None, None]).all(-1).all(-1).all(1).flatten(1).any(1)
    mirrored = (windows == inner.flip(3)[:, :, None, None]).all(-1).all(-1).all(1).flatten(1).any(1)
    assert (same ^ mirrored).all()
    assert same.any()
    assert mirrored.any()
    assert torch.equal(data.augmented(images, most=0).sort(3).values, images)


def test_bfloat16_stays_inside():
    torch.manual_seed(0)
    body = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten())
    images = torch.randn(2, 3, 8, 8)
    exact = body(images)
    rounded = Bfloat16(body)(images)
    assert rounded.dtype == torch.float32
    assert not torch.equal(rounded, exact)
    assert torch.allclose(rounded, exact, atol=0.03)


@pytest.mark.slow
def test_maps_and_sweeps_are_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    images = data.load("digits", Setting(), 100, 0)
    kept = pictures.map_of(nn.Flatten(), images)
    assert set(kept["map_class"]) == set(range(10))
    centres = np.array([
        np.mean([(x, y) for x, y, c in zip(*kept.values(), strict=True) if c == d], 0)
        for d in range(10)
    ])  # fmt: skip
    places = np.array([kept["map_x"], kept["map_y"]]).T
    nearest = ((places[:, None] - centres) ** 2).sum(-1).argmin(1)
    assert (nearest == kept["map_class"]).mean() > 0.8  # classes lie together
    for preset in ("quick", "alpha"):
        settings = config.PRESETS[preset]
        trials = Trials("title", experiment.EXPERIMENT.config(preset))
        for arm in map(str, every(settings)):
            trials.add(arm, 0, {"accuracy": 0.9, **(kept if preset == "quick" else {})})
        pictures.draw(trials, tmp_path / f"{preset}.png")
        assert (tmp_path / f"{preset}.png").read_bytes().startswith(b"\x89PNG")

"""Sorting numbers: lists, every method in a tiny run, what a row of a matrix means, curves."""

import gzip
import struct
from dataclasses import replace

import pytest
import torch

import softorder as so
from experiments.experiment import Setting
from experiments.large_mnist_sort import config, criteria, experiment, numbers, pictures
from experiments.large_mnist_sort.model import hits
from experiments.trials import Trials

_TINY = {"steps": 4, "looks": 2, "images": 8, "test": 5, "validation": 3, "channels": (2, 2)}


def _write(folder):
    torch.manual_seed(0)
    for part, count in (("train", 40), ("t10k", 20)):
        images = torch.randint(256, (count, 28, 28), dtype=torch.uint8)
        labels = torch.arange(count).remainder(10).to(torch.uint8)
        for kind, values in (("images-idx3", images), ("labels-idx1", labels)):
            head = bytes((0, 0, 8, values.dim())) + struct.pack(f">{values.dim()}I", *values.shape)
            raw = gzip.compress(head + values.numpy().tobytes())
            (folder / f"{part}-{kind}-ubyte.gz").write_bytes(raw)


@pytest.mark.parametrize("preset", ["quick", "why"])
def test_every_arm_runs_and_leaves_its_curves(tmp_path, preset):
    _write(tmp_path)
    settings = replace(config.PRESETS[preset], **_TINY, sizes=(3,))
    if preset == "quick":
        settings = replace(settings, methods=config.METHODS)
    else:
        settings = replace(settings, variants=("as quick", "channels × 4", "τ stays 0.4"))
    trial = experiment.session(settings, Setting(tmp_path), Trials("", {}))
    trials = Trials("title", {})
    for arm in experiment.arms(settings):
        figures = trial(arm, 0)
        trials.add(arm, 0, figures)
        assert figures["curve_step"] == [2, 4]
        assert 0 <= figures["whole"] <= figures["places"] <= 1
        assert (figures["temperature"] != pytest.approx(0.4)) == ("stays" not in arm)
    pytest.importorskip("matplotlib")
    pictures.draw(trials, tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_every_variant_is_a_configuration():
    for name in config.PRESETS["why"].variants:
        changed = config.varied(config.PRESETS["why"], name)
        assert (changed != config.PRESETS["why"]) == (name != "as quick")


def test_looking_changes_nothing(tmp_path):
    _write(tmp_path)
    found = []
    for looks in (1, 4):
        settings = replace(config.PRESETS["quick"], **_TINY | {"looks": looks})
        found.append(
            experiment.session(settings, Setting(tmp_path), Trials("", {}))("n = 3, laplace", 0)
        )
    assert found[0]["temperature"] == found[1]["temperature"]
    assert found[0]["curve_whole"][-1] == found[1]["curve_whole"][-1]


def test_digits_stand_side_by_side_and_make_a_number():
    images = torch.arange(10.0).view(10, 1, 1, 1).expand(10, 1, 4, 6)
    digits = numbers.Digits.shrunk(images, torch.arange(10), 2)
    pictures, found = digits.draw(20, 3)
    assert pictures.shape == (20, 1, 2, 9)
    shown = pictures[:, 0, 0, ::3]
    assert torch.equal((shown * torch.tensor([100, 10, 1])).sum(-1).long(), found)


def test_lists_use_every_image_alike():
    torch.manual_seed(0)
    found = numbers.lists(12, 3, regroup=4)
    assert found.shape == (16, 3)
    assert torch.equal(found.flatten().bincount(), torch.full((12,), 4))
    assert torch.equal(found[:4].flatten(), torch.arange(12))
    assert numbers.lists(10, 4).shape == (2, 4)


def test_a_matrix_that_knows_the_order_is_right():
    """Rows of Sinkhorn are images; of Vanilla and of the published form they are places."""
    target = torch.tensor([[2, 0, 1], [1, 2, 0]])
    said = 9 * torch.nn.functional.one_hot(target, 3).float()
    for method, matrix in (
        ("Sinkhorn", said),
        ("Gumbel-Sinkhorn", said),
        ("Sinkhorn, as published", said.mT),
    ):
        loss_of = criteria.OfMatrices(method, 3, 0.4, True).eval()
        assert loss_of(matrix, target) < 1e-3
        whole, places = hits(loss_of.found(matrix), loss_of.aim(target))
        assert whole.tolist() == places.tolist() == [1, 1]
        assert loss_of(matrix.mT, target) > 1
    vanilla = criteria.OfMatrices("Vanilla", 3, 0.4, True)
    shares = vanilla.shares(said)
    assert torch.allclose(shares.sum(-1), torch.ones(2, 3))
    expected = -torch.stack([
        shares[b, place, image].log()
        for b in range(2)
        for image, place in enumerate(target[b].tolist())
    ]).mean()  # fmt: skip
    assert vanilla(said, target).item() == pytest.approx(expected.item(), rel=1e-5)


def test_a_place_at_random_is_told_by_noise_in_training_alone():
    torch.manual_seed(0)
    said = torch.randn(2, 4, 4)
    loss_of = criteria.OfMatrices("Gumbel-Sinkhorn", 4, 1.0, True)
    assert not torch.equal(loss_of.shares(said), loss_of.shares(said))
    loss_of.eval()
    assert torch.equal(loss_of.shares(said), loss_of.shares(said))


@pytest.mark.parametrize("method", ["laplace", "neuralsort"])
def test_the_loss_of_scores_is_that_of_the_entries_of_their_permutation(method):
    torch.manual_seed(0)
    scores, target = torch.randn(3, 5), torch.stack([torch.randperm(5) for _ in range(3)])
    loss = criteria.OfScores(method, 0.7, True)(scores.unsqueeze(-1), target)
    matrix = so.soft_permutation(scores, method=method, temperature=0.7)
    entries = [matrix[b, target[b, i], i] for b in range(3) for i in range(5)]
    torch.testing.assert_close(loss, -torch.stack(entries).log().mean())


def test_hits_count_whole_orders_and_places():
    scores = torch.tensor([[0.1, 0.2, 0.3], [0.2, 0.1, 0.3]])
    found = criteria.OfScores("laplace", 0.7, True).found(scores.unsqueeze(-1))
    whole, right = hits(found, torch.tensor([[0, 1, 2], [0, 1, 2]]))
    assert whole.tolist() == [1, 0]
    torch.testing.assert_close(right, torch.tensor([1, 1 / 3], dtype=torch.float64))


def test_places_are_those_of_the_numbers_in_order():
    found = torch.randint(50, (5, 7))  # some are equal
    in_order = torch.empty_like(found).scatter_(-1, numbers.places(found), found)
    assert (in_order.diff(dim=-1) >= 0).all()

"""The losses of lists on ratings that a test made."""

from dataclasses import replace

import pytest
import torch

from experiments import catalogue
from experiments.data import movielens
from experiments.experiment import Setting
from experiments.movielens import data, training
from experiments.movielens.config import PRESETS
from experiments.movielens.losses import criterion
from experiments.movielens.reading import read
from experiments.paper import Paper
from experiments.trials import Trials
from tests.experiments.written import write_movielens

_CONFIG = replace(
    PRESETS["paper"],
    seeds=3,
    epochs=4,
    look=2,
    width=8,
    batch=8,
    relevant=8,
    others=16,
    rates=(0.1,),
    temperatures=(0.3,),
)


def test_the_loader_says_what_it_looked_for(tmp_path):
    ratings = movielens.load(write_movielens(tmp_path / "here"))
    assert ratings.shape == (16, 40)
    assert len(ratings.rating) == 16 * 30
    assert set(ratings.rating.tolist()) == {2, 5}
    with pytest.raises(SystemExit, match=r"ml-100k.inter, plain or with .gz[^$]*recbole 1.2.1"):
        movielens.load(tmp_path / "elsewhere")
    (tmp_path / "here" / "ml-100k.inter").write_text("user_id:token\trating:float\n")
    with pytest.raises(SystemExit, match="its first line has no item_id"):
        movielens.load(tmp_path / "here")


def test_the_parts_are_apart_and_lists_are_alike(tmp_path):
    ratings = movielens.load(write_movielens(tmp_path))
    parts = data.split(ratings, _CONFIG, 0)
    found = [parts.training > 0, parts.validation.relevance > 0, parts.test.relevance > 0]
    assert torch.stack(found).sum(0).max() == 1
    assert sum(part.sum() for part in found) == (ratings.rating >= 4).sum()
    seen, later = ~parts.validation.mask, ~parts.test.mask
    assert ((later.sum(-1) - seen.sum(-1) - 3).abs() <= 1).all()  # of 30, one in ten
    assert ((later.sum(-1) - 24).abs() <= 1).all()
    assert not (seen & ~later).any()
    lists = [
        data.Drawer(parts.training, _CONFIG).draw(torch.arange(4), torch.Generator().manual_seed(1))
        for _ in range(2)
    ]
    assert torch.equal(lists[0].films, lists[1].films)
    assert lists[0].films.shape == (4, 24)
    filled = lists[0].films[0][lists[0].mask[0]]
    assert len(set(filled.tolist())) == len(filled)
    assert (lists[0].relevance > 0).sum(-1).min() > 0


@pytest.mark.parametrize("arm", PRESETS["paper"].arms)
def test_every_loss_takes_lists_with_padding(arm):
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(3, 12, generator=generator).requires_grad_()
    relevance = torch.randint(3, (3, 12), generator=generator).float()
    mask = torch.ones(3, 12, dtype=torch.bool)
    mask[1, 6:] = False
    criterion(arm, 1.0)(scores, relevance, mask).backward()
    assert scores.grad[mask].any()
    assert not scores.grad[1, 6:].any()


def test_learns_and_is_read(tmp_path):
    experiment = catalogue.get("movielens")
    trials = Trials("t", experiment.config("paper"), [])
    trial = experiment.session(_CONFIG, Setting(write_movielens(tmp_path)), trials)
    for seed in range(3):
        for arm in ("pointwise", "BPR", "NeuralNDCG"):
            trials.add(arm, seed, trial(arm, seed))
    liked = trials.values("NeuralNDCG", "ndcg")
    assert min(liked) > 0.45  # by chance it would be 0.3
    sentences = read(trials, Paper.of(experiment))
    assert any(text.startswith("Highest NDCG@10: ") for text in sentences)
    assert any("beside pointwise" in text for text in sentences)
    assert any("CPU seconds" in text for text in sentences)


def test_the_best_epoch_is_kept(tmp_path):
    parts = data.split(movielens.load(write_movielens(tmp_path)), _CONFIG, 0)
    outcome = training.train("softmax", parts, _CONFIG, training.Choice(0.1, 0.3), 0)
    assert training.ndcg(outcome.model, parts.validation, _CONFIG) == outcome.validation
    assert outcome.epoch in (2, 4)

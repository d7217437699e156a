"""Every experiment's trial, on a tiny configuration."""

import zipfile
from dataclasses import replace

import pytest
import torch

from experiments import catalogue
from experiments.data import SOURCES
from experiments.experiment import Setting
from experiments.khot_vae.config import Code
from experiments.trials import Trials
from tests.experiments.written import write_mnist, write_movielens

IMAGES = {"training": 40, "test": 20, "epochs": 1, "batch": 20, "hidden": (8, 8), "seeds": 1}
TINY = {
    "feature_selection": {**IMAGES, "k": 5},
    "learn_k": {**IMAGES, "fixed": (5,), "starts": (5, 20)},
    "khot_vae": {**IMAGES, "codes": (Code(4, 2, 3), Code(12, 6, 1, methods=("πST", "πST2")))},
    "movielens": {
        "epochs": 1,
        "look": 1,
        "temperatures": (1.0,),
        "relevant": 2,
        "others": 4,
        "arms": ("pointwise", "LambdaLoss"),
    },
    "polynomial": {"n": 6, "k": 3, "problems": 2, "samples": 4, "steps": 4, "every": 2},
    "estimators": {"n": 5, "k": 2, "repetitions": 50},
    "root_finding": {"n": 200},
    "large_mnist_sort": {"channels": (2, 2), "hidden": 4, "images": 6, "steps": 2, "test": 5},
    "knn": {
        "training": 300,
        "steps": 2,
        "tuning_steps": 1,
        "factors": (1.0,),
        "queries": 10,
        "templates": 20,
    },
    "beam_search": {
        "words": 8,
        "test_words": 4,
        "hidden": 8,
        "batch": 4,
        "pretraining": 2,
        "updates": 2,
        "preselect": 8,
    },
    "topk_attention": {
        "pairs": 12,
        "test_pairs": 4,
        "vocabulary": 20,
        "width": 8,
        "heads": 2,
        "batch": 4,
        "updates": 2,
    },
    "topk_sweeps": {
        "small": True,
        "temperatures": (0.3,),
        "shares": (0.5,),
        "ms": (5,),
        "tuning": (1.0,),
    },
    "topk_classification": {
        "small": True,
        "methods": ("softmax", "laplace"),
        "mixed": ("1 to 5",),
        "temperatures": (0.3, 1.0),
    },
    "runtime_memory": {
        "sizes": (5, 10),
        "common": 10,
        "seconds": 0.001,
        "parts": ("permutation", "order"),
    },
}


#: what only other presets than quick have; test_knn.py and test_layers.py look at it
ELSEWHERE = {"knn": {"agreement"}, "beam_search": {"length", "forced", "own"}}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for name in ("mnist", "fashion"):
        write_mnist(folder / name, train=60, test=30)
    (folder / "cmudict").mkdir()
    words = ("cat K AE1 T", "act AE1 K T", "tack T AE1 K", "tact T AE1 K T", "at AE1 T")
    lines = [*words, "at(2) AH0 T", "a AH0", "ta T AA1", "cac K AE1 K", "tat T AE1 T", "aa AA1"]
    lines += ["caa K AA1", "taa T AA1", "tac T AE1 K", "taca T AE1 K AH0 # not a word"]
    (folder / "cmudict" / "cmudict.dict").write_text("\n".join(lines))
    pairs = [f"{a} {b}.\t{b} {a}!\tnote" for a in "abcde" for b in "vwxyz"]
    write_movielens(folder / "movielens")
    (folder / "english_french").mkdir()
    with zipfile.ZipFile(folder / "english_french" / "fra-eng.zip", "w") as archive:
        archive.writestr("fra.txt", "\n".join(pairs))
    return folder


def test_there_is_a_tiny_configuration_for_everyone():
    assert set(TINY) == set(catalogue.names())


@pytest.mark.parametrize("name", sorted(TINY))
def test_every_arm_gives_the_figures_of_its_columns(name, data):
    if name == "topk_attention":
        pytest.importorskip("sacrebleu")
    experiment = catalogue.get(name)
    config = replace(experiment.presets["quick"], **TINY[name])
    trials = Trials(name, {})
    trial = experiment.session(config, Setting(data=data), trials)
    keys = {column.key for column in experiment.columns} - {"seconds"}
    seen: set[str] = set()
    for arm in experiment.arms(config):
        assert set(experiment.needs(config, arm)) <= SOURCES.keys()
        torch.manual_seed(0)
        figures = trial(arm, 0)
        numbers = {key: figures[key] for key in keys & figures.keys()}
        assert all(isinstance(number, float | int) for number in numbers.values()), arm
        assert numbers, arm
        trials.add(arm, 0, figures)
        seen |= numbers.keys()
    assert seen == keys - ELSEWHERE.get(name, set())


@pytest.mark.parametrize("name", ["polynomial", "root_finding", "learn_k", "runtime_memory"])
def test_own_plots_are_drawn(name, data, tmp_path):
    experiment = catalogue.get(name)
    config = replace(experiment.presets["quick"], **TINY[name])
    trials = Trials(name, {"every": 2})
    trial = experiment.session(config, Setting(data=data), trials)
    for arm in experiment.arms(config):
        trials.add(arm, 0, trial(arm, 0))
    experiment.draw(trials, tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_the_same_seed_gives_the_same_figures(data):
    experiment = catalogue.get("feature_selection")
    config = replace(experiment.presets["quick"], **TINY["feature_selection"])

    def figures(seed):
        trial = experiment.session(config, Setting(data=data), Trials("", {}))
        return trial("MNIST, πST", seed)

    assert figures(1) == figures(1)
    assert figures(1) != figures(2)


def test_where_all_pixels_are_seen_nothing_is_drawn(data):
    experiment = catalogue.get("feature_selection")
    config = replace(experiment.presets["whole"], **TINY["feature_selection"])
    assert experiment.arms(config) == ["MNIST, all pixels", "Fashion-MNIST, all pixels"]
    figures = experiment.session(config, Setting(data=data), Trials("", {}))("MNIST, all pixels", 0)
    assert figures["loss"] == figures["best_loss"] == figures["least"]


def test_the_second_order_estimator_ends_nearer_to_the_optimum():
    """The finding of the paper's figure 9, in small."""
    experiment = catalogue.get("polynomial")
    sizes = {"n": 10, "k": 5, "problems": 4, "samples": 64, "steps": 150, "learning_rate": 0.1}
    config = replace(experiment.presets["quick"], **sizes)
    trial = experiment.session(config, Setting(), Trials("", {}))
    torch.manual_seed(0)
    excess = {arm: trial(arm, 0)["excess"] for arm in ("πST", "πST2")}
    assert excess["πST2"] < 0.5 * excess["πST"]

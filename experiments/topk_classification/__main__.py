"""python -m experiments.topk_classification"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch

from experiments.topk_classification import report
from experiments.topk_classification.candidates import METHODS, TEMPERATURES, Candidate, candidates
from experiments.topk_classification.data import NAMES, Data, load
from experiments.topk_classification.training import Result, run
from softorder.cli._progress import Progress

_FOLDER = Path("experiments", "topk_classification", "results")
_SCRATCH = Path("reports", "topk_classification")
_TUNING = 1_000_000  # a seed that no run uses


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m experiments.topk_classification",
        description="Train a small network with every loss, on real data; report top-1 and top-5. "
        "The temperature of every loss is chosen on validation data, with a seed of its own and a "
        "third of the training data.",
    )
    parser.add_argument("--data", nargs="+", default=list(NAMES), choices=NAMES)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--seeds", type=int, default=3, metavar="N")
    parser.add_argument("--quick", action="store_true", help="little data, few epochs, one seed")
    parser.add_argument("--output", type=Path, metavar="DIR")
    arguments = parser.parse_args()
    seeds = 1 if arguments.quick else arguments.seeds
    folder = arguments.output or (_SCRATCH if arguments.quick else _FOLDER)
    for name in arguments.data:
        data = load(name, arguments.quick)
        print(
            f"{name}: {len(data.train):,} to learn from, {len(data.test):,} to be judged by, "
            f"{data.classes} classes",
            flush=True,
        )
        found: list[Result] = []
        for result in _compare(data, arguments.methods, seeds):
            if found and result.method != found[-1].method:
                list(report.write(folder, found))  # a run that is stopped keeps what it has
            found.append(result)
        print(report.table(found).text(), report.verdict(found), sep="\n\n", end="\n\n", flush=True)
        for path in report.write(folder, found):
            print(f"wrote {path}", flush=True)


def _compare(data: Data, methods: list[str], seeds: int) -> Iterator[Result]:
    everyone = [candidate for candidate in candidates() if candidate.method in methods]
    tuned = [candidate for candidate in everyone if candidate.method != "softmax"]
    with Progress(len(tuned) * len(TEMPERATURES) + len(everyone) * seeds) as progress:
        for candidate in everyone:
            chosen = _tune(data, candidate, progress) if candidate in tuned else candidate
            for seed in range(seeds):
                yield run(data, chosen, seed, data.test)
                progress.step(f"{data.name}: {chosen}, seed {seed}")


def _tune(data: Data, candidate: Candidate, progress: Progress) -> Candidate:
    """The temperature with the best sum of top-1 and top-5 on the validation data.

    A third of the training data is enough for that.
    """
    few = replace(data, train=data.train.part(1 / 3))
    scores = {}
    for temperature in TEMPERATURES:
        trial = candidate.at(temperature)
        result = run(few, trial, _TUNING, data.validation)
        scores[trial] = result.top1 + result.top5
        progress.step(f"{data.name}: {trial}, τ = {temperature:g}")
    return max(scores, key=scores.__getitem__)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()

"""An experiment without mathematics, for the framework's tests."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass

from experiments.experiment import Experiment, Setting, Trial
from experiments.trials import Column, Figures, Trials


@dataclass(frozen=True)
class Config:
    steps: int = 3
    seeds: int = 2
    arms: tuple[str, ...] = ("first", "second")


def session(config: Config, _setting: Setting, trials: Trials) -> Trial:
    """For other processes: where it ran, and how many trials were done before it there."""

    def trial(arm: str, seed: int) -> Figures:
        if arm == "fails":
            raise ValueError(f"no {arm}")
        if arm == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        return {"loss": config.steps + seed, "process": os.getpid(), "before": len(trials.records)}

    return trial


class Toy:
    """Counts what is run, and stops before a given trial."""

    def __init__(self, stop: tuple[str, int] | None = None) -> None:
        self.ran: list[tuple[str, int]] = []
        self.stop = stop

    def session(self, config: Config, _setting: Setting, _trials: Trials) -> Trial:
        def trial(arm: str, seed: int) -> Figures:
            if (arm, seed) == self.stop:
                raise KeyboardInterrupt
            self.ran.append((arm, seed))
            return {"loss": len(arm) + seed, "curve": [1.0, 0.5]}

        return trial

    def experiment(self, config: Config | None = None, needs=lambda config, arm: ()) -> Experiment:
        # It takes the paper.json of a real experiment: the folder is found by the name.
        return Experiment(
            name="polynomial",
            title="Toy",
            presets={"quick": config or Config()},
            columns=(Column("loss", "loss", 2), Column("seconds", "seconds", 1)),
            arms=lambda config: config.arms,
            session=self.session,
            needs=needs,
            devices=("cpu",),
        )

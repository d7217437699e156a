"""What an experiment is."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from experiments.trials import Column, Figures, Trials

Trial = Callable[[str, int], Figures]  #: of an arm and a seed


@dataclass(frozen=True)
class Setting:
    """What the command line says besides the preset: where data is, and where to compute."""

    data: Path | None = None
    fetch: bool = False
    device: str = "cpu"


def no_data(_config: Any, _arm: str) -> tuple[str, ...]:
    """For experiments whose data is made, or comes inside an installed package."""
    return ()


def each_alone(arm: str, seed: int) -> object:
    """For experiments whose trials have nothing in common."""
    return arm, seed


@dataclass(frozen=True)
class Learning:
    """A curve that the trials keep: how a figure moved while an arm was trained."""

    key: str
    over: str  #: key of the places of its points
    heading: str
    unit: str  #: of the places
    scale: float = 1.0


@dataclass(frozen=True)
class Experiment:
    """A table or figure of a paper, that can be run.

    The folder experiments/NAME has a module experiment.py with an `EXPERIMENT`, and paper.json with
    the figures that the paper has.
    """

    name: str  #: of its folder
    title: str
    presets: Mapping[str, Any]  #: configurations, dataclasses with a field `seeds`
    columns: Sequence[Column]
    arms: Callable[[Any], Sequence[str]]  #: of a configuration
    session: Callable[[Any, Setting, Trials], Trial]  #: the last: what has been done already
    needs: Callable[[Any, str], Sequence[str]] = no_data  #: data sets of a configuration and arm
    shared: Callable[[str, int], object] = each_alone  #: trials for which it is equal (say, those
    #: of one seed) share work, and run in one process, in their order
    timed: bool = False  #: seconds are its figures: one trial at a time, with all the cores
    devices: tuple[str, ...] = ("cpu", "cuda")
    learning: Learning | None = None  #: that the documentation shows
    draw: Callable[[Trials, Path], None] | None = None  #: if dots per arm are not the right plot

    def config(self, preset: str) -> dict[str, Any]:
        """As it is kept in JSON."""
        kept: dict[str, Any] = json.loads(json.dumps(asdict(self.presets[preset])))
        return kept

    def sources(self, preset: str) -> list[str]:
        """Names of all the data sets of a preset."""
        config = self.presets[preset]
        every = (name for arm in self.arms(config) for name in self.needs(config, arm))
        return list(dict.fromkeys(every))

    @property
    def folder(self) -> Path:
        return Path(__file__).parent / self.name

"""The public names, in the groups that people look for: what the pages of the API are made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType

import softorder as so
import softorder.sklearn


@dataclass(frozen=True)
class Group:
    """A page: its file, its title, what it is about, and the modules whose names it holds."""

    file: str
    title: str
    about: str
    modules: tuple[str, ...]


GROUPS = (
    Group(
        "operators",
        "Operators",
        "Functions of scores: how much each is chosen, where it belongs, and the limits of both "
        "at temperature 0.",
        ("so", "so.hard", "so.ragged", "so.ragged.hard", "so.projections"),
    ),
    Group(
        "layers",
        "Layers",
        "Modules to put into a network, and the functions behind them.",
        ("so.nn", "so.nn.functional", "so.schedules", "so.sklearn"),
    ),
    Group(
        "losses",
        "Losses and metrics",
        "What to train with, and what to measure.",
        ("so.losses", "so.metrics"),
    ),
    Group(
        "sampling",
        "Sampling",
        "Draws of k out of n: laws, designs, and estimators that let gradients through.",
        ("so.distributions", "so.sampling", "so.estimators"),
    ),
    Group(
        "methods",
        "Methods",
        "What can stand behind `method=`: densities, other relaxations with options of their own, "
        "and sorting networks.",
        ("so.relaxations", "so.densities", "so.networks"),
    ),
    Group(
        "distributed",
        "Many machines",
        "The same operators where the scores are cut among ranks.",
        ("so.distributed",),
    ),
)

#: what most people look for stands first; the rest follows in its own order
FIRST = (
    "soft_topk",
    "log_soft_topk",
    "soft_rank",
    "soft_sort",
    "soft_permutation",
    "soft_quantile",
    "soft_median",
    "calibrate_temperature",
)


def named(group: Group) -> Iterator[tuple[str, object]]:
    """The public names of a group with what they mean, in the order of the modules."""
    for path in group.modules:
        module = _module(path)
        for name in _public(module):
            value = getattr(module, name)
            if not isinstance(value, ModuleType) and not name.startswith("_"):
                yield f"{path}.{name}", value


def _module(path: str) -> ModuleType:
    found = so
    for name in path.split(".")[1:]:
        found = getattr(found, name)
    return found


def _public(module: ModuleType) -> list[str]:
    """What a module lists; or what it defines, in its order."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__, key=lambda name: (name not in FIRST, _place(name)))
    own = vars(module).items()
    return [name for name, value in own if getattr(value, "__module__", "") == module.__name__]


def _place(name: str) -> int:
    return FIRST.index(name) if name in FIRST else len(FIRST)

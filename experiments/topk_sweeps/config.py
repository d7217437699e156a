"""What is run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Config:
    data: str
    seeds: int
    temperatures: tuple[float, ...]  #: of laplace
    losses: tuple[str, ...]  #: keys of P_K, a curve over the temperatures for each
    shares: tuple[float, ...]  #: p_5 of [1 - p_5, 0, 0, 0, p_5], by SinkhornSort
    ms: tuple[int, ...]  #: classes that compete, by SinkhornSort with p_5 = 0.75
    top1: str
    tuning: tuple[float, ...]  #: temperatures that the shares and m choose one from
    m: int | None = None  #: where it does not vary
    small: bool = False


_SHARES = (0.0, 0.25, 0.5, 0.6, 0.75, 0.9, 1.0)

PRESETS = {
    "quick": Config(
        data="digits",
        seeds=5,
        temperatures=(0.03, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 3.0, 10.0),
        losses=("5", "1 to 5"),
        shares=_SHARES,
        ms=(5, 6, 7, 8, 9, 10),
        top1="softmax",
        tuning=(0.1, 0.3, 1.0),
    ),
    "paper": Config(
        data="imagenet",
        seeds=5,
        temperatures=(0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0),
        losses=("5", "1 and 5"),
        shares=(0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
        ms=(5, 10, 16, 20, 30, 40, 100, 1000),
        top1="operator",
        tuning=(0.1, 0.3, 1.0, 3.0),
        m=16,
    ),
}

"""One thing varies at a time."""

from dataclasses import replace

from experiments.topk_sweeps.config import PRESETS
from experiments.topk_sweeps.experiment import draw, named
from experiments.topk_sweeps.points import METHOD, SWEEPS
from experiments.topk_sweeps.reading import read
from experiments.trials import Trials


def test_shares_are_of_k_1_and_5():
    points = [point for point in named(PRESETS["quick"]).values() if point.sweep == "share"]
    for point in points:
        assert point.candidate.p_k == (1 - point.x, 0, 0, 0, point.x)
        assert point.candidate.method == METHOD
    assert {point.x for point in points} >= {0.0, 0.5, 1.0}


def test_m_is_all_that_varies_with_m():
    points = [point for point in named(PRESETS["quick"]).values() if point.sweep == "m"]
    assert [p.candidate.protocol.m for p in points] == [p.x for p in points]
    assert len({replace(p.candidate, protocol=points[0].candidate.protocol) for p in points}) == 1


def test_every_sweep_is_drawn(tmp_path):
    trials = _trials(**{arm: [0.5, 0.6] for arm in named(PRESETS["quick"])})
    assert {point.sweep for point in named(PRESETS["quick"]).values()} == SWEEPS.keys()
    draw(trials, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 10_000


def _trials(**arms):
    trials = Trials("", {})
    for arm, values in arms.items():
        for seed, value in enumerate(values):
            trials.add(arm, seed, {"top1": value, "top5": value})
    return trials


def _said(arms):
    return " ".join(filter(None, read(_trials(**arms), None)))


SHARES = {
    "share = 0, sinkhorn_sort": [0.80, 0.81, 0.82],
    "share = 0.5, sinkhorn_sort": [0.90, 0.909, 0.921],
    "share = 1, sinkhorn_sort": [0.60, 0.612, 0.62],
}


def test_a_share_between_is_said_to_be_best_where_it_is():
    said = _said(SHARES)
    assert "highest with a share 0.5 of k = 5" in said
    assert "which beats a share of 0 (81.00 %) and beats a share of 1 (61.07 %)" in said


def test_and_not_where_it_is_chance():
    said = _said({**SHARES, "share = 1, sinkhorn_sort": [0.95, 0.80, 0.90]})
    assert "cannot be told apart from a share of 1" in said

"""One thing varies at a time."""

from dataclasses import replace

import pytest

from experiments.experiment import Setting
from experiments.topk_sweeps.config import PRESETS
from experiments.topk_sweeps.experiment import draw, named, session
from experiments.topk_sweeps.points import LOSSES, METHOD, SWEEPS
from experiments.topk_sweeps.reading import read
from experiments.trials import Trials
from tests.experiments.test_data import write_kanji

# Other sweeps run on digits, with the tiny configurations of all experiments.
TINY = replace(PRESETS["kanji"], small=True, widths=(8,), tuning=(1.0,))
EVERY = replace(PRESETS["quick"], widths=(8, 16), m=16)


def test_shares_are_of_k_1_and_5():
    points = [point for point in named(PRESETS["quick"]).values() if point.sweep == "share"]
    for point in points:
        assert point.candidate.p_k == (1 - point.x, 0, 0, 0, point.x)
        assert point.candidate.method == METHOD
    assert {point.x for point in points} >= {0.0, 0.5, 1.0}


def test_m_is_all_that_varies_with_m():
    points = [point for point in named(EVERY).values() if point.sweep == "m"]
    assert [p.candidate.protocol.m for p in points] == [p.x for p in points]
    assert len({replace(p.candidate, protocol=points[0].candidate.protocol) for p in points}) == 1


@pytest.mark.slow
def test_heads_are_tuned_from_the_original(tmp_path):
    write_kanji(tmp_path)
    run = session(TINY, Setting(data=tmp_path), Trials("", {}))
    found = {arm: run(arm, 0) for arm in named(TINY)}
    assert list(found) == [f"width = 8, {loss}" for loss in LOSSES]
    assert "temperature" not in found["width = 8, original"]
    assert all(figures["top1"] <= figures["top5"] for figures in found.values())


def test_every_sweep_is_drawn(tmp_path):
    trials = _trials(**{arm: [0.5, 0.6] for arm in named(EVERY)})
    assert {point.sweep for point in named(EVERY).values()} == SWEEPS.keys()
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


def test_tuning_improves_only_what_it_improves():
    arms = {
        "width = 8, original": [0.50, 0.50, 0.50],
        "width = 8, sinkhorn_sort": [0.55, 0.551, 0.549],
        "width = 16, original": [0.60, 0.60, 0.60],
        "width = 16, sinkhorn_sort": [0.55, 0.65, 0.60],
    }
    assert "improves the top-1 accuracy of 1 of 2 networks (width 8), by 5.00 points" in _said(arms)

"""One thing varies at a time."""

from dataclasses import replace

import pytest

from experiments.experiment import Setting
from experiments.topk_classification.data import load
from experiments.topk_sweeps.config import PRESETS
from experiments.topk_sweeps.experiment import draw, named, session
from experiments.topk_sweeps.points import METHOD, SWEEPS
from experiments.trials import Trials
from tests.experiments.test_data import write_kanji

TINY = replace(
    PRESETS["kanji"],
    small=True,
    temperatures=(0.3, 1.0),
    losses=("5",),
    shares=(0.0, 1.0),
    ms=(5,),
    widths=(8, 16),
    tuning=(1.0,),
)


def test_shares_are_of_k_1_and_5():
    points = [point for point in named(PRESETS["quick"]).values() if point.sweep == "share"]
    for point in points:
        assert point.candidate.p_k == (1 - point.x, 0, 0, 0, point.x)
        assert point.candidate.method == METHOD
    assert {point.x for point in points} >= {0.0, 0.5, 1.0}


def test_m_is_all_that_varies_with_m():
    points = [point for point in named(PRESETS["kanji"]).values() if point.sweep == "m"]
    assert [p.candidate.protocol.m for p in points] == [p.x for p in points]
    assert len({replace(p.candidate, protocol=points[0].candidate.protocol) for p in points}) == 1


def test_every_sweep_runs_and_is_drawn(tmp_path):
    write_kanji(tmp_path)
    setting = Setting(data=tmp_path)
    trials = Trials("title", {})
    run = session(TINY, setting, trials)
    for arm in named(TINY):
        trials.add(arm, 0, run(arm, 0))
    assert {point.sweep for point in named(TINY).values()} == SWEEPS.keys()
    draw(trials, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 10_000


def test_the_original_is_the_head_before_tuning(tmp_path):
    write_kanji(tmp_path)
    setting = Setting(data=tmp_path)
    figures = session(TINY, setting, Trials("", {}))("width = 8, original", 0)
    assert "temperature" not in figures
    assert figures["top1"] <= figures["top5"]
    assert load("kanji_features", quick=True, setting=setting).classes == pytest.approx(2965)

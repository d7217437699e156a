"""The goals: that none is missing, what is said of made-up times."""

import itertools

import pytest
import torch

from benchmarks import torch_level
from benchmarks.goals import goal, orders, others, suite, topk
from benchmarks.providers import DENSITIES
from benchmarks.rounds import Rounds
from softorder.kernels import _native

needs_kernels = pytest.mark.skipif(not _native.enabled(), reason="the kernels are not built")


def _every():
    return list(itertools.chain(topk.goals(), orders.goals(), others.goals()))


def test_every_section_has_goals():
    assert {one.section for one in _every()} == set(suite.SECTIONS)


def test_every_density_has_a_goal_at_every_size():
    assert set(topk.FORWARD) == set(DENSITIES)
    rows = {one.row for one in _every() if one.section == "topk"}
    assert len(rows) == len(DENSITIES) * len(topk.SHAPES)


def test_sides_that_are_timed_together_have_names_of_their_own():
    """One name, one call: else a time would stand for another."""
    ours = [(one.table, one.case, one.ours.name) for one in _every()]
    assert len(ours) == len(set(ours))
    assert not {*ours} & {(one.table, one.case, one.theirs.name) for one in _every()}


@pytest.mark.slow
@pytest.mark.parametrize("section", ["formats", "dim", "rows", "permutation", "losses"])
def test_every_goal_runs(section):
    for one in _every():
        if one.section == section:
            one.ours.call()()
            one.theirs.call()()


def _tiny(limit=2.0):
    def scores():
        return torch.randn(2, 5, generator=torch.Generator().manual_seed(0))

    ours = goal.Side("softorder ours", torch.exp, scores, backward=True)
    theirs = goal.Side("torch.exp", torch.exp, scores)
    rows = [goal.Goal("topk", "T", "r", case, ours, theirs, limit) for case in ("a", "b")]
    return iter(rows)


@needs_kernels
def test_the_worst_case_of_a_row_counts(monkeypatch, tmp_path, capsys):
    """At every level, on made-up times: ours take 1 and 3 times as long as theirs."""
    turns = itertools.cycle([1.0, 3.0])
    used = []

    def measured(sides, seconds):
        used.append(_native.level())
        factor = next(turns)
        return {
            name: Rounds(time, time, 1, (time,))
            for name, time in zip(sides, (1.0, factor), strict=True)
        }

    monkeypatch.setattr(suite, "measured", measured)
    monkeypatch.setattr(torch_level, "here", lambda level: True)
    monkeypatch.setattr(suite.topk, "goals", lambda shapes: _tiny())
    monkeypatch.setattr(suite.orders, "goals", lambda: iter([]))
    monkeypatch.setattr(suite.others, "goals", lambda: iter([]))
    found = suite.run(True, [], None, tmp_path)
    levels = suite.levels()
    assert used == [level for level in levels for _ in range(2)]
    assert [(f.column, f.value, f.reached) for f in found.figures()] == [
        (level, 3.0, False) for level in levels
    ]
    assert "3.00 > 2 ✗" in (tmp_path / "goals.md").read_text()
    assert f"0 of 1 goals reached with {levels[-1]}" in capsys.readouterr().out


@needs_kernels
def test_a_level_that_torch_does_not_have_here_is_measured_apart(monkeypatch, tmp_path):
    figure = {"table": "T", "row": "r", "column": "x", "value": 3.0, "limit": 2.0, "reached": False}
    asked = []

    def apart(stem, level, only, seconds):
        asked.append((stem, level, list(only)))
        return {"timings": [{"level": level}], "figures": [figure | {"column": level}]}

    monkeypatch.setattr(torch_level, "here", lambda level: False)
    monkeypatch.setattr(torch_level, "measured_apart", apart)
    found = suite.run(True, ["losses"], None, tmp_path)
    assert [level for _, level, _ in asked] == [f.column for f in found.figures()] == suite.levels()
    assert all(stem == "goals" and "losses" in only for stem, _, only in asked)
    assert not any(figure.reached for figure in found.figures())


@pytest.mark.slow
@pytest.mark.skipif(len(_native.usable_levels()) < 2, reason="this CPU has one level only")
def test_torch_and_kernels_are_of_the_same_level_there():
    narrow = _native.usable_levels()[0]
    assert not torch_level.here(narrow)
    found = torch_level.measured_apart("goals", narrow, ["sampling"], 0.01)
    assert {timing["level"] for timing in found["timings"]} == {narrow}
    assert [figure["column"] for figure in found["figures"]] == [narrow]


def test_sides_are_timed_with_and_without_their_gradient():
    one = next(_tiny())
    found = suite.measured({side.name: side for side in (one.ours, one.theirs)}, 1e-3)
    assert set(found) == {"softorder ours", "torch.exp"}
    (gradient,) = one.ours.call()()
    assert gradient.shape == (2, 5)
    assert one.theirs.call()().shape == (2, 5)


def test_what_takes_long_is_called_once(monkeypatch):
    monkeypatch.setattr(suite, "_PATIENCE", 0.0)
    one = next(_tiny())
    found = suite.measured({one.ours.name: one.ours}, 1e-3)
    assert found["softorder ours"].repetitions == 1

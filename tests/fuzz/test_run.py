"""A short run of the fuzzer, and proof that it notices what it is there for."""

from dataclasses import replace

import pytest
import torch

from softorder.kernels import _native
from softorder.kernels.threshold import cpu
from tests.fuzz import problems, run, shrinking


@pytest.fixture(autouse=True)
def _one_thread_of_torch(monkeypatch):
    monkeypatch.setattr(_native, "threads", _native.threads)  # the run sets it: put it back
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.slow
def test_every_operator_and_method_once(capsys):
    """Of any size; small ones are below."""
    assert run.run(range(len(problems.CASES)), stop_after=60).failures == []


@pytest.mark.parametrize("first", range(0, 1000, 100))
def test_a_thousand_small_problems(first, capsys):
    """Of up to 30 scores, on every SIMD level of this CPU."""
    seeds, levels = range(first, first + 100), _native.usable_levels()
    tally = run.run(seeds, stop_after=60, most=30, levels=levels)
    assert tally.failures == []
    assert tally.counts["problems"] == len(seeds)


def test_a_seed_is_a_problem():
    one, same = problems.make(4711), problems.make(4711)
    assert str(one) == str(same)
    assert torch.equal(one.scores.nan_to_num(), same.scores.nan_to_num())


def _topk():
    return problems.Problem(
        seed=0,
        operator="soft_topk",
        method="laplace",
        scores=torch.linspace(0, 1, 20),
        dim=-1,
        options={"k": 3, "temperature": 0.1},
        threads=1,
        kind="normal",
        layout="plain",
        ordinary=True,
    )


def test_a_wrong_result_is_noticed(monkeypatch):
    right = cpu.remembered

    def wrong(*arguments):
        p, b = right(*arguments)
        return p + 0.01, b

    monkeypatch.setattr(cpu, "remembered", wrong)
    assert run.check(_topk()) == "the sum is off by 0.05"


def test_a_wrong_result_on_one_level_is_noticed(monkeypatch):
    """Where plain torch has been asked for the level before."""
    levels, right = _native.usable_levels(), cpu.remembered
    if len(levels) < 2:
        pytest.skip("this CPU has one level")

    def wrong(scores, *arguments):
        p, b = right(scores, *arguments)
        return (p.flip(-1) if _native.level() == levels[-1] else p), b

    monkeypatch.setattr(cpu, "remembered", wrong)
    said = run.check(_topk(), levels)
    assert said.startswith("the result is ")
    assert said.endswith(f"in plain torch, level {levels[-1]}")


def test_a_changed_argument_is_noticed(monkeypatch):
    problem, right = _topk(), cpu.remembered

    def wrong(*arguments):
        problem.scores[0] = 7
        return right(*arguments)

    monkeypatch.setattr(cpu, "remembered", wrong)
    assert run.check(problem) == "an argument was changed"


def _first_score_is_wrong_if_it_is_large(monkeypatch):
    right = cpu.remembered

    def wrong(scores, *arguments):
        p, b = right(scores, *arguments)
        return torch.where(scores > 2.5, p + 1, p), b

    monkeypatch.setattr(cpu, "remembered", wrong)


def test_a_failing_problem_is_made_small(monkeypatch):
    """One row of 12 and one score of 40 are at fault."""
    scores = torch.zeros(3, 40, 4)
    scores[1, 17, 2] = 3.0
    mask = torch.ones(3, 40, 4, dtype=torch.bool)
    options = {"k": torch.full((3, 4), 2.0), "temperature": 1.0, "dim": 1, "mask": mask}
    problem = replace(_topk(), scores=scores, dim=1, options={**options, "largest": True})
    assert run.smallest(problem) == ""
    _first_score_is_wrong_if_it_is_large(monkeypatch)
    small = run.smallest(problem)
    assert "soft_topk(tensor([[[3.0]]], dtype=torch.float32), method='laplace'" in small
    assert "k=tensor([[1.0]]" in small
    assert "weights from" in small


def test_parts_of_problems_are_problems():
    """Half of each axis can be asked for, or it is said that it cannot."""
    for seed in range(0, len(problems.CASES), 3):
        problem = problems.make(seed, most=30)
        for axis, size in enumerate(problem.scores.shape):
            smaller = shrinking.part(problem, axis, torch.arange(size)[: (size + 1) // 2])
            if smaller is not None:
                result = run.solve(smaller, "torch").result
                assert result.dtype == run.solve(problem, "torch").result.dtype


@pytest.mark.parametrize(("arguments", "code"), [(["--seed", "3"], 0), ([], 2)])
def test_shrinking_by_command(arguments, code, capsys):
    if code:
        with pytest.raises(SystemExit):
            run.main(["--shrink", *arguments])
    else:
        assert run.main(["--shrink", "--most", "30", *arguments]) == 0
        assert "does not fail" in capsys.readouterr().out

"""A short run of the fuzzer, and proof that it notices what it is there for."""

import pytest
import torch

from softorder.kernels import _native
from softorder.kernels.threshold import cpu
from tests.fuzz import problems, run


@pytest.fixture(autouse=True)
def _one_thread_of_torch(monkeypatch):
    monkeypatch.setattr(_native, "threads", _native.threads)  # the run sets it: put it back
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_every_operator_and_method_once(capsys):
    _, failures, _ = run.run(range(len(problems.CASES)), stop_after=60)
    assert failures == []


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


def test_a_changed_argument_is_noticed(monkeypatch):
    problem, right = _topk(), cpu.remembered

    def wrong(*arguments):
        problem.scores[0] = 7
        return right(*arguments)

    monkeypatch.setattr(cpu, "remembered", wrong)
    assert run.check(problem) == "an argument was changed"

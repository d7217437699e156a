"""A few problems of every operator and method, and proof that wrong derivatives are noticed."""

import pytest
import torch

import softorder as so
from tests.fuzz import derivatives


@pytest.fixture(autouse=True)
def _one_thread_of_torch():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def _quiet(line):
    pass


def test_a_few_problems():
    """Every fourth operator and method; the others are slow."""
    seeds = range(0, len(derivatives.CASES), 4)
    solved, judged, failures = derivatives.run(seeds, stop_after=60, show=_quiet)
    assert failures == []
    assert solved == len(seeds)
    assert judged > 0.9 * solved


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 2800, 400))
def test_2800_problems(first):
    solved, judged, failures = derivatives.run(
        range(first, first + 400), stop_after=300, show=_quiet
    )
    assert failures == []
    assert solved == 400
    assert judged > 0.9 * solved


class _Wrong(torch.autograd.Function):
    """The identity, whose derivative of one kind is off by a thousandth."""

    generate_vmap_rule = True
    backwards = forwards = 1.0

    @staticmethod
    def forward(values):
        return values.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @classmethod
    def backward(cls, ctx, upstream):
        return cls.backwards * upstream

    @classmethod
    def jvp(cls, ctx, tangent):
        return cls.forwards * tangent


class _WrongBackward(_Wrong):
    backwards = 1.001


class _WrongForward(_Wrong):
    forwards = 1.001


def _topk():
    seed = derivatives.CASES.index(("soft_topk", "logistic"))
    return derivatives.make(seed)


@pytest.mark.parametrize(
    ("function", "noticed", "not_noticed"),
    [
        (_WrongBackward, ("the gradient", "jacrev"), "forward mode"),
        (_WrongForward, ("forward mode",), "the gradient"),
    ],
)
def test_a_wrong_first_derivative_is_noticed(monkeypatch, function, noticed, not_noticed):
    right = so.soft_topk
    monkeypatch.setattr(so, "soft_topk", lambda *a, **o: function.apply(right(*a, **o)))
    wrong, judged = derivatives.check(_topk())
    assert judged
    assert all(f"{name} is" in wrong for name in noticed)
    assert f"{not_noticed} is" not in wrong


def test_a_wrong_second_derivative_is_noticed(monkeypatch):
    """p with slopes that are constants."""
    right = so.soft_topk

    def frozen(scores, k, method, temperature):
        def row(x, k, temperature):
            return right(x, k, method=method, temperature=temperature)

        start = scores.detach()
        slopes = torch.func.vmap(torch.func.jacrev(row))(start, k, temperature)
        moved = (slopes @ (scores - start).unsqueeze(-1)).squeeze(-1)
        return torch.func.vmap(row)(start, k, temperature) + moved

    monkeypatch.setattr(so, "soft_topk", frozen)
    assert "the hessian is" in derivatives.check(_topk())[0]


def test_slopes_know_their_error():
    steps = derivatives._STEPS
    known = derivatives.slope(torch.exp(steps), torch.exp(-steps))
    assert abs(known.value - 1) < known.error < 1e-8
    assert known.settled
    kink = derivatives.slope((steps - 1e-3).abs(), (-steps - 1e-3).abs())
    assert not kink.settled

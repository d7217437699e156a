"""Routers of mixtures of experts, and the balance of all tokens with all experts."""

import math
import warnings

import pytest
import torch
from scipy.optimize import minimize
from torch import nn

import softorder as so

_balanced = so.nn.functional.balanced_topk


def _x(*shape, dtype=torch.float64, seed=0):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def _crowded(tokens, experts):
    """All tokens like the first experts best."""
    return _x(tokens, experts) - torch.linspace(0, 3, experts, dtype=torch.float64)


# ---- balance -----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["laplace", "logistic", "normal", "cauchy", "uniform"])
@pytest.mark.parametrize("temperature", [0.02, 1.0])
def test_rows_and_columns_have_their_sums(method, temperature):
    p = _balanced(_crowded(40, 8), 2, method=method, temperature=temperature, tolerance=1e-9)
    torch.testing.assert_close(p.sum(-1), torch.full((40,), 2.0).double())
    torch.testing.assert_close(p.sum(0), torch.full((8,), 10.0).double(), rtol=1e-7, atol=0)
    assert ((p >= 0) & (p <= 1)).all()


def test_it_is_the_maximiser():
    """Against a solver of scipy that knows nothing of thresholds: logistic, ψ the entropy."""
    scores, tau, shape = _crowded(4, 3), 0.7, (4, 3)

    def cost(flat):
        p = torch.tensor(flat).clamp(1e-12, 1 - 1e-12).view(shape)
        psi = p * p.log() + (1 - p) * (1 - p).log()
        return (-(scores * p).sum() + tau * psi.sum()).item()

    sums = [{"type": "eq", "fun": lambda p, t=t: p.reshape(shape)[t].sum() - 1} for t in range(4)]
    sums += [
        {"type": "eq", "fun": lambda p, e=e: p.reshape(shape)[:, e].sum() - 4 / 3} for e in range(2)
    ]
    start = torch.full(shape, 1 / 3).double().flatten().numpy()
    solved = minimize(
        cost, start, method="SLSQP", bounds=[(0, 1)] * 12, constraints=sums, options={"ftol": 1e-12}
    )
    found = _balanced(scores, 1, method="logistic", temperature=tau, tolerance=1e-10)
    torch.testing.assert_close(found.flatten(), torch.tensor(solved.x), rtol=0, atol=2e-4)


def test_derivatives_of_the_balance():
    scores = _crowded(5, 3).requires_grad_()
    tau = torch.tensor(0.6, dtype=torch.float64, requires_grad=True)

    def call(scores, tau):
        return _balanced(scores, 1.5, method="logistic", temperature=tau, tolerance=1e-12)

    assert torch.autograd.gradcheck(call, (scores, tau))
    assert torch.autograd.gradgradcheck(call, (scores, tau))


def test_several_tables_and_none():
    scores = torch.stack([_crowded(6, 4), -_crowded(6, 4)])
    together = _balanced(scores, 2, tolerance=1e-9)
    for one, table in zip(together, scores, strict=True):
        torch.testing.assert_close(one, _balanced(table, 2, tolerance=1e-9), rtol=1e-6, atol=1e-7)
    assert _balanced(torch.zeros(0, 4), 2).shape == (0, 4)


def test_giving_up_is_told():
    with pytest.warns(UserWarning, match="balanced_topk stopped after 1 iterations"):
        _balanced(_crowded(40, 8), 2, temperature=0.001, max_iterations=1)


# ---- the router --------------------------------------------------------------------------------


def _router(**options):
    torch.manual_seed(0)
    return so.nn.TopKRouter(4, 8, 2, temperature=0.2, **options).double()


@pytest.mark.parametrize("balance", ["bias", "exact", None])
def test_k_experts_for_each_token(balance):
    router, x = _router(balance=balance), _x(30, 4)
    for mode in (True, False):
        routing = router.train(mode)(x)
        assert (routing.chosen.sum(-1) == 2).all()
        torch.testing.assert_close(routing.probs.sum(-1), torch.full((30,), 2.0).double())
        expected = torch.where(routing.chosen, routing.probs, 0.0) / 2
        torch.testing.assert_close(routing.weights, expected)
        # no expert that is left out is wanted more than one that is chosen
        kept = torch.where(routing.chosen, routing.probs, math.inf).amin(-1)
        assert (torch.where(routing.chosen, 0.0, routing.probs).amax(-1) <= kept).all()


def test_experts_see_their_tokens_alone():
    router, x = _router(), _x(5, 6, 4)
    seen = []

    class Expert(nn.Linear):
        def forward(self, rows):
            seen.append(len(rows))
            return super().forward(rows)

    experts = [Expert(4, 3).double() for _ in range(8)]
    routing = router(x)
    result = routing.mix(x, experts)
    assert seen == routing.chosen.sum(0).tolist()
    every = torch.stack([nn.functional.linear(x, e.weight, e.bias) for e in experts], -2)
    expected = (routing.weights.view(5, 6, 8, 1) * every).sum(-2)
    torch.testing.assert_close(result, expected)
    result.sum().backward()
    assert (router.linear.weight.grad.abs().sum(-1) > 0).all()


def test_a_single_expert_per_token_has_a_gradient():
    torch.manual_seed(0)
    router = so.nn.TopKRouter(4, 8, 1)
    router(torch.randn(9, 4)).weights.sum().backward()
    assert router.linear.weight.grad.abs().sum() > 0


def _tilted(router):
    """Scores that all tokens share in part: without balance, a few experts have all."""
    with torch.no_grad():
        router.linear.weight[:, 0] += torch.linspace(3, -3, 8)
    x = _x(400, 4)
    x[:, 0] = 1
    return x


def test_the_bias_balances():
    router = _router(rate=0.05)
    x = _tilted(router)
    before = router(x).load().max()
    for _ in range(300):
        routing = router(x)
    assert before > 3
    assert routing.load().max() < 1.3
    assert router.eval()(x).load().max() < 1.3
    assert not router.bias.requires_grad


def test_exact_balance_is_there_at_once():
    router = _router(balance="exact")
    x = _tilted(router)
    routing = router(x)
    share = routing.probs.sum(0)
    torch.testing.assert_close(share, torch.full((8,), 100.0).double(), rtol=2e-3, atol=0)
    assert routing.load().max() < 1.4
    other = router.eval()(x)  # with the running average, which is that of this batch so far
    torch.testing.assert_close(other.probs, routing.probs, rtol=0, atol=1e-3)


def test_balance_loss_is_least_for_equal_shares():
    router = _router(balance=None)
    x = _tilted(router)
    optimiser = torch.optim.Adam(router.parameters(), lr=0.05)
    losses = []
    for _ in range(60):
        loss = router(x).balance_loss()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[0] > 2
    assert abs(losses[-1] - 1) < 0.05


def test_capacity_keeps_those_who_want_it_most():
    router, x = _router(balance=None, capacity=1.0), _x(40, 4)
    routing, free = router(x), _router(balance=None)(x)
    assert (routing.chosen.sum(0) <= 10).all()
    assert (routing.chosen <= free.chosen).all()
    for place in range(8):
        wanted = free.probs[free.chosen[:, place], place]
        kept = routing.probs[routing.chosen[:, place], place]
        torch.testing.assert_close(kept.sort().values, wanted.sort().values[-len(kept) :])
    assert (routing.weights[~routing.chosen] == 0).all()


def test_adaptive_k():
    router = _router(balance=None, adaptive=True)
    for seed in range(20):
        routing = router(_x(100, 4, seed=seed))
        assert routing.chosen.sum() == 200
    torch.testing.assert_close(routing.probs.sum().item(), 200.0)
    counts = routing.chosen.sum(-1)
    assert counts.min() < 2 < counts.max()
    x = _x(400, 4, seed=99)
    used = router.eval()(x).chosen
    assert abs(used.sum(-1).double().mean() - 2) < 0.25
    alone, together = router(x[:7]), router(x)  # tokens do not see each other
    assert torch.equal(alone.chosen, used[:7])
    assert torch.equal(alone.weights, together.weights[:7])
    assert abs(together.probs.sum(-1).mean() - 2) < 0.25


def test_adaptive_k_of_all_experts():
    router = so.nn.TopKRouter(4, 3, 3, adaptive=True)
    router(_x(10, 4, dtype=torch.float32))
    routing = router.eval()(_x(10, 4, dtype=torch.float32))
    assert routing.chosen.all()
    torch.testing.assert_close(routing.weights, torch.full((10, 3), 1 / 3))


def test_no_tokens():
    for options in ({}, {"balance": "exact"}, {"adaptive": True}, {"capacity": 1.0}):
        router = _router(**options)
        assert router(torch.zeros(0, 4).double()).weights.shape == (0, 8)


def test_autocast_and_state_dict():
    router, other = (so.nn.TopKRouter(4, 8, 2) for _ in range(2))
    x = _x(30, 4, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert router(x).probs.dtype == torch.float32
    for _ in range(3):
        router(x)
    other.load_state_dict(router.state_dict())
    torch.testing.assert_close(other.eval()(x).weights, router.eval()(x).weights)
    assert other.bias.abs().sum() > 0


def test_compiles():
    torch.compiler.reset()
    router, x = _router(), _x(30, 4)
    expected = router.eval()(x)
    found = torch.compile(router, fullgraph=True, backend="aot_eager")(x)
    torch.testing.assert_close(found.weights, expected.weights)


def test_wrong_arguments():
    make, table = so.nn.TopKRouter, torch.zeros(3, 2)
    routing = _router()(_x(6, 4))
    wrong = [
        (lambda: make(4, 8, 9), ValueError, "k must be between 1 and 8, but got 9"),
        (lambda: make(4, 8, 2, balance="loss"), ValueError, "balance must be one of bias, exact"),
        (lambda: make(4, 8, 2, rate=-1), ValueError, "rate must be between 0 and 1"),
        (lambda: make(4, 8, 2, momentum=2), ValueError, "momentum must be between 0 and 1"),
        (lambda: make(4, 8, 2, capacity=0.0), ValueError, "capacity must be finite and > 0"),
        (
            lambda: make(4, 8, 2, adaptive=True, balance="exact"),
            ValueError,
            "balance must be 'bias' or None with adaptive=True",
        ),
        (lambda: _router()(_x(3, 5)), ValueError, "x must have 4 features on its last axis"),
        (lambda: routing.mix(_x(5, 4), []), ValueError, "x must hold 6 tokens, those routed"),
        (lambda: routing.mix(_x(6, 4), []), ValueError, "experts must be 8 modules, but got 0"),
        (lambda: _balanced(table, 3), ValueError, "k must be between 0 and 2"),
        (lambda: _balanced(table[0], 1), ValueError, "scores must have at least two axes"),
        (lambda: _balanced(table, 1, temperature=0), ValueError, "temperature must be finite"),
        (lambda: _balanced(table, 1, method="softsort"), ValueError, "method must be"),
    ]
    for call, error, message in wrong:
        with pytest.raises(error, match=message), warnings.catch_warnings():
            call()

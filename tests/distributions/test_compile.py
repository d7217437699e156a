"""Draws under torch.compile: one graph, and the law that eager mode has."""

import pytest
import torch

import softorder as so

_QUICK = ("pareto_corrected",)
_BREAK = ("brewer", "pareto_adjusted")  # how many steps they take depends on the numbers
_OTHER = ("gumbel_topk",)  # its noise is made of other numbers there
_DESIGNS = [row.name for row in so.sampling.designs() if row.name not in (*_BREAK, *_OTHER)]
_ESTIMATORS = ["second_order", "simple", "iterative_poisson"]


def _slow_but(names, quick):
    return [n if n in quick else pytest.param(n, marks=pytest.mark.slow) for n in names]


def _compare(function, logits):
    """One graph, with the values and gradients of eager mode for the same seed."""
    torch.compiler.reset()
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    found = []
    for called in (function, compiled):
        torch.manual_seed(3)
        x = called(logits)
        (gradient,) = torch.autograd.grad(x.cumsum(-1).square().sum(), logits)
        found.append((x.detach(), gradient))
    torch.testing.assert_close(found[1][0], found[0][0])
    torch.testing.assert_close(found[1][1], found[0][1], rtol=1e-3, atol=1e-4)  # in float32


@pytest.mark.parametrize("design", _slow_but(_DESIGNS, _QUICK))
def test_a_draw_and_its_gradient_are_one_graph(design):
    def draw(logits):
        law = so.distributions.KHot(4, logits=logits, design=design)
        return so.estimators.straight_through(law)

    _compare(draw, torch.randn(3, 12, requires_grad=True))


@pytest.mark.slow
@pytest.mark.parametrize("estimator", _ESTIMATORS)
def test_estimators_are_one_graph(estimator):
    def draw(logits):
        law = so.distributions.KHot(4, logits=logits, design="pareto_corrected")
        return so.estimators.find(estimator)(law)

    _compare(draw, torch.randn(3, 12, requires_grad=True))


@pytest.mark.parametrize("design", _slow_but(["pareto", "gumbel_topk"], ["pareto"]))
def test_relaxed_draws_have_the_noise_of_eager_mode(design):
    """Two noises of one shape are two: torch.compile merges calls that it takes for the same."""
    logits = torch.linspace(-1, 1, 5).requires_grad_()

    def draws(logits):
        return so.distributions.KHot(2, logits=logits, design=design).rsample((4000,))

    torch.compiler.reset()
    compiled = torch.compile(draws, fullgraph=True, backend="aot_eager")
    torch.manual_seed(0)
    (one, gradient), (other, right) = (
        (x.detach(), *torch.autograd.grad(x.square().sum(), logits))
        for x in (compiled(logits), draws(logits))
    )
    # five standard errors, of the means and of the standard deviations
    error = 5 * (2 / 4000) ** 0.5
    torch.testing.assert_close(one.mean(0), other.mean(0), rtol=0, atol=0.35 * error)
    torch.testing.assert_close(one.std(0), other.std(0), rtol=0, atol=0.25 * error)
    assert (one.std(0) > 0.1).all()
    torch.testing.assert_close(gradient / 4000, right / 4000, rtol=0, atol=0.03)

"""The third judge by itself: what it takes for right, and what it notices."""

import numpy as np
import pytest
import torch

from tests.fuzz import oracle, problems, run, units
from tests.fuzz.judges import Answer
from tests.oracles.densities import BUILT_IN, DENSITIES

_OPTIONS = {
    "soft_topk": {"k": 2.3, "largest": False},
    "log_soft_topk": {"k": 2.0, "largest": True},
    "soft_rank": {"descending": True},
    "soft_sort": {"descending": True},
    "soft_permutation": {"descending": True, "k": 4},
    "soft_quantile": {"q": torch.tensor([0.2, 0.5])},
    "fsum": {"points": torch.tensor([-1.0, 0.5, 3.0])},
    "fsum_inverse": {"levels": torch.tensor([0.5, 2.2, 5.0])},
}


def _problem(operator, method):
    scores = torch.randn(2, 7, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    options = {"dim": -1, "temperature": 0.4, **_OPTIONS[operator]}
    if operator != "soft_permutation":
        options["mask"] = torch.arange(7) != 2
    return problems.Problem(
        seed=0,
        operator=operator,
        method=method,
        scores=scores,
        dim=-1,
        options=options,
        threads=1,
        kind="normal",
        layout="plain",
        ordinary=True,
    )


def _words(problem, answer):
    return oracle.agree(problem, answer, run._upstream_of(problem, answer.result), {})


@pytest.mark.parametrize("method", BUILT_IN)
@pytest.mark.parametrize("operator", _OPTIONS)
def test_one_wrong_number_is_noticed(operator, method):
    """Also where the compiled kernels and plain torch would have it in common."""
    problem = _problem(operator, method)
    if operator in ("soft_rank", "soft_sort"):  # judged in rows without a mask
        del problem.options["mask"]
    answer = run.solve(problem, "torch")
    assert _words(problem, answer) == ""
    wrong = answer.result.clone(memory_format=torch.contiguous_format)
    wrong.view(-1)[1] += 100 * units.VALUES[torch.float64] * wrong.abs().max()
    if operator in oracle._LEVELS and method == "uniform":  # on a plateau there is no one right
        wrong.view(-1)[1] += 1
    assert _words(problem, Answer(wrong, answer.gradients))


@pytest.mark.parametrize("method", BUILT_IN)
@pytest.mark.parametrize(
    "operator",
    ["soft_topk", "log_soft_topk", "soft_rank", "soft_sort", "soft_quantile", "fsum_inverse"],
)
def test_a_wrong_gradient_is_noticed(operator, method):
    problem = _problem(operator, method)
    problem.options.pop("mask")
    answer = run.solve(problem, "torch")
    gradient = answer.gradients["scores"]
    off = gradient + 100 * units.GRADIENTS[torch.float64] * (gradient.abs().max() + 1 / 0.4)
    assert not _words(problem, answer)
    assert _words(problem, Answer(answer.result, {"scores": off}))
    assert _words(problem, Answer(answer.result, {"scores": -gradient}))


@pytest.mark.parametrize("method", BUILT_IN)
@pytest.mark.parametrize(
    ("scores", "tau"),
    [
        ([1.79e308, -1.79e308, 3.0, 2.0, -np.inf], 1e-30),
        ([1.79e308, 1.7e308, 1.6e308, 0.0, 1e-300], 1e305),
        ([1e6, 1e6 + 1e-9, 1e6 + 2e-9, 1e6 - 1e-9, 1e6], 1e-21),
        ([5e-324, -5e-324, 0.0, 1e-310, 2e-310], 1e-309),
        ([1.0, 1.0, 1.0, 1.0, 1.0], 1e30),
    ],
)
@pytest.mark.parametrize("k", [1e-9, 0.5, 1.0, 2.7, 3.0, 3.9999])
def test_thresholds_hold_what_they_should(method, scores, tau, k):
    """Σ F(u) = k, and differences of u are those of the scores over τ, which is the definition."""
    x = np.array([scores], dtype=np.longdouble)
    with np.errstate(all="ignore"):
        u = oracle._distances(
            DENSITIES[method], x, np.array([k], x.dtype), np.array([tau], x.dtype)
        )
        held = oracle._mass(DENSITIES[method], u)[0]
    assert abs(float(held - np.longdouble(k))) < 1e-14
    there = np.isfinite(x[0])
    first, others = u[0, there][0], u[0, there]
    apart = (x[0, there][0] - x[0, there]) / np.longdouble(tau)
    assert np.all(
        np.abs((first - others) - apart) <= 1e-15 + 1e-15 * np.abs(others) + np.abs(first) * 1e-15
    )

"""Where rounding decides, judges look less closely; what it does not do, they notice there, too."""

import math
from functools import partial

import pytest
import torch

from softorder.relaxations.networks import NetworkMethod
from tests.fuzz import judges, problems, run, units
from tests.fuzz.judges import Answer


def _problem(operator, method, scores, **options):
    """One row of float64 without gradients but that of its scores."""
    row = torch.tensor(scores, dtype=torch.float64)
    return problems.Problem(
        seed=0,
        operator=operator,
        method=method,
        scores=row,
        dim=-1,
        options={"temperature": 1.0, **options},
        threads=1,
        kind="normal",
        layout="plain",
        ordinary=True,
    )


def _solved(problem):
    return run.solve(problem, "torch")


def _with(answer, result=lambda v: v, gradient=lambda v: v):
    return Answer(result(answer.result), {"scores": gradient(answer.gradients["scores"])})


def _noticed(problem, **defects):
    answer = _solved(problem)
    assert judges.agree(problem, answer, answer, "itself") == ""
    return judges.agree(problem, _with(answer, **defects), answer, "itself")


def test_logarithms_of_the_uniform_density_are_as_good_as_p():
    """p = 1e-3 is stated to 1e-11, its logarithm to 1e-8: less is rounding, more is not."""
    scores = [0.0, -0.499, 0.1]  # by half of τ, 1, around a threshold near 0
    problem = _problem("log_soft_topk", "uniform", scores, k=1.2, largest=True)
    smallest = _solved(problem).result.exp().min().item()
    assert 1e-4 < smallest < 0.5
    off = units.VALUES[torch.float64] / smallest
    assert not _noticed(problem, result=lambda v: v + off)
    assert _noticed(problem, result=lambda v: v + 100 * off)


def test_what_is_outside_the_uniform_density_is_so_for_both():
    problem = _problem("log_soft_topk", "uniform", [5.0, 0.0, -5.0], k=1.5, largest=True)
    assert _solved(problem).result[2] == -math.inf
    assert not _noticed(problem, result=lambda v: v.clamp(min=-36.0))  # p of 2e-16
    assert _noticed(problem, result=lambda v: v.clamp(min=-5.0))


def test_far_tails_of_the_normal_density_are_judged_by_their_slope():
    scores = [1e6 + 2.0, 1e6 + 1.0, 1e6]
    problem = _problem("log_soft_topk", "normal", scores, k=1.0, largest=True, temperature=1e-4)
    answer = _solved(problem)
    digit = units.last_digit(problem) / 1e-4
    slope = (2 * answer.result.abs()).sqrt().clamp(min=1)
    assert slope.max() > 1e3
    assert not _noticed(problem, result=lambda v: v - slope * digit)
    assert _noticed(problem, result=lambda v: v - 100 * slope * digit)


def test_shares_of_a_threshold_in_a_wide_gap_are_as_good_as_its_last_digit():
    scores, tau = [1.3, 1.2, 0.1, -0.5], 1e-8
    problem = _problem("log_soft_topk", "laplace", scores, k=1.0, largest=True, temperature=tau)
    digit = units.last_digit(problem) / tau
    assert digit > 100 * units.GRADIENTS[torch.float64]
    assert not _noticed(problem, gradient=lambda v: v * (1 + digit))
    assert _noticed(problem, gradient=lambda v: v * (1 + 100 * digit))


@pytest.mark.parametrize(("scores", "excused"), [([0.0, 1.5, 0.0], True), ([0.0, 1.5, 0.4], False)])
def test_only_ties_excuse_the_gradient_of_logistic_phi(scores, excused):
    method = NetworkMethod("bitonic", "logistic_phi")
    problem = _problem("soft_permutation", method, scores, descending=False)
    assert bool(_noticed(problem, gradient=lambda v: v * 1.1)) != excused
    assert _noticed(problem, result=lambda v: v + 1e-3)
    cold = _problem("soft_permutation", method, scores, descending=False, temperature=1e-7)
    assert bool(_noticed(cold, result=lambda v: v + 1e-6)) != excused


def test_heat_of_heavy_tails_is_as_good_as_the_distances_of_which_it_is_a_mean():
    """∂t/∂τ is a mean of u = ±1/τ, each rounded to 1e-16, whose errors do not cancel."""
    row = partial(_problem, "fsum_inverse", scores=[0.0, 2.0], points=torch.tensor([0.9]))
    for method, noticed in (("cauchy", False), ("logistic", True)):
        problem = row(method, temperature=torch.tensor(1e-6, dtype=torch.float64))
        answer = Answer(torch.zeros(1), {"temperature": torch.tensor([0.1])})
        off = Answer(torch.zeros(1), {"temperature": torch.tensor([0.1 + 1e-5])})
        assert bool(judges.agree(problem, off, answer, "itself")) == noticed
    off = Answer(torch.zeros(1), {"temperature": torch.tensor([0.2])})
    assert judges.agree(row("cauchy", temperature=torch.tensor(1e-6)), off, answer, "itself")


def test_projected_scores_are_as_good_as_their_last_digit():
    row = partial(_problem, "soft_rank", "permutahedron", [100.0, 0.0, 99.9], descending=False)
    cold = row(temperature=1e-6)  # a digit of 100 is 2e-14
    assert not _noticed(cold, result=lambda v: v + 2e-8)
    assert _noticed(cold, result=lambda v: v + 2e-6)
    assert _noticed(row(temperature=1.0), result=lambda v: v + 2e-8)


def test_rounds_of_softmaxes_are_as_good_as_what_they_took():
    """log(1 - p) is rounded to 2e-16, which is divided by τ."""
    rounds = partial(_problem, "soft_topk", "sequential_softmax", [3.0, 0.0, 1.0, 2.0], k=2)
    cold = rounds(largest=True, temperature=1e-8)
    assert not _noticed(cold, result=lambda v: v + 2e-8)
    assert _noticed(cold, result=lambda v: v + 1e-5)
    assert _noticed(rounds(largest=True, temperature=0.1), result=lambda v: v + 2e-8)


def test_a_small_density_is_not_lost_unless_it_underflows():
    problem = _problem("soft_topk", "cauchy", [3.0, 0.0, 1.0], k=1, largest=True, temperature=1e-9)
    answer = _solved(problem)
    assert 0 < answer.gradients["scores"].abs().max() < 1e-5
    assert _noticed(problem, gradient=torch.zeros_like)


def test_slopes_of_cold_plans_cancel_to_the_rounding_of_what_they_missed():
    """Gaps of 1e9 τ: P is 0 or 1 within 1e-12, and slopes of 1e-12/τ are 0 within rounding."""
    problem = _problem("soft_permutation", "sinkhorn_sort", [1.0, 3.0, 2.0], temperature=1e-9)
    slope = 1e-12 / problem.temperature.item()
    assert not _noticed(problem, gradient=lambda v: v + 1e-17 * slope)
    assert _noticed(problem, gradient=lambda v: v + 1e-3 * slope)


def test_shares_are_as_good_as_the_distance_of_their_thresholds():
    """Scores of 1e7 τ have a last digit of 2e-9 τ, and thresholds are 1/n apart at the least."""
    scores, target = [1e7, -1e7, 0.0], torch.tensor([0, 1, 2])
    options = {"target": target, "reduction": "none"}
    problem = _problem("permutation_cross_entropy", "cauchy", scores, **options)
    assert not _noticed(problem, result=lambda v: v + 1e-9)
    assert _noticed(problem, result=lambda v: v + 1e-7)


def test_shares_of_a_wide_gap_by_normal_are_as_good_as_the_last_digit_of_the_threshold():
    """A last digit of 2e-15 τ, 5 τ from either side, changes by how much they move it by 1e-14."""
    options = {"k": 2, "largest": True, "temperature": 0.1}
    problem = _problem("log_soft_topk", "normal", [1.0, 0.9, 0.0, -0.3], **options)
    assert not _noticed(problem, gradient=lambda v: v * (1 + 1e-11))
    assert _noticed(problem, gradient=lambda v: v * (1 + 1e-8))


def test_points_in_a_wide_gap_by_normal_move_with_shares_of_their_last_digit():
    """A last digit of 1e-10 around 1e6 is 1e-6 τ, 45 τ from either side: shares of 1/2 ± 1e-5."""
    scores, options = [1e6 - 9e-3, 1e6, 1e6 + 9e-3, 1e6 + 18e-3], {"q": 0.5, "temperature": 1e-4}
    problem = _problem("soft_quantile", "normal", scores, **options)
    assert not _noticed(problem, gradient=lambda v: v * (1 + 1e-5))
    assert _noticed(problem, gradient=lambda v: v * (1 + 1e-2))
    logistic = _problem("soft_quantile", "logistic", scores, **options)
    assert _noticed(logistic, gradient=lambda v: v * (1 + 1e-5))


def test_slopes_of_a_softmax_cancel_to_a_digit_of_1():
    """1 less a share of 1 is 0 within 2e-16, whatever it is exactly."""
    scores = torch.tensor([[0.0, 100.0]], dtype=torch.float64)
    options = {"target": torch.tensor([1]), "p_k": torch.tensor([0.5, 0.5]), "reduction": "none"}
    mixed, alone = (
        _problem("top_k_cross_entropy", "uniform", scores.tolist(), top1=top1, **options)
        for top1 in ("softmax", "operator")
    )
    assert 0 < _solved(mixed).gradients["scores"].abs().max() < 1e-40
    assert not _noticed(mixed, gradient=torch.zeros_like)
    assert _noticed(mixed, gradient=lambda v: v + 1e-14)
    assert _noticed(alone, gradient=lambda v: v + 1e-40)


def test_shares_of_neuralsort_are_as_good_as_its_logits():
    """Those of logits of 1e8 to 1e-7, and of logits of 1 as good as any other."""
    cold = [1.0, 1.0 + 1.2e-8, 1.0 + 2.4e-8]
    for scores, tau, noticed in ((cold, 1e-8, False), ([0.0, 1.2, 2.4], 1.0, True)):
        problem = _problem("soft_permutation", "neuralsort", scores, temperature=tau)
        assert bool(_noticed(problem, gradient=lambda v: v * (1 + 1e-7))) == noticed
        assert _noticed(problem, gradient=lambda v: v * (1 + 1e-4))


def test_slopes_of_a_network_are_as_good_as_its_wires_after_all_layers():
    """Values of 1 have a last digit of 2e-4 τ, which each of 3 layers may add."""
    network = partial(_problem, "soft_permutation", NetworkMethod("bitonic", "optimal"))
    cold = network([1.0, 0.7, 1.0, 0.2], descending=False, temperature=1e-12)
    slope = 2.2e-4 / cold.temperature.item()
    assert not _noticed(cold, gradient=lambda v: v + 8 * slope)
    assert _noticed(cold, gradient=lambda v: v + 50 * slope)


def test_shares_of_neuralsort_cancel_to_a_digit_of_one():
    """A gradient of 1e-144 is rounding beside shares of 1, one of 1e-12 in units of 1/τ is not."""
    scores, tau = [0.0, 1.0, 2.5, 4.0], 1e-3
    problem = _problem("soft_permutation", "neuralsort", scores, temperature=tau, descending=False)
    assert units.most(_solved(problem).gradients["scores"]) < 1e-100
    assert not _noticed(problem, gradient=lambda v: v + 1e-16 / tau)
    assert _noticed(problem, gradient=lambda v: v + 1e-12 / tau)

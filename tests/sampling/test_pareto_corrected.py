"""The corrected Pareto design: its series, the order of its error, and rows that are hard on it."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from sympy import QQ

import softorder
import softorder as so
from softorder.sampling import CorrectedPareto, Pareto
from tests.oracles import pareto_series


def _generator(seed=0):
    return torch.Generator().manual_seed(seed)


def _normal(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=_generator(seed))


def _probs(logits, k):
    return so.soft_topk(logits, k, method="logistic")


def _errors(design, probs, k):
    """The largest error of every row."""
    found = design(probs, torch.tensor(k)).inclusion()
    return (found - probs).abs().amax(-1)


def _total(probs):
    return (probs * (1 - probs)).sum(-1)


# ---- the order of the error ---------------------------------------------------------------------


def test_the_series_has_no_other_term_than_the_one_that_is_taken_away():
    """π = p + pq (m v + μ m² + ς² m + const)/V² + 0/V³ + …, with nothing at odd powers of V^-½."""
    series = pareto_series.inclusion()
    p, r3, r4 = pareto_series.p, pareto_series.RATIO[3], pareto_series.RATIO[4]
    assert series.keys() == {0, 4}
    assert series[0] == p
    half = QQ(1, 2)
    m = p - half
    mean = -half * r3  # κ3 = Σ pq(1-2p) = -2 Σ pq m
    spread = (r4 + half) / 6 - mean**2  # κ4 = Σ pq(1-6pq) = -V/2 + 6 Σ pq m²
    known = p * (1 - p) * (m * p * (1 - p) + mean * m**2 + spread * m)
    const, rest = (series[4] - known).div(p * (1 - p))
    assert rest == 0
    assert const.diff(p) == 0


def test_the_correction_is_that_of_the_series():
    probs = _probs(_normal(400), 150)
    m, v = probs - 0.5, probs * (1 - probs)
    mean = np.average(m.numpy(), weights=v.numpy())
    spread = np.average((m.numpy() - mean) ** 2, weights=v.numpy())
    wanted = -(m * v + mean * m**2 + spread * m) / v.sum() ** 2
    moved = CorrectedPareto(probs, torch.tensor(150))._logits() - torch.logit(probs)
    torch.testing.assert_close(moved, wanted, rtol=1e-6, atol=1e-16)


@pytest.mark.parametrize("scale", [1.0, 3.0])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_the_error_falls_with_the_fourth_power(scale, share):
    """The slope of log error against log V: -4, and -2 without the correction."""
    sizes = (50, 100, 200, 400)
    rows = [_probs(scale * _normal(4, n, seed=n), round(share * n)) for n in sizes]
    level = np.log([_total(row).mean().item() for row in rows])
    for design, slope in ((Pareto, -2), (CorrectedPareto, -4)):
        errors = [
            _errors(design, row, round(share * n)).max().item()
            for row, n in zip(rows, sizes, strict=True)
        ]
        assert abs(np.polyfit(level, np.log(errors), 1)[0] - slope) < 0.35


def _table_row(n):
    """Errors of normal logits, and of larger ones: "pareto", without the bend of g, with it."""
    errors = []
    for logits, k in ((_normal(20, n), n // 2), (5 * _normal(20, n, seed=1), max(1, n // 10))):
        probs = _probs(logits, k)
        plain, corrected = torch.logit(probs), CorrectedPareto(probs, torch.tensor(k))._logits()
        total = _total(probs).unsqueeze(-1)
        gain = softorder.sampling.pareto_corrected._gain(total)
        straight = plain + (corrected - plain) / (gain * total.square())
        laws = (Pareto(torch.sigmoid(u), torch.tensor(k)) for u in (plain, straight, corrected))
        errors += [(law.inclusion() - probs).abs().max().item() for law in laws]
    return errors


def test_the_table_of_the_docs():
    page = (Path(__file__).parents[2] / "docs" / "design.md").read_text()
    for n in (8, 20, 100, 1000):
        row = re.search(rf"^\| {n} \|([-+e.\d |]*)\|$", page, re.MULTILINE)
        told = [float(cell) for cell in row[1].split("|")]
        assert told == pytest.approx(_table_row(n), rel=0.06)


# ---- hard rows ----------------------------------------------------------------------------------


def _hard_rows(n, k):
    """Normal logits of all scales, heavy tails, two groups, and one unit apart from the others."""
    scales = torch.logspace(-0.7, 1.2, 40, dtype=torch.float64).unsqueeze(-1)
    level = torch.rand(40, n, dtype=torch.float64, generator=_generator(n))
    apart = 0.2 * level
    apart[:, 0] += torch.linspace(-9, 9, 40, dtype=torch.float64)
    logits = [
        scales * _normal(40, n, seed=k),
        torch.logit(level**9),
        -torch.logit(level**9),
        torch.tan(3.1 * (level - 0.5)),
        scales * (level < 0.3) + 0.1 * level,
        apart,
    ]
    probs = _probs(torch.cat(logits), k)
    certain = (probs > 1 - 1e-12) | (probs < 1e-14)
    return probs[~certain.any(-1)]


@pytest.mark.parametrize(("n", "sizes"), [(2, [1]), (3, [1, 2]), (5, [1, 2, 4]), (8, [1, 4, 6])])
def test_it_is_never_worse_than_pareto(n, sizes):
    for k in sizes:
        probs = _hard_rows(n, k)
        corrected, plain = (_errors(design, probs, k) for design in (CorrectedPareto, Pareto))
        assert (_total(probs) < 0.1).sum() >= 5
        assert (corrected <= plain + 1e-13).all()
        assert corrected.max() < 0.012
        assert plain.max() > 0.05
        for least, most in ((1.0, 4e-3), (2.0, 7e-4)):
            assert (corrected[_total(probs) > least] < most).all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_units_that_are_certain_do_not_change_the_others(dtype):
    probs = torch.tensor([0.75, 0.5, 0.25, 0.5], dtype=dtype)
    ends = torch.tensor([1.0, 1.0, 0.0], dtype=dtype)
    short = CorrectedPareto(probs, torch.tensor(2))
    long = CorrectedPareto(torch.cat([probs, ends]), torch.tensor(4))
    torch.testing.assert_close(long.inclusion(), torch.cat([short.inclusion(), ends]))
    x = long.sample((500,), _generator())
    assert x.dtype == dtype
    assert (x[:, 4:] == ends).all()
    assert (x.sum(-1) == 4).all()


def test_rows_with_next_to_no_choice():
    for tiny in (1e-5, 1e-12, 1e-40, 0.0):
        probs = torch.tensor([1 - tiny, tiny], dtype=torch.float64, requires_grad=True)
        law = CorrectedPareto(probs, torch.tensor(1))
        assert (law.inclusion() - probs).abs().max() <= tiny
        assert law.sample((50,), _generator())[:, 0].min() >= 0
        (gradient,) = torch.autograd.grad(law.inclusion()[0], probs)
        assert gradient.isfinite().all()


@pytest.mark.parametrize("n", [10, 10**6])
def test_float32_draws_have_the_odds_of_float64(n):
    probs = _probs(_normal(n), n // 2)
    single, double = (
        CorrectedPareto(rows, torch.tensor(n // 2))._odds() for rows in (probs.float(), probs)
    )
    torch.testing.assert_close(single.double(), double, rtol=1e-5, atol=0)


# ---- sizes that are not whole --------------------------------------------------------------------


def test_a_size_that_is_not_whole_is_met_on_average():
    """Up to the error of the phantom unit."""
    logits, draws = _normal(12), 40_000
    law = so.distributions.KHot(4.3, logits=logits, design="pareto_corrected")
    assert abs(law.mean.sum().item() - 4.3) < 2e-4
    assert (law.mean - law.probs).abs().max() < 2e-4
    x = law.sample((draws,), generator=_generator())
    assert set(x.sum(-1).tolist()) == {4.0, 5.0}
    error = (law.mean * (1 - law.mean) / draws).sqrt()
    assert ((x.mean(0) - law.mean).abs() / error).max() < 5
    assert abs(x.sum(-1).mean().item() - 4.3) < 5 * math.sqrt(0.21 / draws)


def test_it_is_the_default_where_draws_are_wanted():
    probs = _probs(_normal(9), 4)
    drawn = so.sampling.sample(probs, generator=_generator())
    named = so.sampling.sample(probs, design="pareto_corrected", generator=_generator())
    assert torch.equal(drawn, named)
    assert so.nn.KHotGate(9, 4).design is CorrectedPareto

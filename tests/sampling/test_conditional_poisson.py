"""The law P(x) ∝ e^<θ,x> over subsets: against enumeration, and where that is out of reach."""

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from softorder.kernels.subsets.circle import _points
from softorder.sampling import ConditionalPoisson
from tests.oracles import subsets

_PROBLEMS = [
    (1, 1, 1),
    (2, 1, 1),
    (5, 0, 1),
    (5, 5, 2),
    (6, 3, 0),
    (8, 3, 1),
    (9, 4, 4),
    (10, 5, 30),
]


def _logits(n, scale, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(n, dtype=torch.float64, generator=generator)


def _design(logits, k):
    return ConditionalPoisson(logits, torch.tensor(k))


def _close(found, wanted, rtol=1e-12, atol=1e-14):
    wanted = torch.as_tensor(np.asarray(wanted), dtype=found.dtype)
    torch.testing.assert_close(found, wanted, rtol=rtol, atol=atol)


@pytest.mark.parametrize(("n", "k", "scale"), _PROBLEMS)
def test_agrees_with_enumeration(n, k, scale):
    logits = _logits(n, scale)
    rows = subsets.vectors(n, k)
    chances, total = subsets.conditional_poisson(logits, k)
    design = _design(logits, k)
    x = torch.as_tensor(rows)
    _close(design.log_prob(x).exp(), chances)
    _close(design.log_normaliser(), total, atol=1e-13)
    _close(design.inclusion(), chances @ rows)
    _close(design.joint(), rows.T @ (chances[:, None] * rows))
    positive = chances[chances > 0]
    _close(design.entropy(), -(positive * np.log(positive)).sum(), atol=1e-13)


def test_log_prob_is_exact_where_the_law_is_nearly_certain():
    logits = torch.tensor([300.0, 200.0, -100.0, -150.0], dtype=torch.float64)
    x = torch.tensor([[1.0, 1, 0, 0], [1, 0, 1, 0], [0, 0, 1, 1]], dtype=torch.float64)
    _close(_design(logits, 2).log_prob(x), [0.0, -300.0, -750.0])
    assert -1e-60 < _design(logits, 2).log_prob(x)[0] <= 0


def test_what_cannot_be_drawn():
    logits = torch.tensor([1.0, -torch.inf, 0.0, torch.inf], dtype=torch.float64)
    design = _design(logits, 2)
    _close(
        design.inclusion(),
        [torch.tensor(1.0).sigmoid().double(), 0, 1 - 0.7310585786300049, 1],
        1e-7,
    )
    x = torch.tensor(
        [[1.0, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 0], [1, 1, 0, 1]], dtype=torch.float64
    )
    assert (design.log_prob(x) == -torch.inf).all()
    assert (design.sample((500,))[:, [1, 3]] == torch.tensor([0.0, 1.0])).all()


def test_units_that_take_no_part_change_nothing():
    logits = _logits(7, 2)
    padded = torch.cat([logits, torch.full((5,), -torch.inf, dtype=torch.float64)])
    short, long = _design(logits, 3), _design(padded, 3)
    _close(long.inclusion()[:7], short.inclusion())
    _close(long.entropy(), short.entropy())


def test_rows_of_different_sizes():
    logits, sizes = _logits(12, 1).reshape(2, 6), torch.tensor([1, 4])
    together = ConditionalPoisson(logits, sizes)
    for row in range(2):
        alone = ConditionalPoisson(logits[row], sizes[row])
        _close(together.inclusion()[row], alone.inclusion())
        _close(together.entropy()[row], alone.entropy())
        assert (together.sample((50,))[:, row].sum(-1) == sizes[row]).all()


@pytest.mark.parametrize(
    ("n", "k", "scale"),
    [
        (1000, 500, 0.1),
        (1000, 500, 20.0),
        (1000, 3, 1.0),
        (10_000, 5000, 1.0),
        (10_000, 5000, 20.0),
        (10_000, 100, 1.0),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_large_rows(n, k, scale, dtype):
    logits = _logits(n, scale).to(dtype)
    design = _design(logits, k)
    exact = subsets.log_elementary(logits.double().numpy(), k)
    found = design.log_normaliser().item()
    rounding = torch.finfo(dtype).eps
    assert abs(found - exact) <= (rounding + 1e-14) * abs(exact)

    x = design.sample(generator=torch.Generator().manual_seed(0))
    wanted = (x.double() * logits.double()).sum().item() - exact
    assert abs(design.log_prob(x).item() - wanted) <= 1e-12 * abs(exact) + rounding * abs(wanted)
    assert abs(design.inclusion().double().sum().item() - k) <= n * rounding


@pytest.mark.parametrize("unit", [0, 17, 1999])
def test_inclusion_of_large_rows(unit):
    logits = _logits(2000, 2)
    others = np.delete(logits.numpy(), unit)
    exact = np.exp(
        logits[unit].item()
        + subsets.log_elementary(others, 799)
        - subsets.log_elementary(logits.numpy(), 800)
    )
    assert abs(_design(logits, 800).inclusion()[unit].item() / exact - 1) < 1e-10


# ---- derivatives --------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["inclusion", "joint", "entropy", "log_normaliser"])
def test_derivatives(what):
    logits = _logits(6, 1).requires_grad_()
    assert gradcheck(lambda v: getattr(_design(v, 2), what)(), logits)
    assert gradgradcheck(lambda v: getattr(_design(v, 2), what)(), logits)


def test_derivatives_of_log_prob():
    logits = _logits(12, 1).reshape(2, 6).requires_grad_()
    x = torch.tensor([1.0, 0, 1, 0, 0, 1], dtype=torch.float64)
    assert gradcheck(lambda v: _design(v, 3).log_prob(x), logits)
    assert gradgradcheck(lambda v: _design(v, 3).log_prob(x), logits)


def test_the_normaliser_generates_the_moments():
    logits = _logits(9, 1.5).requires_grad_()
    design = _design(logits, 4)
    (gradient,) = torch.autograd.grad(design.log_normaliser(), logits, create_graph=True)
    _close(gradient, design.inclusion().detach())
    hessian = torch.stack([torch.autograd.grad(g, logits, retain_graph=True)[0] for g in gradient])
    mean = design.inclusion().detach()
    _close(hessian, (design.joint() - mean[:, None] * mean).detach())


def test_gradient_is_zero_where_there_is_no_choice():
    logits = torch.tensor([1.0, -torch.inf, 0.0, torch.inf], dtype=torch.float64)
    for k in (0, 1, 3):
        leaf = logits.clone().requires_grad_()
        design = ConditionalPoisson(leaf, torch.tensor(k))
        (gradient,) = torch.autograd.grad(design.inclusion().square().sum(), leaf)
        _close(gradient, torch.zeros(4))


# ---- the inverse map ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "k", "scale"), [(2, 1, 2), (5, 2, 1), (6, 3, 8), (30, 4, 5), (1000, 500, 2), (1000, 5, 3)]
)
def test_the_inverse_map_inverts(n, k, scale):
    logits = _logits(n, scale)
    logits = logits - logits.mean()
    probs = _design(logits, k).inclusion()
    fitted = ConditionalPoisson.from_probs(probs, torch.tensor(k))
    found = fitted.working_logits()
    near = (probs > 1e-12) & (probs < 1 - 1e-9)
    offset = (found - logits)[near].mean()
    _close(found[near], (logits + offset)[near], rtol=1e-8, atol=1e-6)
    again = _design(found, k).inclusion()
    _close(again, probs, rtol=1e-11, atol=1e-15)


def test_the_inverse_map_of_units_that_are_certain():
    probs = torch.tensor([0.0, 1.0, 0.25, 0.75], dtype=torch.float64)
    design = ConditionalPoisson.from_probs(probs, torch.tensor(2))
    x = torch.tensor([[0.0, 1, 0, 1], [0, 1, 1, 0], [1, 1, 0, 0]], dtype=torch.float64)
    _close(design.log_prob(x).exp(), [0.75, 0.25, 0.0])
    found = design.working_logits()
    _close(found, [-torch.inf, torch.inf, -np.log(3) / 2, np.log(3) / 2])


def test_derivatives_of_the_inverse_map():
    logits = _logits(5, 1).requires_grad_()
    x = torch.tensor([1.0, 0, 1, 0, 0], dtype=torch.float64)

    def log_prob(theta):
        probs = _design(theta, 2).inclusion()  # so that they sum to 2 whatever theta is
        return ConditionalPoisson.from_probs(probs, torch.tensor(2)).log_prob(x)

    _close(log_prob(logits).detach(), _design(logits.detach(), 2).log_prob(x))
    assert gradcheck(log_prob, logits)
    assert gradgradcheck(log_prob, logits)


def test_published_example():
    """Tillé, Sampling Algorithms (2006), chapter 5; example of UPmaxentropy in R's `sampling`."""
    probs = torch.tensor([0.07, 0.17, 0.41, 0.61, 0.83, 0.91], dtype=torch.float64)
    design = ConditionalPoisson.from_probs(probs, torch.tensor(3))
    working = [0.1021, 0.2238, 0.4417, 0.5796, 0.7794, 0.8734]
    _close(torch.sigmoid(design._u), working, rtol=0, atol=5e-5)
    joint = [
        [0.0700, 0.0049, 0.0130, 0.0215, 0.0447, 0.0559],
        [0.0049, 0.1700, 0.0324, 0.0537, 0.1113, 0.1377],
        [0.0130, 0.0324, 0.4100, 0.1407, 0.2888, 0.3452],
        [0.0215, 0.0537, 0.1407, 0.6100, 0.4691, 0.5351],
        [0.0447, 0.1113, 0.2888, 0.4691, 0.8300, 0.7461],
        [0.0559, 0.1377, 0.3452, 0.5351, 0.7461, 0.9100],
    ]
    _close(design.joint(), joint, rtol=0, atol=5e-5)


def test_a_few_points_are_enough_for_every_row():
    for n in (3, 30, 74, 75, 80, 100, 1000, 100_000):
        for p in (0.5, 0.1, 1e-3, 1e-6):
            angle, _ = _points(torch.full((n,), p * (1 - p), dtype=torch.float64), digits=37.0)
            assert len(angle) <= 28

"""Densities that a user brings along."""

import pytest
import torch

import softorder as so
from tests import bank
from tests.oracles import bisection
from tests.user_density import CompleteStudent, Student


class Subclass(so.densities.Density):
    name = "student"
    cdf = Student.cdf
    pdf = Student.pdf


@pytest.mark.parametrize(
    "density", [Student(), CompleteStudent(), Subclass()], ids=lambda d: type(d).__name__
)
@pytest.mark.parametrize("n", [1, 3, 100])
def test_agrees_with_the_oracle(density, n):
    labels, scores, k, temperature = bank.problems(bank.FAMILIES, n)
    arguments = (torch.from_numpy(v) for v in (scores, k, temperature))
    x, k_rows, temperatures = arguments
    p = so.soft_topk(x, k_rows, method=density, temperature=temperatures)
    truth = torch.from_numpy(bisection.soft_topk(scores, k, temperature, "student").p)
    error = (p - truth).abs().amax(-1)
    assert error.max() <= 1e-12, labels[error.argmax()]


def test_a_given_log_cdf_is_used_for_the_logarithm():
    scores = torch.tensor([0.0, -1e9], dtype=torch.float64)
    truth = bisection.soft_topk(scores.numpy()[None], 0.5, 1.0, "student").log_p
    log_p = so.log_soft_topk(scores, 0.5, method=CompleteStudent())
    torch.testing.assert_close(log_p, torch.from_numpy(truth[0]), rtol=1e-12, atol=1e-12)


def test_a_density_without_pdf_is_refused():
    class Half:
        cdf = Student.cdf

    with pytest.raises(TypeError, match="pdf"):
        so.soft_topk(torch.zeros(3), 1, method=Half())

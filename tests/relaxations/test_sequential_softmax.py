"""k softmaxes in a row: gradient and masses in closed form are those of the plain path."""

import pytest
import torch

import softorder as so
from softorder.relaxations import find, masses

_METHOD = find("soft_topk", "sequential_softmax")
_SCORES = torch.tensor(
    [[2.0, 1.9, 0.3, -1.0, 0.2], [1.0, 1.0, 1.0, 0.0, 0.0], [5.0, 0.1, 0.0, -0.2, -4.0]]
)


def _gradient(scores, k, temperature):
    scores = scores.clone().requires_grad_()
    p = so.soft_topk(scores, k, method=_METHOD, temperature=temperature)
    upstream = torch.linspace(-1, 2, p.numel(), dtype=p.dtype).view_as(p)
    return p.detach(), torch.autograd.grad(p, scores, upstream)[0]


@pytest.mark.parametrize("temperature", [3.0, 0.3, 0.01, 1e-4])
@pytest.mark.parametrize("k", [0.0, 1.0, 2.0, 2.4, 5.0])
def test_the_closed_form_is_the_derivative_of_the_plain_path(k, temperature):
    """That one serves where the temperature learns."""
    ours = _gradient(_SCORES.double(), k, temperature)
    learned = torch.tensor(temperature, dtype=torch.float64, requires_grad=True)
    for one, plain in zip(ours, _gradient(_SCORES.double(), k, learned), strict=True):
        torch.testing.assert_close(one, plain)


@pytest.mark.parametrize("temperature", [3.0, 0.3, 0.01])
def test_float32_has_the_gradient_of_float64(temperature):
    gradient = _gradient(_SCORES, 2.0, temperature)[1]
    expected = _gradient(_SCORES.double(), 2.0, temperature)[1]
    torch.testing.assert_close(gradient.double(), expected, rtol=1e-4, atol=1e-5 / temperature)


def test_one_entry_for_several_k_takes_every_softmax_once():
    index, tau = torch.tensor([1, 4, 0]), torch.tensor(0.7, dtype=torch.float64)
    scores = _SCORES.double().requires_grad_()
    ours, plain = (
        of(scores, index, (1, 2, 4), tau)
        for of in (_METHOD.log_masses, lambda *given: masses.log_masses(_METHOD, *given))
    )
    torch.testing.assert_close(ours, plain)
    gradients = (torch.autograd.grad(v.sum(), scores)[0] for v in (ours, plain))
    torch.testing.assert_close(*gradients)

"""Masks of weights as a parametrisation: k of all, k of every group."""

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrize

import softorder as so
from tests.nn.close import assert_compiles


def _weight(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_the_mask_is_a_soft_topk_of_magnitudes():
    weight = _weight(4, 8)
    size = weight.abs() / weight.abs().mean()
    mask = so.nn.TopKMask(5, temperature=0.4)
    torch.testing.assert_close(
        mask(weight), weight * so.soft_topk(size, 5, temperature=0.4, dim=None)
    )
    grouped = so.nn.TopKMask(2, group=4, temperature=0.4)
    p = so.soft_topk(size.view(4, 2, 4), 2, temperature=0.4).view(4, 8)
    torch.testing.assert_close(grouped.mask(weight), p)
    torch.testing.assert_close(grouped.mask(1000 * weight), p)  # the size of weights is no matter


@pytest.mark.parametrize("hard", [False, True])
def test_exactly_k_in_use(hard):
    weight = _weight(4, 8)
    for options, count in (({"k": 5}, 5), ({"keep": 0.25}, 8), ({"k": 1, "group": 4}, 8)):
        mask = so.nn.TopKMask(**options, hard=hard)
        assert (mask(weight) != 0).sum() == (count if hard else 32)
        used = mask.eval()(weight)
        assert (used != 0).sum() == count
        kept = used != 0
        assert torch.equal(used[kept], weight[kept])
    assert ((mask.mask(weight)).view(-1, 4).sum(-1) == 1).all()
    assert (mask.mask(torch.ones(4, 8)).view(-1, 4).sum(-1) == 1).all()  # ties, too


def test_the_derivative_is_that_of_the_docstring():
    """Sizes are those of a fixed unit m, so gradcheck cannot ask: it would move m."""
    weight, v, tau = _weight(12).requires_grad_(), _weight(12).flip(0), 0.3
    (found,) = torch.autograd.grad(so.nn.TopKMask(4, temperature=tau)(weight), weight, v)
    with torch.no_grad():
        m = weight.abs().mean()
        p = so.soft_topk(weight.abs() / m, 4, temperature=tau)
        d = torch.minimum(p, 1 - p) / tau
        q, w = d / d.sum(), weight * v
        expected = p * v + weight.sign() * d * (w - (q * w).sum()) / m
    torch.testing.assert_close(found, expected)


def test_a_weight_that_was_cut_comes_back():
    """Only the small weight helps: magnitude would never let it in."""
    layer = nn.Linear(2, 1, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[1.0, 0.3]]))
    mask = so.nn.TopKMask(1, temperature=0.5)
    parametrize.register_parametrization(layer, "weight", mask)
    optimiser = torch.optim.Adam(layer.parameters(), lr=0.02)
    x = torch.eye(2)
    for step in range(300):
        mask.temperature = 0.5 * 0.02 ** (step / 300)
        loss = (layer(x).squeeze(-1) - torch.tensor([0.0, 1.0])).square().sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    weight = layer.eval().weight.detach()
    assert weight[0, 0] == 0
    assert abs(weight[0, 1] - 1) < 0.05


def test_as_a_parametrisation():
    torch.manual_seed(0)
    layer = nn.Linear(8, 4)
    before = layer.weight.detach().clone()
    parametrize.register_parametrization(
        layer, "weight", so.nn.TopKMask(2, group=4, temperature=0.2)
    )
    other = nn.Linear(8, 4)
    parametrize.register_parametrization(other, "weight", so.nn.TopKMask(2, group=4))
    other.load_state_dict(layer.state_dict())
    assert torch.equal(other.weight, layer.weight)  # the temperature came along
    layer.weight = before  # what is assigned is kept in full
    assert torch.equal(layer.parametrizations.weight.original, before)
    parametrize.remove_parametrizations(layer.eval(), "weight")
    assert (layer.weight != 0).sum() == 16


def test_compiles():
    assert_compiles(so.nn.TopKMask(2, group=4, temperature=0.3, hard=True), _weight(4, 8))


def test_wrong_arguments():
    make, weight = so.nn.TopKMask, torch.ones(4, 6)
    wrong = [
        (lambda: make(), ValueError, "exactly one of k and keep must be given, but got none"),
        (lambda: make(2, keep=0.5), ValueError, "exactly one of k and keep must be given"),
        (lambda: make(keep=1.5), ValueError, "keep must be between 0 and 1, both excluded"),
        (lambda: make(keep=0.5, group=4), ValueError, "group must be None where keep is given"),
        (lambda: make(5, group=4), ValueError, "k must be between 1 and 4, but got 5"),
        (lambda: make(0), ValueError, "k must be at least 1, but got 0"),
        (lambda: make(2, group=4)(weight), ValueError, "a multiple of group = 4 entries"),
        (lambda: make(25)(weight), ValueError, "k must be at most 24, the number of weights"),
    ]
    for call, error, message in wrong:
        with pytest.raises(error, match=message):
            call()

"""LapSum: the authors' C++ and PyTorch code. Not on the registry: formulas stand for it.

The closed form of its top-k (section 4, algorithm 1) is written as the notebook of its repository
computes it, in units of x/α without a shift. The C++ code declares α as float.
"""

import math

import torch

import softorder as so
from tests.peers.statements import ALL, Peer, agreement, difference, error, gradient, scores, slopes

PEER = Peer("LapSum", "commit 3a2e414")


def _threshold(x, k, alpha):
    """b/α with Σ Lap(x/α - b/α) = k: sort, two scans, and a quadratic equation for exp(b/α)."""
    n = x.shape[-1]
    z = x.sort(-1).values / alpha
    below = (z.logcumsumexp(-1) - z).exp()
    above = ((-z).flip(-1).logcumsumexp(-1).flip(-1) + z).exp()
    at_scores = torch.arange(n, dtype=x.dtype) + (above - below + 1) / 2
    mass = torch.full_like(x[..., :1], n - k)
    place = torch.searchsorted(at_scores, mass)
    left, right = (place - 1).clamp(min=0), place.clamp(max=n - 1)
    a = torch.where(place < n, above.gather(-1, right), 0.0)
    b = torch.where(place > 0, below.gather(-1, left), 0.0)
    low, high, rest = z.gather(-1, left), z.gather(-1, right), mass - place
    root = rest.abs() + (rest**2 + a * b * (low - high).exp()).sqrt()
    return torch.where(rest > 0, high + root.log() - a.log(), low - root.log() + b.log())


def _laplace(u):
    tail = (-u.abs()).exp() / 2
    return torch.where(u > 0, 1 - tail, tail)


class _TopK(torch.autograd.Function):
    """Values by the closed form, gradients by equation (5): J = diag(s) - s sᵀ/Σs."""

    @staticmethod
    def forward(ctx, x, k, alpha):
        u = x / alpha - _threshold(x, k, alpha)
        ctx.save_for_backward((-u.abs()).exp() / (2 * alpha))
        return _laplace(u)

    @staticmethod
    def backward(ctx, upstream):
        (s,) = ctx.saved_tensors
        mean = (s * upstream).sum(-1, keepdim=True) / s.sum(-1, keepdim=True)
        return s * (upstream - mean), None, None


def _theirs(k, alpha):
    return lambda x: _TopK.apply(x, k, alpha)


def _ours(k, alpha):
    return lambda x: so.soft_topk(x, k, temperature=alpha)


@agreement(
    PEER,
    theirs="soft_topk(x, k, alpha=α)",
    ours="soft_topk(x, k, temperature=α)",
    values=ALL,
    gradients=ALL,
)
def test_top_k():
    options = [(1, 0.1), (2.5, 1.0), (5, 0.1), (20, 3.0), (49, 1.0)]
    return [(_ours(*option), _theirs(*option), scores(4, 50)) for option in options]


@agreement(
    PEER,
    theirs="soft_rank(x, alpha=α) + 1",
    ours="soft_rank(x, temperature=α)",
    values=ALL,
    gradients=ALL,
    note="theirs counts from 0: Σ over j ≠ i of Lap((x_i - x_j)/α)",
)
def test_ranks():
    def theirs(x):
        pairs = _laplace((x.unsqueeze(-1) - x.unsqueeze(-2)) / 0.3)
        return (pairs - torch.diag_embed(pairs.diagonal(dim1=-2, dim2=-1))).sum(-1) + 1

    return lambda x: so.soft_rank(x, temperature=0.3), theirs, scores(4, 50)


@difference(
    PEER,
    "float64, α = 0.1, C++",
    theirs="off by 3e-9: α is rounded to float32",
    ours="right to 14 digits",
    proof="the closed form with the α that was asked for",
)
def test_alpha_in_float64():
    x, alpha = scores(4, 50), 0.1
    rounded = torch.tensor(alpha, dtype=torch.float32).item()
    truth = _theirs(5, alpha)(x)
    assert error(_ours(5, alpha)(x), truth) < 1e-13
    assert 1e-9 < error(_theirs(5, rounded)(x), truth) < 1e-8


@difference(
    PEER,
    "float32, scores + 10⁶, α = 1, PyTorch",
    theirs="p off by almost 1 %, their sum by 0.08",
    ours="right to float32",
    proof="the same float32 scores in float64",
)
def test_shifted_scores():
    x = (scores(4, 50).float() + 1e6).float()
    truth = _ours(5, 1.0)(x.double())
    centred = x.double() - 1e6
    torch.testing.assert_close(truth, _theirs(5, 1.0)(centred), rtol=0, atol=1e-9)
    assert error(_ours(5, 1.0)(x), truth) < 1e-6
    assert 0.001 < error(_theirs(5, 1.0)(x), truth) < 0.02
    assert (_theirs(5, 1.0)(x).sum(-1) - 5).abs().max() > 0.03


@difference(
    PEER,
    "gradient in α of the top-k, C++",
    theirs="the opposite sign for largest=True",
    ours="right",
    proof="central differences in α",
)
def test_gradient_in_alpha():
    """Theirs is that of -α, with which the kernel is called, handed back as that of α."""
    x, alpha = scores(9), 0.7
    u = (x - alpha * _threshold(x, 3, alpha)) / alpha
    density = (-u.abs()).exp() / (2 * -alpha)
    mean = (density * x).sum() / density.sum()
    published = density * (x - mean) / -alpha
    step = 1e-6
    truth = (_theirs(3, alpha + step)(x) - _theirs(3, alpha - step)(x)) / (2 * step)
    torch.testing.assert_close(published, -truth, rtol=0, atol=1e-9)
    temperature = torch.tensor(alpha, dtype=torch.float64)
    ours = torch.autograd.functional.jacobian(lambda t: _ours(3, t)(x), temperature)
    torch.testing.assert_close(ours, truth, rtol=0, atol=1e-9)


@difference(
    PEER,
    "k = n, PyTorch",
    theirs="NaN",
    ours="1",
    proof="the only numbers in [0, 1] with that sum",
)
def test_all_of_them():
    x = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    assert _theirs(3, 1.0)(x).isnan().all()
    assert _ours(3, 1.0)(x).tolist() == [1, 1, 1]
    assert _theirs(0, 1.0)(x).tolist() == _ours(0, 1.0)(x).tolist() == [0, 0, 0]


@agreement(
    PEER,
    theirs="soft_topk(x, k, alpha=α), a score of -inf",
    ours="soft_topk(x, k, temperature=α)",
    values=ALL,
    gradients=None,
)
def test_absent_scores():
    x = scores(4, 50)
    x[:, 7] = -math.inf
    return _ours(5, 0.5), _theirs(5, 0.5), x


def test_the_formulas_have_right_gradients():
    """Equation (5), which stands for their gradient, against differences of the closed form."""
    x = scores(2, 9)
    found = gradient(_theirs(3, 0.7), x)
    torch.testing.assert_close(found, slopes(_theirs(3, 0.7), x), rtol=0, atol=1e-8)
